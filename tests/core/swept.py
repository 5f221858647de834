"""A world that is swept, and the jobs that its tests leave behind."""

from dataclasses import dataclass, field
from typing import Any

from s3commit.aws import env
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.sweep.actions import SweepReport
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep
from tests.core.world import BUCKET, World
from tests.fakes.executions import MemoryExecutions

LIMITS = Limits.of(env.SWEEP_LIMITS)
MINUTE = 60


@dataclass
class Swept(World):
    """A world that is swept; an execution that the sweep starts runs when `settle` is called."""

    limits: Limits = LIMITS
    executions: MemoryExecutions = field(default_factory=MemoryExecutions)
    settled: set[str] = field(default_factory=set)

    def sweep(self, *, dry_run: bool = False) -> SweepReport:
        executions = self.plan.wrap(self.executions)
        return run_sweep(Sweep(self.ports, executions, self.limits, dry_run=dry_run))

    def settle(self) -> None:
        """What the started executions do."""
        for name, directory in self.executions.started.items():
            if name not in self.settled:
                self.settled.add(name)
                self.run(directory, name)

    def sweep_and_settle(self) -> SweepReport:
        report = self.sweep()
        self.settle()
        return report

    def comes_to_its_turn(self, sweeps: int) -> None:
        """Sweep, so many times at most, until something is started."""
        for _ in range(sweeps):
            self.later(self.limits.stuck + 1)
            self.plan.forget_calls()
            if self.sweep_and_settle().started:
                return
        raise AssertionError("its turn never came")

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)


def sealed(world: Swept, directory: JobDirectory) -> None:
    """A job whose execution died behind its first step."""
    world.ask(directory)
    ticket = Ticket(directory.job_id, BUCKET, directory.prefix, execution="execution-1")
    seal_job(world.ports, ticket)


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
    world.commit(directory)
