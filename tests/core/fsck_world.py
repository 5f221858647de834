"""A world that can be checked, and one whose ledger can be lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.fsck.check import check
from s3commit.core.fsck.findings import Finding, Repair
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.rebuild import Rebuilt, rebuild
from s3commit.core.fsck.repair import Repaired, repair
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.core.world import BUCKET, JOB, World, job_directory

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
        return Fsck(own, self.hands)

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


def checked(versioned: bool = False) -> Checked:
    """A check of a new world."""
    return Checked(World(versioned=versioned))


def committed(world: World, job_id: str = JOB, **spec: Any) -> JobDirectory:
    directory = job_directory(job_id)
    world.open(directory, **spec)
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    return directory


def aborted(world: World, job_id: str = JOB, **spec: Any) -> JobDirectory:
    directory = job_directory(job_id)
    world.open(directory, **spec)
    world.request_abort(directory)
    world.run(directory)
    return directory


def rolled_back(
    world: World, job_id: str = JOB, prefix: str = "sales/", **spec: Any
) -> JobDirectory:
    """A job of which an upload was lost after the decision; nothing of it is visible."""
    directory = job_directory(job_id, prefix)
    world.open(directory, **spec)
    world.request(directory, world.attempt(directory, "t0"))
    world.lose_after_decision(prefix)
    world.run(directory)
    assert world.record(directory).state is JobState.ROLLED_BACK
    return directory


def make(world: World, key: str, body: bytes = b"x", job_id: str = JOB) -> None:
    """An object at ``key`` that says it is the job's."""
    metadata = {META_JOB: job_id, META_TASK: "t9", META_ATTEMPT: "a9"}
    upload = world.store.create_upload(BUCKET, key, metadata=metadata, content_type="")
    etag = world.store.upload_part(BUCKET, key, upload, 1, body)
    world.store.complete_upload(BUCKET, key, upload, [etag], length=len(body))


def file_of(job_id: str, task: str = "t0") -> str:
    return f"sales/part-{task}-{job_id}.parquet"


def start_upload(world: World, key: str) -> str:
    """An upload without metadata, left open."""
    return world.store.create_upload(BUCKET, key, metadata={}, content_type="")
