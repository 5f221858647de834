"""CPU time and memory of processes and their descendants, read from ``/proc`` (Linux).

Fields of ``/proc/<pid>/stat`` and ``/proc/<pid>/status``: proc(5). Times have the kernel's clock
tick, 10 ms.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

PROC: Final = Path("/proc")
TICK: Final = 1 / os.sysconf("SC_CLK_TCK")
LOOK_SECONDS: Final = 0.25
_GONE: Final = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class Stat:
    """One process. ``own`` is its CPU time, ``reaped`` that of descendants it has waited for; s.

    ``born`` is when it started, in ticks since boot: process ids are used again.
    """

    pid: int
    born: int
    parent: int
    own: float
    reaped: float

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line of ``stat``; the name in it may hold spaces and parentheses."""
        head, _, tail = line.rpartition(")")
        fields = tail.split()  # fields[0] is field 3 of proc(5)
        user, system, child_user, child_system = (int(field) * TICK for field in fields[11:15])
        return cls(
            pid=int(head.split(" ", 1)[0]),
            born=int(fields[19]),
            parent=int(fields[1]),
            own=user + system,
            reaped=child_user + child_system,
        )


def tree(root: int) -> list[Stat]:
    """The process ``root`` and its living descendants, ``root`` first; empty if it is not there."""
    found, wanted = [], [root]
    while wanted:
        pid = wanted.pop()
        with contextlib.suppress(*_GONE):
            found.append(Stat.parse((PROC / str(pid) / "stat").read_text()))
            wanted.extend(_children(pid))
    return found


class Meter:
    """CPU time of a process and of its descendants while it is entered.

    Those that end meanwhile count too. PySpark's daemon does not wait for its workers, so the
    kernel drops their times: a thread looks several times a second and remembers what it saw.
    ``own`` and ``below`` are set at the end, in seconds.
    """

    def __init__(self, root: int) -> None:
        self.own = 0.0
        self.below = 0.0
        self._root = root
        self._first: dict[tuple[int, int], Stat] = {}
        self._last: dict[tuple[int, int], Stat] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bench-meter")

    def __enter__(self) -> Self:
        self._look()
        self._first = dict(self._last)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        for key, stat in self._last.items():
            before = self._first.get(key)
            own = stat.own - (before.own if before else 0.0)
            self.below += stat.reaped - (before.reaped if before else 0.0)
            if stat.pid == self._root:
                self.own += own
            else:
                self.below += own

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        self._last.update({(stat.pid, stat.born): stat for stat in tree(self._root)})


def reset_peaks(pid: int) -> None:
    """Let the peak of every living descendant start again from what it holds now."""
    for stat in tree(pid)[1:]:
        reset_peak(stat.pid)


def reset_peak(pid: int) -> int:
    """Let the peak of the process start again from what it holds now; return that, in bytes."""
    (PROC / str(pid) / "clear_refs").write_text("5")
    return peak(pid)


def largest_peak(pid: int) -> int:
    """The largest peak resident size (VmHWM) among the living descendants, in bytes."""
    return max((peak(stat.pid) for stat in tree(pid)[1:]), default=0)


def peak(pid: int) -> int:
    """The peak resident size (VmHWM) of the process in bytes; 0 if it is gone."""
    try:
        text = (PROC / str(pid) / "status").read_text()
    except _GONE:
        return 0
    for line in text.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0  # a zombie has no memory


def _children(pid: int) -> Iterator[int]:
    """Asked of the process, since reading all of ``/proc`` would cost what is measured."""
    for thread in (PROC / str(pid) / "task").iterdir():
        with contextlib.suppress(*_GONE):
            yield from map(int, (thread / "children").read_text().split())
