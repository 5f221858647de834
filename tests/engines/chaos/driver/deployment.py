"""`s3commit local up` in a process of its own, and its deployed sweep with no patience at all."""

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
IMPATIENT = {"stuckMinutes": 0, "abandonedHours": 0, "orphanedDays": 0}
MACHINE = "SweepAtOnce"


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
            _add_sweep(deployed)
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
    """Run it to its end; what it reports."""
    time.sleep(1.1)  # S3's times are whole seconds: what was just written is new
    machines = deployed.client("stepfunctions")
    arn = _machines(deployed)[MACHINE]
    started = machines.start_execution(stateMachineArn=arn, input="{}")["executionArn"]

    def ended() -> Any:
        found = machines.describe_execution(executionArn=started)
        # moto sets the output a moment after the status.
        has_ended = found["status"] not in {"RUNNING", "SUCCEEDED"} or "output" in found
        return found if has_ended else None

    try:
        found = until(ended, "the sweep")
    except AssertionError as error:
        history = machines.get_execution_history(executionArn=started)["events"]
        raise AssertionError(f"{error}: {history[-12:]}") from error
    assert found["status"] == "SUCCEEDED", found
    report: Mapping[str, Any] = json.loads(found["output"])["report"]
    assert report["failed"] == 0, report
    return report


def _machines(deployed: Deployed) -> dict[str, str]:
    listed = deployed.client("stepfunctions").list_state_machines()["stateMachines"]
    return {one["name"]: one["stateMachineArn"] for one in listed}


def _add_sweep(deployed: Deployed) -> None:
    """The deployed machine, functions and role, under another name and with other limits."""
    machines = deployed.client("stepfunctions")
    (arn,) = [arn for name, arn in _machines(deployed).items() if "Sweep" in name]
    found = machines.describe_state_machine(stateMachineArn=arn)
    definition = json.loads(found["definition"])
    for state in definition["States"].values():
        if "Parameters" in state:
            state["Parameters"]["Payload"]["limits"] |= IMPATIENT
    machines.create_state_machine(
        name=MACHINE, definition=json.dumps(definition), roleArn=found["roleArn"]
    )
