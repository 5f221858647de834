"""One worker process: a function's environment that is started once and called many times."""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

BOOTSTRAP = Path(__file__).with_name("worker_bootstrap.py")
INIT_LIMIT = 60.0  # seconds; Lambda's is 10, on a processor of the function's own
_VERSION = "$LATEST"  # the only one that a function has here
_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "SSL_CERT_FILE")


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """All that makes two environments of a function interchangeable. Sizes in MB, times in s."""

    name: str
    arn: str
    handler: str
    timeout: float
    memory: int
    runtime: str
    environment: tuple[tuple[str, str], ...]
    code: Path
    layers: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a call came to: the payload of the answer, or of the error if ``failed``."""

    payload: bytes
    failed: bool
    logs: str


class Worker:
    """Starts at once; `invoke` waits until it is ready. Not for two calls at a time.

    ``id`` is also the access key with which its requests are signed.
    """

    def __init__(self, spec: FunctionSpec, runtime: Path, environment: dict[str, str]) -> None:
        self.spec = spec
        self.id = uuid.uuid4().hex
        self._socket, theirs = socket.socketpair()
        self._answers = self._socket.makefile("rb")
        self._is_ready = False
        self._init = threading.Lock()  # one thread alone reads whether it is ready
        self._init_error: bytes | None = None
        self._log = _open_log()
        with theirs:
            self._process = self._start(theirs.fileno(), runtime, environment)

    def _start(
        self, channel: int, runtime: Path, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        spec = self.spec
        # All layers are one /opt in Lambda, where a later one covers an earlier one.
        search = [spec.code, *(layer / "python" for layer in reversed(spec.layers)), runtime]
        own = {
            "_HANDLER": spec.handler,
            "S3COMMIT_WORKER_PATH": json.dumps([str(path) for path in search]),
            "S3COMMIT_WORKER_CHANNEL": str(channel),
            "AWS_LAMBDA_FUNCTION_NAME": spec.name,
            "AWS_LAMBDA_FUNCTION_VERSION": _VERSION,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(spec.memory),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{spec.runtime}",
            # As in Lambda, each environment has credentials of its own: they tell who asks.
            "AWS_ACCESS_KEY_ID": self.id,
            "LAMBDA_TASK_ROOT": str(spec.code),
            "TZ": ":UTC",
        }
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(BOOTSTRAP)],
            env=inherited | environment | dict(spec.environment) | own,
            cwd=spec.code,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=(channel,),
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """It can take another call."""
        return self._process.poll() is None

    def wait_ready(self) -> bool:
        """Wait until the handler is imported; False, and ended, if it fails or takes too long."""
        with self._init:
            if not self._is_ready:
                answer = self._answer(INIT_LIMIT)
                self._is_ready = answer is not None and "error" not in answer
                if not self._is_ready:
                    if answer:
                        self._init_error = answer["error"].encode()
                    self.kill()
            return self._is_ready

    def invoke(self, payload: bytes) -> CallOutcome:
        """Call the handler with ``payload`` (JSON) and wait for what comes of it."""
        request_id = str(uuid.uuid4())
        if not self.wait_ready():
            return self._failed(self._init_error or self._exit_error(request_id))
        timeout = self.spec.timeout
        call = {
            "invoke_id": request_id,
            "invoked_function_arn": self.spec.arn,
            "deadline_time_in_ms": int((time.time() + timeout) * 1000),
            "event_body": payload.decode(),
        }
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: no answer comes
            self._socket.sendall(json.dumps(call).encode() + b"\n")
        answer = self._answer(timeout)
        if answer is None:
            self.kill()
            text = f"Task timed out after {timeout:.2f} seconds"
            return self._failed(_error("Sandbox.Timedout", request_id, text))
        if not answer:
            return self._failed(self._exit_error(request_id))
        if "error" in answer:
            return self._failed(answer["error"].encode())
        return CallOutcome(answer["result"].encode(), False, self._take_log())

    def _failed(self, error: bytes) -> CallOutcome:
        return CallOutcome(error, True, self._take_log())

    def kill(self) -> None:
        """End the process, whatever it does, and wait until it has ended."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and let its log and channel go; for when no call runs."""
        self.kill()
        self._log.close()
        self._answers.close()
        self._socket.close()
        if self._process.stdin:
            self._process.stdin.close()

    def _answer(self, timeout: float) -> dict[str, str] | None:
        """The next line that the process says; empty if it has ended, None if none comes in time.

        It says one when its handler is imported, and one for each call.
        """
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        if not ready.poll(timeout * 1000):
            return None
        try:
            line = self._answers.readline()
        except ConnectionResetError:
            return {}
        return dict(json.loads(line)) if line.endswith(b"\n") else {}

    def _exit_error(self, request_id: str) -> bytes:
        status = self._process.wait()
        text = "Runtime exited without providing a reason"
        if status:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            text = f"Runtime exited with error: {how}"
        return _error("Runtime.ExitError", request_id, text)

    def _take_log(self) -> str:
        """What the worker wrote since the last time; a file has it all when a result arrives."""
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        self._log.truncate(0)
        return text.replace("\r", "\n")


def _open_log() -> FileIO:
    # Appending, so that the worker writes at the start again after the file was truncated.
    log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the worker
    fcntl.fcntl(log, fcntl.F_SETFL, fcntl.fcntl(log, fcntl.F_GETFL) | os.O_APPEND)
    return log


def _error(kind: str, request_id: str, text: str) -> bytes:
    message = f"RequestId: {request_id} Error: {text}"
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()
