"""A world that can be checked, and one whose ledger can be lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from s3commit.core.check import Report, check
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.rebuild import Rebuilder, Rebuilt, rebuild
from tests.core.world import BUCKET, World

SALES = Destination(BUCKET, "sales/")


@dataclass
class FakeHands:
    """Executions that a test says are running; those that are started are only noted."""

    running: set[str] = field(default_factory=set)
    started: list[tuple[str, int]] = field(default_factory=list)

    def is_running(self, directory: JobDirectory, record: JobRecord) -> bool:
        return directory.job_id in self.running

    def start(self, directory: JobDirectory, record: JobRecord) -> bool:
        self.started.append((directory.job_id, record.generation))
        return True


@dataclass
class Checked:
    """A world under check; ``ports`` stands for the check's own connection."""

    world: World
    hands: FakeHands = field(default_factory=FakeHands)
    destination: Destination = SALES

    @property
    def rebuilder(self) -> Rebuilder:
        world = self.world
        own = Ports(world.plan.wrap(world.store), world.plan.wrap(world.ledger), world.clock)
        return Rebuilder(own, self.hands)

    def report(self) -> Report:
        ports = self.rebuilder.ports
        return check(ports.store, ports.ledger, map, self.destination)

    def rebuild(self) -> list[Rebuilt]:
        return list(rebuild(self.rebuilder, self.destination))

    def lose_ledger(self) -> None:
        """Empty the table under everybody who uses it."""
        ledger = self.world.ledger
        for table in (ledger._jobs, ledger._attempts, ledger._claims):
            table.clear()


def checked(versioned: bool = False) -> Checked:
    """A check of a new world."""
    return Checked(World(versioned=versioned))


def file_of(job_id: str, task: str = "t0") -> str:
    return f"sales/part-{task}-{job_id}.parquet"
