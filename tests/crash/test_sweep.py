"""A sweep that dies before any of its calls, or runs beside another one, does no harm (I2-I5).

The world has one of each: what a sweep ends, what it resumes, and what it must not touch.
"""

from contextlib import suppress

import pytest

from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.bundle import Ports
from s3commit.core.sweep.sweep import DAY, HOUR
from tests.core.enumerated import every_point
from tests.core.swept import LIMITS, Swept, announced, ended, sealed
from tests.core.world import BUCKET, job_directory
from tests.fakes.faults import Crash, FaultPlan

STUCK = job_directory("0b6f6f0e-0000-4000-8000-000000000011")
ABANDONED = job_directory("0b6f6f0e-0000-4000-8000-000000000012")
UNHEARD = job_directory("0b6f6f0e-0000-4000-8000-000000000013")
ENDED = job_directory("0b6f6f0e-0000-4000-8000-000000000014")
OLD = job_directory("0b6f6f0e-0000-4000-8000-000000000015")
ALIVE = job_directory("0b6f6f0e-0000-4000-8000-000000000016")
FOREIGN = ["sales/theirs.parquet", f"salesman/part-{ENDED.job_id}.parquet"]


def prepared(plan: FaultPlan) -> Swept:
    world = Swept(plan=FaultPlan())
    ended(world, OLD)
    world.later(LIMITS.retention - 2 * DAY)
    for key in FOREIGN:
        world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    announced(world, ALIVE)
    announced(world, ABANDONED)
    ended(world, ENDED)
    world.later(2 * DAY + HOUR)
    sealed(world, STUCK)
    world.request(UNHEARD, world.attempt(UNHEARD, "t0"))
    world.attempt(ENDED, "t9", "zombie")
    world.upload(ENDED, f"zombie-{ENDED.job_id}.x", b"x", task="t8", attempt="zombie")
    world.later(LIMITS.stuck + 1)
    world.attempt(ALIVE, "t1", files={f"slow-{ALIVE.job_id}.x": b"x"})
    world.plan = plan  # from now on it strikes
    world.ports = Ports(plan.wrap(world.store), plan.wrap(world.ledger), world.clock)
    return world


def check_swept(world: Swept) -> None:
    """What is true once sweeps have run to the end, whatever became of the first."""
    outcomes = {
        directory: world.result(directory).outcome
        for directory in (STUCK, ABANDONED, UNHEARD, ENDED)
    }
    assert outcomes == {
        STUCK: Outcome.COMMITTED,
        ABANDONED: Outcome.ABORTED,
        UNHEARD: Outcome.COMMITTED,
        ENDED: Outcome.COMMITTED,
    }
    committed = (OLD, ENDED, STUCK, UNHEARD)
    assert set(world.visible()) == {
        f"sales/part-t0-{directory.job_id}.parquet" for directory in committed
    }
    assert all(world.store.head(BUCKET, directory.commits) is not None for directory in committed)
    alive = [f"sales/part-t0-{ALIVE.job_id}.parquet", f"sales/slow-{ALIVE.job_id}.x"]
    assert sorted(world.open_uploads()) == sorted([*FOREIGN, *alive])
    assert world.all_keys(OLD.prefix) == []
    assert world.all_keys(ENDED.prefix) == [ENDED.job, ENDED.request, ENDED.result]
    assert len(world.all_keys(ALIVE.prefix)) >= 3
    assert world.store.head(BUCKET, ALIVE.request) is None
    assert world.ledger.holders == set()


def finish(world: Swept) -> None:
    for _ in range(2):  # the second one starts what the first one asked for: no event comes here
        world.sweep()
        world.settle()
        world.later(2 * LIMITS.stuck + 1)


@pytest.mark.parametrize("when", ["before", "answer lost"])
def test_i2_i4_i5_wherever_a_sweep_dies_the_next_one_ends_its_work(when: str) -> None:
    def check(point: int) -> FaultPlan:
        plan = FaultPlan()
        {"before": plan.crash_before, "answer lost": plan.lose_response}[when](nth=point)
        world = prepared(plan)
        with suppress(Crash):
            world.sweep()
        if plan.fired:
            finish(world)
            check_swept(world)
        return plan

    every_point(check, least=40)


def untouched(world: Swept) -> Swept:
    """The same world, for somebody to whom the plan of faults does not happen."""
    beside = Swept()
    beside.__dict__.update({**world.__dict__, "plan": FaultPlan(), "ports": world.unplanned})
    return beside


def test_two_sweeps_at_once_do_what_one_does() -> None:
    """The second one runs whole between any two calls of the first."""

    def check(point: int) -> FaultPlan:
        plan = FaultPlan()
        world = prepared(plan)
        beside = untouched(world)
        plan.run_before(None, beside.sweep, nth=point)
        report = world.sweep()
        assert report.failed == 0
        if plan.fired:
            finish(world)
            check_swept(world)
            assert len(world.executions.started) <= 4
        return plan

    every_point(check, least=40)
