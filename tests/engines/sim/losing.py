"""The ledger's table is lost, or set back to what it was; then it is made again from S3 (I8)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from s3commit.core.model.states import JobState
from tests.engines.sim.documents import decision_of
from tests.engines.sim.model import DECIDED, ENDED, Job

if TYPE_CHECKING:
    from tests.engines.sim.world import World

# Where a table of before may have a job of which S3 says this: it goes on from there.
_UNDER_WAY = {JobState.COMMITTING, JobState.PUBLISHING, JobState.ROLLING_BACK}
_NOT_BEHIND: dict[JobState, set[JobState]] = {
    JobState.COMMITTING: _UNDER_WAY | ENDED,
    JobState.PUBLISHING: {JobState.PUBLISHING, JobState.COMMITTED},
    **{state: {state} for state in ENDED},
}

Table = tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]


def copy_table(world: World) -> Table:
    """The table as it is, for a restore to this point in time."""
    ledger = world.ledger
    attempts = {ref: dict(noted) for ref, noted in ledger._attempts.items()}
    return dict(ledger._jobs), attempts, dict(ledger._claims)


def lose_everything(world: World) -> None:
    """An empty table, under everybody who uses it."""
    _store(world, ({}, {}, {}))
    for job in world.observer.jobs.values():
        _forget(world, job)


def lose_jobs(world: World, names: Collection[str]) -> None:
    """The records of some jobs, and what was noted of them; locks stay."""
    ledger = world.ledger
    for name in names:
        job = world.observer.jobs[name]
        ledger._jobs.pop(job.directory.ref, None)
        ledger._attempts.pop(job.directory.ref, None)
        _forget(world, job)


def lose_notes(world: World) -> None:
    """The notes of attempts; of no guarantee's concern."""
    world.ledger._attempts.clear()


def set_back(world: World, table: Table) -> None:
    """A table of before, as a restore to a point in time brings it."""
    _store(world, table)
    for job in world.observer.jobs.values():
        record = world.ledger._jobs.get(job.directory.ref)
        decided = job.planned, job.replaced, job.plan
        _forget(world, job)
        if record is None:
            continue
        if job.record_state is not None and record.state not in _NOT_BEHIND[job.record_state]:
            job.settled = True
            continue
        job.record_state = record.state
        job.decided = record.state in {*DECIDED, JobState.ROLLED_BACK}
        if job.decided:
            job.planned, job.replaced, job.plan = decided
        if record.state in {JobState.ABORTING, JobState.ROLLING_BACK}:
            job.undoing_since = 0


def _store(world: World, table: Table) -> None:
    ledger = world.ledger
    # Others hold on to the dictionaries.
    tables: list[dict[Any, Any]] = [ledger._jobs, ledger._attempts, ledger._claims]
    for kept, new in zip(tables, table, strict=True):
        kept.clear()
        kept.update(new)


def _forget(world: World, job: Job) -> None:
    """What S3 alone says of the job from now on."""
    job.reset += 1
    job.unlocked = True
    job.lost_step = world.scheduler.steps
    job.settled = False
    job.lost_as = job.record_state or job.lost_as
    if job.decided:
        job.before_loss = job.planned, job.replaced, job.plan
    if job.result:
        return
    job.undoing_since = None
    decision = decision_of(world.observer, job)
    if decision:
        job.record_state, job.decided = JobState(decision["state"]), True
        job.planned, job.replaced, job.plan = job.before_loss
        return
    job.record_state, job.decided = None, False
    job.planned, job.replaced, job.plan = {}, {}, ""
