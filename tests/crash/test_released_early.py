"""A rollback gives its locks back when its files are undone: others go on beside it (I6, I12)."""

from __future__ import annotations

from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.states import JobState
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import FaultPlan

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
