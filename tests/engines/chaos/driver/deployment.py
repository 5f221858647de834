"""`s3commit local up` in a process of its own, its sweep without any patience, and who kills."""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Deployed, runtime

# S3's clock can't be turned back, so it is the limits that are moved: all that is not new is old.
IMPATIENT = {"stuckMinutes": 0, "abandonedHours": 0, "retentionDays": 30}


@contextmanager
def local_up() -> Iterator[Deployed]:
    """The runtime; this process's AWS configuration leads to it."""
    with runtime() as deployed, pytest.MonkeyPatch.context() as patch:
        for name, value in deployed.environment.items():
            patch.setenv(name, value)
        patch.setenv("S3COMMIT_STATE_MACHINE", deployed.stateMachine)
        yield deployed


def sweep(functions: Any, **limits: int) -> Mapping[str, Any]:
    """Call the deployed sweep by a client of Lambda; what it reports, or how it failed."""
    time.sleep(1.1)  # S3's times are whole seconds: what was just written is new
    listed = functions.list_functions()["Functions"]
    (name,) = [one["FunctionName"] for one in listed if one["Handler"] == "sweep.handler"]
    answer = functions.invoke(FunctionName=name, Payload=json.dumps(IMPATIENT | limits))
    report: Mapping[str, Any] = json.loads(answer["Payload"].read())
    return report


# Killing a client as a machine that goes down does: every process of its session, at once


WAIT_SECONDS = 30


def session(leader: int) -> list[int]:
    """The living processes of the session that ``leader`` began, it may be dead itself.

    Spark's Python workers have a process group of their own, and lose their parent with the JVM;
    they stay in the session. Fields of ``/proc/<pid>/stat``: proc(5).
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def kill_session(leader: int) -> None:
    """Stop all of them, then kill all of them: none sees another one die. Returns when dead."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in session(leader):
            kill(pid, number)
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        left = session(leader)
        if not left:
            return
        for pid in left:  # forked meanwhile
            kill(pid)
        time.sleep(0.01)
    raise AssertionError(f"processes {session(leader)} do not die")


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send the signal, if the process is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
