"""One worker process: a function's environment that is started once and called many times."""

import json
import os
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path

RUNTIME = "runtime"  # the folder of the runtime interface client
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
    """The outcome of a call: the payload of the answer, or of the error if ``failed``."""

    payload: bytes
    failed: bool
    logs: str


# Of a call for which there is no environment: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
THROTTLED = CallOutcome(b'{"errorType": "TooManyRequestsException"}', True, "")


class Worker:
    """Starts immediately; `invoke` waits until it is ready. Not for two calls at a time.

    ``directory`` has the runtime interface client, and gets a log. ``id`` is also the access key
    with which its requests are signed.
    """

    def __init__(self, spec: FunctionSpec, directory: Path, environment: dict[str, str]) -> None:
        self.spec = spec
        self.id = uuid.uuid4().hex
        self._is_ready = False
        self._channel, theirs = Pipe()
        # All layers are one /opt in Lambda, where a later one covers an earlier one.
        layers = [layer / "python" for layer in reversed(spec.layers)]
        search = [spec.code, *layers, directory / RUNTIME]
        own = {
            "_HANDLER": spec.handler,
            "S3COMMIT_WORKER_PATH": json.dumps([str(path) for path in search]),
            "S3COMMIT_WORKER_CHANNEL": str(theirs.fileno()),
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
        log = directory / f"{self.id}.log"
        with theirs, log.open("wb") as written:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(BOOTSTRAP)],
                env=inherited | environment | dict(spec.environment) | own,
                cwd=spec.code,
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._log = log.open("rb")

    @property
    def alive(self) -> bool:
        """It can take another call."""
        return self._process.poll() is None

    def invoke(self, payload: bytes) -> CallOutcome:
        """Call the handler with ``payload`` (JSON) and wait for what comes of it."""
        request_id = str(uuid.uuid4())
        if not self._is_ready:
            answer = self._answer(request_id, INIT_LIMIT)
            if "error" in answer:
                self.kill()
                return self._outcome(answer)
            self._is_ready = True
        timeout = self.spec.timeout
        call = {
            "invoke_id": request_id,
            "invoked_function_arn": self.spec.arn,
            "deadline_time_in_ms": int((time.time() + timeout) * 1000),
            "event_body": payload.decode(),
        }
        with suppress(OSError):  # it has ended: no answer comes
            self._channel.send(call)
        return self._outcome(self._answer(request_id, timeout))

    def kill(self) -> None:
        """End the process, whatever it does, and wait until it has ended."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and let its log and channel go; for when no call runs."""
        self.kill()
        self._log.close()
        self._channel.close()
        if self._process.stdin:
            self._process.stdin.close()

    def _answer(self, request_id: str, seconds: float) -> dict[str, str]:
        """The next message of the process, or the error for which there is none.

        It sends one when its handler is imported, and one for each call.
        """
        try:
            if self._channel.poll(seconds):
                return dict(self._channel.recv())
            self.kill()
            kind, text = "Sandbox.Timedout", f"Task timed out after {seconds:.2f} seconds"
        except (EOFError, OSError):
            status = self._process.wait()
            kind, text = "Runtime.ExitError", f"Runtime exited with error: exit status {status}"
        message = f"RequestId: {request_id} Error: {text}"
        return {"error": json.dumps({"errorType": kind, "errorMessage": message})}

    def _outcome(self, answer: dict[str, str]) -> CallOutcome:
        """With the worker's output since the last call: a file has all of it."""
        ((kind, payload),) = answer.items()
        logs = self._log.read().decode(errors="replace").replace("\r", "\n")
        return CallOutcome(payload.encode(), kind == "error", logs)
