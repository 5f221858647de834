"""`s3commit local up` in a process of its own, and its deployed sweep without any patience."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.e2e.conftest import ROOT, STOP_SECONDS, Deployed

WAIT_SECONDS = 120
# S3's clock can't be turned back, so it is the limits that are moved: all that is not new is old.
IMPATIENT = {"stuckMinutes": 0, "abandonedHours": 0, "retentionDays": 30}


@contextmanager
def local_up() -> Iterator[Deployed]:
    """The runtime; this process's AWS configuration leads to it."""
    command = [sys.executable, "-m", "s3commit", "local", "up", "--project", str(ROOT)]
    before = dict(os.environ)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"s3commit local up ended with {process.wait(STOP_SECONDS)}"
            deployed = Deployed(**json.loads(line))
            os.environ.update(deployed.environment)
            os.environ["S3COMMIT_STATE_MACHINE"] = deployed.stateMachine
            yield deployed
        finally:
            os.environ.clear()
            os.environ.update(before)
            process.send_signal(signal.SIGINT)
            assert process.wait(STOP_SECONDS) == 0


def until(look: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """The first answer of ``look`` that is not empty."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited in vain: {what}")


def sweep(deployed: Deployed) -> Mapping[str, Any]:
    """Call the deployed sweep; what it reports."""
    time.sleep(1.1)  # S3's times are whole seconds: what was just written is new
    functions = deployed.client("lambda")
    listed = functions.list_functions()["Functions"]
    (name,) = [one["FunctionName"] for one in listed if one["Handler"] == "sweep.handler"]
    answer = functions.invoke(FunctionName=name, Payload=json.dumps(IMPATIENT))
    report: Mapping[str, Any] = json.loads(answer["Payload"].read())
    assert report.get("failed") == 0, report
    return report
