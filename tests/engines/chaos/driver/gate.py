"""The requests of one driver as they pass the wire: named and counted, and at one of them it dies.

So it is known for sure whether a request was executed when the driver dies.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from s3commit.core.formats.layout import COMMITS, MAGIC_PREFIX
from tests.engines.chaos.left import s3
from tests.engines.chaos.wire import Call, Fault
from tests.engines.sim.clients import BUCKET

RESULT = "_result.json"
REQUEST = "_request.json"
THE_RESULT = "the result"  # the first look at _result.json that finds it


class How(StrEnum):
    """Who dies at the chosen request, and what becomes of it."""

    BEFORE = "before"  # all of the driver dies; the request is never executed
    AFTER = "after"  # all of the driver dies; the request was executed, its answer is lost
    ZOMBIE = "zombie"  # the driver's Python dies, the rest stalls here until all else is over


@dataclass(frozen=True, order=True)
class Point:
    """The ``nth`` request (from 1) of that name."""

    name: str
    nth: int
    how: How

    def __str__(self) -> str:
        return f"{self.how} {self.name} {self.nth}"


def name_of(call: Call) -> str:
    """What the request is to the protocol."""
    method, _, kind = call.operation.partition(" ")
    base = call.key.rpartition("/")[2]
    if kind.startswith("uploadId"):
        aborts = "abort upload" if method == "DELETE" else f"{method} upload"
        return kind.partition(" ")[2] or aborts
    if kind in {"notification", "uploads"}:
        return {"notification": "probe", "uploads": "start upload"}[kind]
    if base == REQUEST and b'"abort"' in call.body:
        return "abort request"
    if base == RESULT:
        return THE_RESULT if call.key in s3(BUCKET).keys else RESULT
    for part, name in ((".pendingset", "manifest"), (f"/{COMMITS}_once/", "key")):
        if part in call.key:
            base = name
    return base if method == "PUT" else f"{method} {base}"


class Gate:
    """Strikes once, at ``point``; ``strike`` does the killing, then ``struck`` is set."""

    def __init__(self, point: Point | None, strike: Callable[[How], None]) -> None:
        self.point = point
        self.struck, self._released = threading.Event(), threading.Event()
        self.asked_at = time.monotonic()  # the last time that the driver asked for anything
        self.requests: list[tuple[str, int]] = []  # by name, each with its number
        self.answers: set[tuple[str, int]] = set()  # the status of what may have changed something
        self.jobs: set[str] = set()  # in whose directories it has put something
        self.requested: set[str] = set()  # whose commit it has asked for
        self._strike = strike
        self._counts = Counter[str]()
        self._lock = threading.Lock()
        self._dead = False

    def fault(self, call: Call) -> Fault | None:
        """What happens to a request of the driver."""
        name, self.asked_at = name_of(call), time.monotonic()
        with self._lock:
            if self._dead:  # what it sent before it died
                return Fault("reset", executed=False)
            self._counts[name] += 1
            seen = (name, self._counts[name])
            self.requests.append(seen)
            if self.point is None or seen != (self.point.name, self.point.nth):
                return None
            self._dead = self.point.how is not How.ZOMBIE
        if self._dead:
            return Fault("kill", executed=self.point.how is How.AFTER)
        self.kill(call)
        self._released.wait()
        return None

    def release(self) -> None:
        """Let a zombie go on."""
        self.asked_at = time.monotonic()
        self._released.set()

    def kill(self, _call: Call) -> None:
        assert self.point is not None
        self._strike(self.point.how)
        self.struck.set()

    def notice(self, call: Call, status: int) -> None:
        """A request has been executed that may have changed something."""
        name = name_of(call)
        self.answers.add((name, status))
        job = call.key.partition(f"/{MAGIC_PREFIX}")[2].partition("/")[0]
        if job and status == 200:
            self.jobs.add(job)
            if name == REQUEST:
                self.requested.add(job)
