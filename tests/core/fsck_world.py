"""A world that can be checked, and one whose ledger can be lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.fsck.check import check
from s3commit.core.fsck.findings import Finding, Repair
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.rebuild import Rebuilt, rebuild
from s3commit.core.fsck.repair import Repaired, repair
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.testing.survey import MemorySurvey
from tests.core.world import BUCKET, World

SALES = Destination(BUCKET, "sales/")


@dataclass
class FakeHands:
    """Executions that a test says are running; those that are started are only noted."""

    running: set[str] = field(default_factory=set)
    started: list[tuple[str, int]] = field(default_factory=list)

    def is_running(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        return directory.job_id in self.running

    def start(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        self.started.append((directory.job_id, record.generation if record else 0))
        return True


@dataclass
class Checked:
    """A world under check; ``ports`` stands for the check's own connection."""

    world: World
    hands: FakeHands = field(default_factory=FakeHands)
    destination: Destination = SALES

    @property
    def fsck(self) -> Fsck:
        world = self.world
        own = Ports(world.plan.wrap(world.store), world.plan.wrap(world.ledger), world.clock)
        return Fsck(own, MemorySurvey(world.store), self.hands)

    def findings(self) -> list[Finding]:
        return list(check(self.fsck, self.destination))

    def names(self) -> list[str]:
        return sorted(finding.name for finding in self.findings())

    def repair(self, chosen: Collection[Repair] | None = None) -> list[Repaired]:
        return list(repair(self.fsck, self.destination, chosen))

    def rebuild(self) -> list[Rebuilt]:
        return list(rebuild(self.fsck, self.destination))

    def lose_ledger(self) -> None:
        """Empty the table under everybody who uses it."""
        ledger = self.world.ledger
        for table in (ledger._jobs, ledger._attempts, ledger._claims):
            table.clear()
        ledger._units.clear()
