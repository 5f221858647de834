"""The first lines of a function's process; run by path, isolated (``python -I -S -B``).

They make the search path as Lambda does, start AWS's runtime interface client, and note each file
that is opened:
https://docs.aws.amazon.com/lambda/latest/dg/python-package.html#python-package-searchpath
https://docs.python.org/3/library/audit_events.html
"""

import importlib
import json
import os
import sys
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR


def main() -> None:
    """Become awslambdaric."""
    note = os.open(os.environ.pop("JUDGE_NOTES"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    task, layer, client = json.loads(os.environ.pop("JUDGE_PATH"))

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(given[0], str):
            os.write(note, json.dumps([given[0], bool(given[2] & WRITES)]).encode() + b"\n")
        elif event == "import" and given[1]:  # an extension, which is not opened by Python
            os.write(note, json.dumps([given[1], False]).encode() + b"\n")

    sys.path[:] = [task, layer, *sys.path, client]
    sys.addaudithook(hook)
    importlib.import_module("awslambdaric.__main__").main(["", os.environ["_HANDLER"]])


if __name__ == "__main__":
    main()
