"""Processes that run one at a time, in an order that a seed decides.

Each is a greenlet. It gives the baton back at every port call (`Scheduler.pause`), when it sleeps,
and when it waits for others; then the scheduler picks who runs next. Time passes only when nobody
can run, or when a fault lets it jump.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import greenlet

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.limits import FUNCTION_CLOCKS, LONGEST_CALL, S3_CLOCKS
from s3commit.core.model.states import IllegalTransitionError
from tests.fakes.faults import Crash

# By how much the clocks of functions, and those of S3's hosts, are wrong: any two of them differ
# by as much as A7 says, and no more.
_SKEWS = [share * FUNCTION_CLOCKS for share in (-0.5, -0.1, 0.1, 0.5)]
_HOSTS = [share * S3_CLOCKS for share in (-0.5, 0.0, 0.0, 0.5)]
FUNCTIONS = frozenset({"pipeline", "sweep"})  # roles
START = datetime(2026, 11, 21, 22, tzinfo=UTC)


class Violation(BaseException):
    """An invariant does not hold; what was seen."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")


@dataclass(eq=False)
class Process:
    """One thread of execution; ``job`` is the name of the job for which it acts."""

    name: str
    body: Callable[[], Any]
    role: str
    job: str
    skew: float = 0.0
    priority: float = 0.0
    since: int = 0
    begun: float = 0.0  # seconds; when its call began
    writes: int = 0
    about: Any = None  # what the observer has to know of it
    effects: Counter[str] = field(default_factory=Counter)
    shown: set[tuple[str, str]] = field(default_factory=set)  # keys, each with an etag it had
    deleted_at: int = 0  # the step of its last delete
    let: Any = None
    awaited: set[Process] = field(default_factory=set)
    waiters: set[Process] = field(default_factory=set)
    done: bool = False
    result: Any = None
    error: BaseException | None = None


def moment(seconds: float) -> str:
    """So many seconds after the start, as RFC 3339 in UTC."""
    later = START + timedelta(seconds=seconds)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class S3Clock:
    """The present by one of S3's hosts, each time another one, in whole seconds."""

    scheduler: Scheduler
    hosts: random.Random

    def now(self) -> str:
        """The present as RFC 3339 in UTC."""
        seconds = self.scheduler.seconds + self.hosts.choice(_HOSTS)
        return moment(math.floor(seconds))


class Scheduler:
    """Runs processes until none is left; every choice comes from ``rng``."""

    def __init__(self, rng: random.Random, *, max_steps: int) -> None:
        self.rng = rng
        self.seconds = 0.0
        self.steps = 0
        self.max_steps = max_steps
        self.current: Process | None = None
        self.violation: Violation | None = None
        self.stopped = False
        self.living: list[Process] = []
        self._ready: list[Process] = []
        self._asleep: list[tuple[float, Process]] = []
        self._hub = greenlet.getcurrent()
        self._hosts = random.Random(max_steps)
        # Three ways to choose: anyone; mostly whoever runs; the highest of random priorities.
        self._by_priority = rng.random() < 0.3
        self._stay = rng.choice([0.0, 0.5, 0.8, 0.95])

    def spawn(self, name: str, body: Callable[[], Any], *, role: str, job: str) -> Process:
        """A new process, ready to run."""
        skew = self.rng.choice(_SKEWS) if self.rng.random() < 0.03 else 0.0
        process = Process(name, body, role, job, skew, self.rng.random(), self.steps, self.seconds)
        process.let = greenlet.greenlet(lambda: self._run(process), parent=self._hub)
        self._ready.append(process)
        self.living.append(process)
        return process

    def pause(self) -> None:
        """Let the scheduler choose who goes on."""
        if self.stopped:
            raise greenlet.GreenletExit
        self._hub.switch()

    def begin_call(self) -> None:
        """The running process is called anew."""
        self._me().begun = self.seconds

    def left(self) -> float:
        """How long the running process may live on, in seconds: no function has more."""
        process = self._me()
        limit = LONGEST_CALL if process.role in FUNCTIONS else math.inf
        return process.begun + limit - self.seconds

    def sleep(self, seconds: float) -> None:
        """Go on when so much time has passed."""
        process = self._me()
        self._ready.remove(process)
        self._asleep.append((self.seconds + seconds, process))
        self.pause()

    def wait_until_shown(self, key: str, etag: str) -> None:
        """Go on some steps after a living process was shown the object, or after a while."""
        for _ in range(300):
            if any((key, etag) in one.shown for one in self.living):
                break
            self.sleep(0.002)
        for _ in range(self.rng.randrange(20)):
            self.pause()

    def join(self, *processes: Process) -> None:
        """Go on when all of them have ended."""
        process = self._me()
        process.awaited = {other for other in processes if not other.done}
        if not process.awaited:
            return
        for other in process.awaited:
            other.waiters.add(process)
        self._ready.remove(process)
        self.pause()

    def run(self) -> None:
        """Run until all processes have ended. Raises the `Violation` that was found."""
        while self._ready or self._asleep:
            if not self._ready:
                self._wake()
            process = self._choose()
            self.current = process
            self.steps += 1
            process.let.switch()
            self.current = None
            if self.violation is not None:
                raise self.violation
            if self.steps > self.max_steps:
                raise Violation("progress", f"not at an end after {self.steps} steps")

    def now(self) -> str:
        """The present, by the clock of the machine that the current process runs on."""
        return moment(self.seconds + (self.current.skew if self.current else 0.0))

    @property
    def s3_clock(self) -> S3Clock:
        return S3Clock(self, self._hosts)

    def _me(self) -> Process:
        assert self.current is not None
        return self.current

    def _run(self, process: Process) -> None:
        try:
            process.result = process.body()
        except Violation as violation:
            self.violation = self.violation or violation
        except greenlet.GreenletExit:
            return
        except (S3CommitError, Crash) as error:  # whoever waits for it looks at it
            process.error = error
            if isinstance(error, IllegalTransitionError):
                self.violation = Violation("states", f"{process.name}: {error}")
        except Exception as error:
            self.violation = Violation("code", f"{process.name}: {error!r}")
        process.done = True
        self._ready.remove(process)
        self.living.remove(process)
        for waiter in sorted(process.waiters, key=lambda one: one.name):
            waiter.awaited.discard(process)
            if not waiter.awaited:
                self._ready.append(waiter)

    def _wake(self) -> None:
        first = min(wake for wake, _ in self._asleep)
        self.seconds = max(self.seconds, first)
        self._ready = [process for wake, process in self._asleep if wake <= first]
        self._asleep = [one for one in self._asleep if one[0] > first]

    def _choose(self) -> Process:
        self.seconds += 0.001
        self._wake_due()
        ready, rng = self._ready, self.rng
        if len(ready) == 1:
            self._last = ready[0]
        elif self._by_priority:
            chosen = max(ready, key=lambda process: process.priority)
            if rng.random() < 0.03:
                chosen.priority -= 1.0
            self._last = chosen
        elif self._last not in ready or rng.random() >= self._stay:
            self._last = ready[int(rng.random() * len(ready))]
        return self._last

    _last: Process | None = None

    def _wake_due(self) -> None:
        due = [process for wake, process in self._asleep if wake <= self.seconds]
        if due:
            self._ready.extend(due)
            self._asleep = [one for one in self._asleep if one[0] > self.seconds]


def fail(invariant: str, seen: str) -> NoReturn:
    raise Violation(invariant, seen)
