"""The ledger's table is lost, or set back to what it was; then it is made again from S3 (I8)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from s3commit.core.states import JobState
from tests.sim.model import DECIDED, Job

if TYPE_CHECKING:
    from tests.sim.world import World

_PUBLISHED = frozenset({JobState.PUBLISHING, JobState.COMMITTED})

Table = tuple[dict[str, Any], dict[str, Any], dict[str, Any], set[Any]]


def copy_table(world: World) -> Table:
    """The table as it is, for a restore to this point in time."""
    ledger = world.ledger
    attempts = {job_id: dict(noted) for job_id, noted in ledger._attempts.items()}
    return dict(ledger._jobs), attempts, dict(ledger._locks), set(ledger._units)


def lose_everything(world: World) -> None:
    """An empty table, under everybody who uses it."""
    _store(world, ({}, {}, {}, set()))
    for job in world.observer.jobs.values():
        _forget(world, job)


def lose_jobs(world: World, names: Collection[str]) -> None:
    """The records of some jobs, and what was noted of them; locks stay."""
    ledger = world.ledger
    for name in names:
        job = world.observer.jobs[name]
        ledger._jobs.pop(job.place.job_id, None)
        ledger._attempts.pop(job.place.job_id, None)
        ledger._units = {unit for unit in ledger._units if unit[0] != job.place.job_id}
        _forget(world, job)


def lose_notes(world: World) -> None:
    """The notes of attempts and of units; of no guarantee's concern."""
    world.ledger._attempts.clear()
    world.ledger._units.clear()


def set_back(world: World, table: Table) -> None:
    """A table of before, as a restore to a point in time brings it."""
    _store(world, table)
    for job in world.observer.jobs.values():
        record = world.ledger._jobs.get(job.place.job_id)
        here = record if record and record.directory == job.place.prefix else None
        decided = job.planned, job.replaced
        _forget(world, job)
        if job.record_state is JobState.PUBLISHING and here and here.state in _PUBLISHED:
            job.record_state = here.state
        elif job.record_state is not None:
            job.settled = here is not None and here.state is not job.record_state
        elif here is not None:
            job.record_state = here.state
            job.decided = here.state in DECIDED
            if job.decided:
                job.planned, job.replaced = decided
            if here.state in {JobState.ABORTING, JobState.ROLLING_BACK}:
                job.undoing_since = 0


def _store(world: World, table: Table) -> None:
    ledger = world.ledger
    # Others hold on to the dictionaries.
    tables: list[dict[str, Any]] = [ledger._jobs, ledger._attempts, ledger._locks]
    for kept, new in zip(tables, table[:3], strict=True):
        kept.clear()
        kept.update(new)
    ledger._units = set(table[3])


def _forget(world: World, job: Job) -> None:
    """What S3 alone says of the job from now on."""
    job.reset += 1
    job.lost_step = world.scheduler.steps
    job.settled = False
    job.lost_as = job.record_state or job.lost_as
    if job.decided:
        job.before_loss = job.planned, job.replaced
    if job.result or job.record_state is None:
        return
    if world.bucket.current(job.place.commits) is not None:
        job.record_state = JobState.PUBLISHING
        return
    job.record_state, job.decided, job.undoing_since = None, False, None
    job.planned, job.replaced = {}, {}
