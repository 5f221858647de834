"""A world that is swept, and the jobs that its tests leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

from s3commit.core.commit.seal_job import seal_job
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.ports.objects import ObjectStore, UploadParts
from s3commit.core.sweep.report import Report
from s3commit.core.sweep.steps import STEPS, run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep
from s3commit.core.sweep.turns import Sitting, SweepTurn, call_step
from tests.core.world import BUCKET, World
from tests.fakes.executions import MemoryExecutions

T = TypeVar("T")

LIMITS = Limits()
MINUTE = 60


@dataclass
class Swept(World):
    """A world that is swept; an execution that the sweep starts runs when `settle` is called."""

    limits: Limits = LIMITS
    call_items: int = 5_000
    asked_at_once: int = 1_000
    calls: int = 0
    executions: MemoryExecutions = field(default_factory=MemoryExecutions)
    settled: set[str] = field(default_factory=set)

    def sweep(self, *, dry_run: bool = False) -> Report:
        executions = self.plan.wrap(self.executions)
        told: set[str] = set()

        def make(report: Report) -> Sweep:
            self.calls += 1
            return Sweep(
                BUCKET,
                self.ports,
                executions,
                self.limits,
                report,
                dry_run=dry_run,
                told=told,
                call_items=self.call_items,
                asked_at_once=self.asked_at_once,
            )

        return run_sweep(make)

    def settle(self) -> None:
        """What the started executions do."""
        for name, directory in self.executions.started.items():
            if name not in self.settled:
                self.settled.add(name)
                self.run(directory, name)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)


class Around:
    """A store with some of its calls made otherwise."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class TimedStore(Around):
    """Each question for parts takes its time. It becomes the world's store."""

    def __init__(self, world: Swept, *, seconds: float) -> None:
        super().__init__(world.store)
        self.asked: list[str] = []
        self._wait = partial(world.later, seconds)
        world.ports = replace(world.ports, store=cast("ObjectStore", self))

    def upload_parts(self, bucket: str, key: str, upload_id: str) -> UploadParts:
        self.asked.append(key)
        self._wait()
        return self.store.upload_parts(bucket, key, upload_id)


class Requests:
    """Counts what is asked of ports: a request each call, and each further page of a listing."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, port: T) -> T:
        """The port, counted."""
        return cast("T", _Counted(self, port))


class _Counted:
    def __init__(self, requests: Requests, port: object) -> None:
        self._requests = requests
        self._port = port

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            self._requests.count += 1
            answer = attribute(*args, **kwargs)
            return self._pages(answer) if isinstance(answer, Iterator) else answer

        return method

    def _pages(self, entries: Iterator[Any]) -> Iterator[Any]:
        for number, entry in enumerate(entries):
            if number and number % 1_000 == 0:
                self._requests.count += 1
            yield entry


@dataclass
class Schedule:
    """The deployed sweep, pass by pass, with S3's requests counted; ``calls`` are each call's."""

    world: Swept
    requests: Requests = field(default_factory=Requests)
    passes: int = 0
    calls: dict[str, list[int]] = field(default_factory=dict)
    store: ObjectStore | None = None  # instead of the world's

    def sweep(self) -> Report:
        """One pass; ``calls`` then are those of this one."""
        world, report = self.world, Report()
        ports = replace(world.ports, store=self.requests.of(self.store or world.store))

        def make(turn: SweepTurn) -> Sweep:
            return Sweep(
                BUCKET,
                ports,
                world.executions,
                world.limits,
                report,
                began=turn.began,
                before=turn.before,
                put_off=dict(turn.put_off),
            )

        self.passes, self.calls = self.passes + 1, {}
        for name, step in STEPS.items():
            self.calls[name], more = [], True
            while more:
                before = self.requests.count
                now = world.clock.now()
                sitting = Sitting(world.ledger, f"sweep-{self.passes}", now)
                more = call_step(sitting, make, name, step, first=not self.calls[name])
                self.calls[name].append(self.requests.count - before)
        Sitting(world.ledger, f"sweep-{self.passes}", world.clock.now()).leave()
        return report

    @property
    def spent(self) -> int:
        """The requests of the last pass."""
        return sum(map(sum, self.calls.values()))


def sealed(world: Swept, directory: JobDirectory, *, execution: str = "execution-1") -> None:
    """A job whose execution died behind its first step."""
    world.request(directory, world.attempt(directory, "t0"))
    seal_job(world.ports, Ticket(directory.job_id, BUCKET, directory.prefix, execution=execution))


def abandoned_at(world: Swept, directory: JobDirectory) -> str:
    """The reason with which the job was given up; empty if it was not."""
    if world.store.head(BUCKET, directory.request) is None:
        return ""
    return str(world.json(directory.request).get("reason", ""))


def announced(world: Swept, directory: JobDirectory, **spec: Any) -> None:
    """An OPEN job with one manifest that the ledger has heard of."""
    world.open(directory, **spec)
    world.announce(directory, world.attempt(directory, "t0"))


def ended(world: Swept, directory: JobDirectory) -> None:
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
