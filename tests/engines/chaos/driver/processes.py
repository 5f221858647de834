"""Killing a client as a machine that goes down does: every process of its session, at once."""

from __future__ import annotations

import os
import re
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


def process_at(port: int, server: int, leader: int) -> int:
    """The process of the session whose connection leads from ``port`` to the port ``server``.

    Both are of 127.0.0.1; connections to other servers may have the same port (proc_pid_net(5)).
    """
    ends = f"0100007F:{port:04X} 0100007F:{server:04X}"
    pattern = rf"^ *\d+: {ends} (?:\S+ +){{6}}(\d+) "
    inode = re.search(pattern, Path("/proc/net/tcp").read_text(), re.MULTILINE)
    assert inode, f"nobody has port {port}"
    for pid in session(leader):
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                if str(descriptor.readlink()) == f"socket:[{inode[1]}]":
                    return pid
    raise AssertionError(f"no process of session {leader} has port {port}")
