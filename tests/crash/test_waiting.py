"""Jobs that wait for each other, each moment chosen: who holds, who goes first, who died (I6)."""

from __future__ import annotations

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.limits import HOLDER_SECONDS
from s3commit.core.model.states import JobState
from tests.core.world import JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import SUPERSEDED, run_execution
from tests.fakes.faults import FaultPlan


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


@pytest.mark.parametrize("when", ["CheckConditions", "DecideCommit"])
def test_i6_a_holder_that_slept_too_long_is_refused_by_its_generation(when: str) -> None:
    world = World()
    sleeper, other = asked(world, JOB), asked(world, OTHER_JOB)

    def sleeps() -> None:
        world.clock.advance(HOLDER_SECONDS + 1)
        world.run(other)
        assert world.ended(other) == (Outcome.COMMITTED, "")

    if when == "DecideCommit":
        world.plan.run_before("decide", sleeps)
    else:
        world.plan.run_before("list", sleeps, where=lambda call: call.key == "sales/")
    assert world.run(sleeper)[-1] == SUPERSEDED
    assert set(world.visible()) == {f"sales/part-t-{OTHER_JOB}.parquet"}
    world.run(sleeper, "execution-2")
    assert world.ended(sleeper) == (Outcome.ABORTED, "STALLED")
    assert set(world.visible()) == {f"sales/part-t-{OTHER_JOB}.parquet"}
