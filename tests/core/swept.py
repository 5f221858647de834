"""A world that is swept, and the jobs that its tests leave behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from s3commit.core.layout import JobDirectory
from s3commit.core.protocol.seal import seal_job
from s3commit.core.protocol.sweep import Limits, Sweep
from s3commit.core.protocol.sweep_report import Report
from s3commit.core.protocol.sweep_steps import run_sweep
from s3commit.core.survey import UploadParts
from s3commit.core.ticket import Ticket
from s3commit.testing.survey import MemoryExecutions, MemorySurvey
from tests.core.world import BUCKET, World

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
        survey = self.plan.wrap(MemorySurvey(self.store))
        executions = self.plan.wrap(self.executions)
        told: set[str] = set()

        def make(report: Report) -> Sweep:
            self.calls += 1
            return Sweep(
                BUCKET,
                self.pipeline,
                survey,
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
        for name, place in self.executions.started.items():
            if name not in self.settled:
                self.settled.add(name)
                self.run(place, name)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)


class TimedSurvey(MemorySurvey):
    """Each question for parts takes its time."""

    def __init__(self, world: Swept, *, seconds: float) -> None:
        super().__init__(world.store)
        self.asked: list[str] = []
        self._wait = partial(world.later, seconds)

    def parts(self, bucket: str, key: str, upload_id: str) -> UploadParts:
        self.asked.append(key)
        self._wait()
        return super().parts(bucket, key, upload_id)


def sealed(world: Swept, place: JobDirectory, *, execution: str = "execution-1") -> None:
    """A job whose execution died behind its first step."""
    world.open(place)
    world.request(place, world.attempt(place, "t0"))
    seal_job(world.pipeline, Ticket(place.job_id, BUCKET, place.prefix, execution=execution))


def abandoned_at(world: Swept, place: JobDirectory) -> str:
    """The reason with which the job was given up; empty if it was not."""
    if world.store.head(BUCKET, place.request) is None:
        return ""
    return str(world.json(place.request).get("reason", ""))


def announced(world: Swept, place: JobDirectory, **spec: Any) -> None:
    """An OPEN job with one manifest that the ledger has heard of."""
    world.open(place, **spec)
    world.announce(place, world.attempt(place, "t0"))


def ended(world: Swept, place: JobDirectory) -> None:
    world.open(place)
    world.request(place, world.attempt(place, "t0"))
    world.run(place)
