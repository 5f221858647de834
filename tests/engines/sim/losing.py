"""The ledger's table is lost, and an empty one takes its place: it heals itself from S3 (I8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3commit.core.model.states import JobState
from tests.engines.sim.documents import decision_of
from tests.engines.sim.model import Job

if TYPE_CHECKING:
    from tests.engines.sim.world import World


def lose_ledger(world: World) -> None:
    """An empty table, under everybody who uses it."""
    world.faults.strike("ledger lost")
    world.ledger.lose()
    for job in world.observer.jobs.values():
        _forget(world, job)


def _forget(world: World, job: Job) -> None:
    """What S3 alone says of the job from now on."""
    job.reset += 1
    job.lost_step = world.scheduler.steps
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
