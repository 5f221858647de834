"""One worker process: a function's environment that is started once and called many times."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from s3commit.local.runtime_api import Invocation, RuntimeApi

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
    log_group: str
    environment: tuple[tuple[str, str], ...]
    code: Path
    layers: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a call came to: the payload of the answer, or of the error if ``failed``."""

    payload: bytes
    failed: bool
    logs: str
    request_id: str
    log_stream: str


class Worker:
    """Starts at once; `invoke` waits until it is ready. Not for two calls at a time.

    ``id`` is also the access key with which its requests are signed.
    """

    def __init__(
        self, spec: FunctionSpec, api: RuntimeApi, runtime: Path, environment: dict[str, str]
    ) -> None:
        self.spec = spec
        self._api = api
        self.id = uuid.uuid4().hex
        self._channel, address = api.open(self.id)
        today = datetime.now(UTC).strftime("%Y/%m/%d")
        self.log_stream = f"{today}/[{_VERSION}]{self.id}"
        self._log = _open_log()
        self._process = self._start(address, runtime, environment)
        threading.Thread(target=self._reap, name=f"worker-{spec.name}", daemon=True).start()

    def _start(
        self, address: str, runtime: Path, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        spec = self.spec
        # All layers are one /opt in Lambda, where a later one covers an earlier one.
        search = [spec.code, *(layer / "python" for layer in reversed(spec.layers)), runtime]
        own = {
            "_HANDLER": spec.handler,
            "S3COMMIT_WORKER_PATH": json.dumps([str(path) for path in search]),
            "AWS_LAMBDA_RUNTIME_API": address,
            "AWS_LAMBDA_FUNCTION_NAME": spec.name,
            "AWS_LAMBDA_FUNCTION_VERSION": _VERSION,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(spec.memory),
            "AWS_LAMBDA_LOG_GROUP_NAME": spec.log_group,
            "AWS_LAMBDA_LOG_STREAM_NAME": self.log_stream,
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
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether it can take another call."""
        return not self._channel.closed

    def wait_ready(self, timeout: float = INIT_LIMIT) -> bool:
        """Wait until the handler is imported; False if that failed or takes too long."""
        return self._channel.ready.wait(timeout) and self.alive

    def invoke(self, payload: bytes) -> CallOutcome:
        """Call the handler with ``payload`` (JSON) and wait for what comes of it."""
        invocation = Invocation(str(uuid.uuid4()), self.spec.arn, payload, self.spec.timeout)
        if not self.wait_ready():
            return self._outcome(invocation, self._init_failure(invocation.request_id), 0.0)
        start = time.monotonic()
        self._channel.submit(invocation)
        finished = invocation.done.wait(self.spec.timeout)
        if not finished:
            self.kill()
        took = time.monotonic() - start
        if finished and not invocation.died:
            return self._outcome(invocation, invocation.result if invocation.failed else None, took)
        return self._outcome(invocation, self._death(invocation, finished), took)

    def kill(self) -> None:
        """End the process, whatever it does, and wait until it has ended."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and let its log go; for when no call runs."""
        self.kill()
        self._log.close()

    def _reap(self) -> None:
        self._process.wait()
        self._channel.close()
        self._api.discard(self.id)
        if self._process.stdin:
            self._process.stdin.close()

    def _init_failure(self, request_id: str) -> bytes:
        self.kill()
        if self._channel.init_error is not None:
            return self._channel.init_error
        return _error("Runtime.ExitError", request_id, self._exit_text())

    def _death(self, invocation: Invocation, finished: bool) -> bytes:
        if not finished:
            text = f"Task timed out after {self.spec.timeout:.2f} seconds"
            return _error("Sandbox.Timedout", invocation.request_id, text)
        return _error("Runtime.ExitError", invocation.request_id, self._exit_text())

    def _exit_text(self) -> str:
        status = self._process.wait()
        if status < 0:
            return f"Runtime exited with error: signal {-status}"
        if status:
            return f"Runtime exited with error: exit status {status}"
        return "Runtime exited without providing a reason"

    def _outcome(self, invocation: Invocation, error: bytes | None, took: float) -> CallOutcome:
        request_id = invocation.request_id
        lines = self._take_log()
        if lines and not lines.endswith("\n"):
            lines += "\n"
        logs = (
            f"START RequestId: {request_id} Version: {_VERSION}\n{lines}"
            f"END RequestId: {request_id}\n"
            f"REPORT RequestId: {request_id}\tDuration: {took * 1000:.2f} ms\t"
            f"Memory Size: {self.spec.memory} MB\n"
        )
        payload = invocation.result if error is None else error
        return CallOutcome(payload, error is not None, logs, request_id, self.log_stream)

    def _take_log(self) -> str:
        """What the worker wrote since the last time; a file has it all when a result arrives."""
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        self._log.truncate(0)
        return text.replace("\r", "\n")


def _open_log() -> FileIO:
    # Appending, so that the worker writes at the start again after the file was truncated.
    handle, name = tempfile.mkstemp(prefix="s3commit-worker-")
    Path(name).unlink()
    fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | os.O_APPEND)
    return FileIO(handle, "a+")


def _error(kind: str, request_id: str, text: str) -> bytes:
    message = f"RequestId: {request_id} Error: {text}"
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()
