"""The first lines of a worker process; run by path, isolated (``python -I -S``).

The worker sees what a Lambda function sees: its code, its layers, the runtime interface client and
the standard library, and nothing of the environment that started it. It ends with its parent,
which holds the other end of stdin and never writes.
"""

import importlib
import json
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

# Headers that no call of the embedded runtime has.
_NO_HEADERS: dict[str, None] = dict.fromkeys(
    ("x_amzn_trace_id", "client_context", "cognito_identity", "tenant_id", "invocation_id")
)


def _end_with_parent() -> None:
    os.read(0, 1)  # returns when the parent closes the pipe, or dies
    os.kill(os.getpid(), signal.SIGKILL)


class _Channel:
    """The calls of the runtime interface client to Lambda's Runtime API, through a pipe.

    https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
    """

    def __init__(self) -> None:
        client = importlib.import_module("awslambdaric.lambda_runtime_client")
        marshaller = importlib.import_module("awslambdaric.lambda_runtime_marshaller")
        self.marshaller = marshaller.LambdaMarshaller()
        self._request = client.InvocationRequest
        self._parent = Connection(int(os.environ.pop("S3COMMIT_WORKER_CHANNEL")))
        self._is_ready = False

    def wait_next_invocation(self) -> Any:
        if not self._is_ready:
            self._parent.send({"ready": ""})
            self._is_ready = True
        call = self._parent.recv()
        return self._request(content_type="application/json", **_NO_HEADERS, **call)

    def post_invocation_result(self, _id: str, result: str, *_: object) -> None:
        self._parent.send({"result": result})

    def post_invocation_error(self, _id: str, error: str, *_: object) -> None:
        self._parent.send({"error": error})

    def post_init_error(self, error: dict[str, Any]) -> None:
        self._parent.send({"error": json.dumps(error)})


def main() -> None:
    """Set up the path, watch the parent, and become awslambdaric."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # A Lambda function looks in its code, then in /opt/python, then in the runtime's directory.
    # https://docs.aws.amazon.com/lambda/latest/dg/python-package.html#python-package-searchpath
    search: list[str] = json.loads(os.environ.pop("S3COMMIT_WORKER_PATH"))
    *first, runtime = search
    sys.path[:] = [*first, *sys.path, runtime]
    importlib.import_module("awslambdaric.bootstrap").run(os.environ["_HANDLER"], _Channel())


if __name__ == "__main__":
    main()
