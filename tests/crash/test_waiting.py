"""Jobs beside each other, each moment chosen: who holds, who died, who comes back (I6, I11)."""

from collections.abc import Callable
from typing import Any

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict
from s3commit.core.model.limits import HOLDER_SECONDS
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import SUPERSEDED, run_execution
from tests.fakes.faults import Call, FaultPlan


def asked(world: World, job_id: str) -> JobDirectory:
    directory = job_directory(job_id)
    world.ask(directory, "t", conflict=Conflict.REPLACE)
    return directory


@pytest.mark.parametrize("verb", ["lock", "decide"])
def test_i6_a_holder_that_died_before_its_decision_blocks_for_a_limited_time(verb: str) -> None:
    """After 40 minutes it is made unable to be decided, and only then is its lock taken."""
    crash = FaultPlan().crash_after if verb == "lock" else FaultPlan().crash_before
    world = World(plan=crash(verb))
    dead = asked(world, JOB)
    world.dies(dead)
    other = asked(world, OTHER_JOB)
    waited = []

    def pause() -> None:
        waited.append(world.record(dead).state)
        world.clock.advance(HOLDER_SECONDS / 8)

    run_execution(world.ports, other, pause=pause)
    assert world.ended(other) == (Outcome.COMMITTED, "")
    assert waited == [JobState.SEALED] * 8
    assert world.record(dead).state is JobState.ABORTING
    world.run(dead, "execution-2")
    assert world.ended(dead) == (Outcome.ABORTED, "STALLED")
    assert set(world.visible()) == {f"sales/part-t-{OTHER_JOB}.parquet"}


@pytest.mark.parametrize("verb", ["appends", "decide"])
def test_i6_a_holder_that_slept_too_long_is_refused_by_its_generation(verb: str) -> None:
    world = World()
    sleeper, other = asked(world, JOB), asked(world, OTHER_JOB)

    def sleeps() -> None:
        world.clock.advance(HOLDER_SECONDS + 1)
        world.run(other)
        assert world.ended(other) == (Outcome.COMMITTED, "")

    world.plan.run_before(verb, sleeps)
    assert world.run(sleeper)[-1] == SUPERSEDED
    assert set(world.visible()) == {f"sales/part-t-{OTHER_JOB}.parquet"}
    world.run(sleeper, "execution-2")
    assert world.ended(sleeper) == (Outcome.ABORTED, "STALLED")
    assert set(world.visible()) == {f"sales/part-t-{OTHER_JOB}.parquet"}


# A rollback gives its locks back when its files are undone


UNDONE, NEXT = job_directory(), job_directory(OTHER_JOB)


def test_i2_i6_a_job_that_replaces_beside_a_rollback_without_locks_loses_nothing() -> None:
    """Whenever it comes, though the rollback goes through its plan once more."""
    beside = set()

    def check(point: int) -> bool:
        plan = FaultPlan()
        world = World(plan=plan)
        world.store.put(BUCKET, "sales/old.parquet", b"old")
        for directory in (UNDONE, NEXT):
            world.ask(directory, "t0", "t1", conflict=Conflict.REPLACE)
        world.lose_after_decision(f"sales/part-t1-{JOB}")
        plan.crash_after("release")
        world.dies(UNDONE)
        assert world.record(UNDONE).state is JobState.ROLLING_BACK
        assert world.ledger.holders == set()
        fired = []

        def the_next() -> None:
            fired.append(point)
            beside.add(world.record(UNDONE).state)
            run_execution(world.unplanned, NEXT, execution="execution-n")

        plan.run_before(None, the_next, nth=point)
        world.run(UNDONE, "execution-2")
        if fired:
            outcomes = [world.result(one).outcome for one in (UNDONE, NEXT)]
            assert outcomes == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
            assert set(world.visible()) == {f"sales/part-t{n}-{OTHER_JOB}.parquet" for n in (0, 1)}
            assert world.open_uploads() == []
        return bool(fired)

    every_point(check)
    assert beside == {JobState.ROLLING_BACK, JobState.ROLLED_BACK}


# A ledger that is lost right after a job's end: the job comes back to nobody's harm


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


def comes_back(world: World, nth: int = 1) -> None:
    """The second job dies as it completes its files, the ledger is lost, the first runs again."""
    world.plan.crash_before("complete_upload", nth=nth, where=lambda call: OTHER_JOB in call.key)
    world.dies(SECOND, "second")
    world.ledger.lose()
    world.heal()
    world.run(FIRST, "first again")


def goes_on(world: World) -> Callable[[], object]:
    return lambda: run_execution(world.unplanned, SECOND, execution="again")


def test_i6_a_committed_job_that_comes_back_gives_up_no_lock_of_the_next_one() -> None:
    world = three(conflict=Conflict.REPLACE)
    dies_at_its_end(world, JobState.COMMITTED)
    comes_back(world, nth=2)
    assert world.ledger.holders == {SECOND.ref}
    world.plan.run_after("lock", goes_on(world))
    run_execution(world.ports, THIRD, execution="third", pause=goes_on(world))
    for directory in (SECOND, THIRD):
        assert world.result(directory).outcome is Outcome.COMMITTED
    assert {key.rpartition("-000000000")[2][:3] for key in world.visible()} == {NEIGHBOUR[-3:]}


def test_i11_a_rolled_back_job_that_comes_back_gives_up_no_key_of_the_next_one() -> None:
    world = three(idempotency_key="k")
    world.lose_after_decision(f"sales/part-t1-{JOB}")
    dies_at_its_end(world, JobState.ROLLED_BACK)
    comes_back(world)
    run_execution(world.unplanned, THIRD, execution="third", pause=goes_on(world))
    outcomes = [world.result(one).outcome for one in (FIRST, SECOND, THIRD)]
    assert outcomes == [Outcome.ROLLED_BACK, Outcome.COMMITTED, Outcome.ABORTED]
    assert all(OTHER_JOB in key for key in world.visible())


def test_i6_a_rollback_that_has_given_back_its_locks_takes_none_when_it_comes_back() -> None:
    """Somebody opens uploads of the job, so that it does not end."""
    world = three(conflict=Conflict.REPLACE)
    world.lose_after_decision(f"sales/part-t1-{JOB}")
    world.plan.crash_after("release")
    world.dies(FIRST, "first")
    comes_back(world, nth=2)
    told = "its client is told why, as before the loss"
    assert world.ended(FIRST) == (Outcome.ROLLED_BACK, "UPLOADS_LOST"), told
    assert world.ledger.holders == {SECOND.ref}
