"""A ledger that is lost right after a job's end: the job comes back to nobody's harm (I6, I11)."""

from __future__ import annotations

from typing import Any

from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.states import JobState
from tests.core.world import JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Call

FIRST, SECOND, THIRD = map(job_directory, (JOB, OTHER_JOB, NEIGHBOUR))


def three(**spec: Any) -> World:
    world = World()
    for directory in (FIRST, SECOND, THIRD):
        world.ask(directory, "t1", "t2", **spec)
    return world


def dies_at_its_end(world: World, target: JobState) -> None:
    """Its record has just been written: it has given up what it held."""

    def ends(call: Call) -> bool:
        return call.arguments.get("target") is target

    world.plan.crash_after("advance", where=ends)
    world.dies(FIRST, "first")


def test_i6_a_committed_job_that_comes_back_gives_up_no_lock_of_the_next_one() -> None:
    world = three(conflict=Conflict.REPLACE)
    dies_at_its_end(world, JobState.COMMITTED)
    world.plan.crash_before("complete_upload", nth=2, where=lambda call: OTHER_JOB in call.key)
    world.dies(SECOND, "second")
    world.ledger.lose()
    world.heal()
    world.run(FIRST, "first again")
    assert world.ledger.holders == {SECOND.ref}
    world.plan.run_after("lock", lambda: run_execution(world.unplanned, SECOND, execution="again"))

    def pause() -> None:
        run_execution(world.unplanned, SECOND, execution="again")

    run_execution(world.ports, THIRD, execution="third", pause=pause)
    for directory in (SECOND, THIRD):
        assert world.result(directory).outcome is Outcome.COMMITTED
    assert {key.rpartition("-000000000")[2][:3] for key in world.visible()} == {NEIGHBOUR[-3:]}


def test_i11_a_rolled_back_job_that_comes_back_gives_up_no_key_of_the_next_one() -> None:
    world = three(idempotency_key="k")
    world.lose_after_decision(f"sales/part-t1-{JOB}")
    dies_at_its_end(world, JobState.ROLLED_BACK)
    world.plan.crash_before("complete_upload", where=lambda call: OTHER_JOB in call.key)
    world.dies(SECOND, "second")
    world.ledger.lose()
    world.heal()
    world.run(FIRST, "first again")

    def pause() -> None:
        run_execution(world.unplanned, SECOND, execution="again")

    run_execution(world.unplanned, THIRD, execution="third", pause=pause)
    outcomes = [world.result(one).outcome for one in (FIRST, SECOND, THIRD)]
    assert outcomes == [Outcome.ROLLED_BACK, Outcome.COMMITTED, Outcome.ABORTED]
    assert all(OTHER_JOB in key for key in world.visible())


def test_i6_a_rollback_that_has_given_back_its_locks_takes_none_when_it_comes_back() -> None:
    """Somebody opens uploads of the job, so that it does not end."""
    world = three(conflict=Conflict.REPLACE)
    world.lose_after_decision(f"sales/part-t1-{JOB}")
    world.plan.crash_after("release")
    world.dies(FIRST, "first")
    world.plan.crash_before("complete_upload", nth=2, where=lambda call: OTHER_JOB in call.key)
    world.dies(SECOND, "second")
    world.ledger.lose()
    world.heal()
    world.run(FIRST, "first again")
    told = "its client is told why, as before the loss"
    assert world.ended(FIRST) == (Outcome.ROLLED_BACK, "UPLOADS_LOST"), told
    assert world.ledger.holders == {SECOND.ref}
