"""Killing a client as a machine that goes down does: every process of its session, at once."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

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
