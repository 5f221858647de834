"""The first lines of a worker process; run by path, isolated (``python -I -S``).

The worker sees what a Lambda function sees: its code, its layers, the runtime interface client and
the standard library, and nothing of the environment that started it. It ends with its parent: the
parent holds the other end of stdin and never writes.
"""

import copy
import importlib
import json
import os
import runpy
import signal
import sys
import threading


def _end_with_parent() -> None:
    os.read(0, 1)  # returns when the parent closes the pipe, or dies
    os.kill(os.getpid(), signal.SIGKILL)


def _report_init_errors_below_the_prefix() -> None:
    # The native client takes an address with a path, the Python one that reports a failed import
    # takes host and port only.
    client = importlib.import_module("awslambdaric.lambda_runtime_client").BaseLambdaRuntimeClient
    original = client.call_rapid

    def call_rapid(self, method, endpoint, *rest, **named):  # type: ignore[no-untyped-def]
        host, _, prefix = self.lambda_runtime_address.partition("/")
        plain = copy.copy(self)
        plain.lambda_runtime_address = host
        return original(plain, method, f"/{prefix}{endpoint}", *rest, **named)

    client.call_rapid = call_rapid


def main() -> None:
    """Set up the path, watch the parent, and become awslambdaric."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    # A Lambda function looks in its code, then in /opt/python, then in the runtime's directory.
    # https://docs.aws.amazon.com/lambda/latest/dg/python-package.html#python-package-searchpath
    search: list[str] = json.loads(os.environ.pop("S3COMMIT_WORKER_PATH"))
    *first, runtime = search
    sys.path[:] = [*first, *sys.path, runtime]
    sys.argv = ["awslambdaric", os.environ["_HANDLER"]]
    _report_init_errors_below_the_prefix()
    runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
