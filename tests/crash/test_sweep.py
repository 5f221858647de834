"""A sweep that dies before or after each single call, or beside another one, does no harm (I2-I5).

The world has one of each: what a sweep ends, what it goes on with, and what it must not touch.
"""

from __future__ import annotations

import pytest

from s3commit.core.model import Outcome
from s3commit.core.protocol.sweep import DAY, HOUR
from s3commit.testing.faults import Crash, FaultPlan
from tests.core.swept import LIMITS, Swept, announced, ended, sealed
from tests.core.world import BUCKET, place_of

STUCK = place_of("0b6f6f0e-0000-4000-8000-000000000011")
ABANDONED = place_of("0b6f6f0e-0000-4000-8000-000000000012")
UNHEARD = place_of("0b6f6f0e-0000-4000-8000-000000000013")
ENDED = place_of("0b6f6f0e-0000-4000-8000-000000000014")
OLD = place_of("0b6f6f0e-0000-4000-8000-000000000015")
ALIVE = place_of("0b6f6f0e-0000-4000-8000-000000000016")
FOREIGN = ["sales/theirs.parquet", f"salesman/part-{ENDED.job_id}.parquet"]


def prepared(plan: FaultPlan) -> Swept:
    world = Swept(plan=FaultPlan(), call_items=2)
    ended(world, OLD)
    world.later(LIMITS.retention - 2 * DAY)
    for key in FOREIGN:
        world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    announced(world, ALIVE)
    announced(world, ABANDONED)
    ended(world, ENDED)
    world.later(2 * DAY + HOUR)
    sealed(world, STUCK)
    world.open(UNHEARD)
    world.request(UNHEARD, world.attempt(UNHEARD, "t0"))
    world.attempt(ENDED, "t9", "zombie")
    world.upload(ENDED, f"zombie-{ENDED.job_id}.x", b"x", task="t8", attempt="zombie")
    world.later(LIMITS.stuck + 1)
    world.upload(ALIVE, f"slow-{ALIVE.job_id}.x", b"x", task="t1", attempt="a0")
    world.plan = plan
    world.pipeline = type(world.pipeline)(
        plan.wrap(world.store), plan.wrap(world.ledger), world.clock
    )
    return world


def check(world: Swept) -> None:
    """What is true once sweeps have run to the end, whatever became of the first."""
    outcomes = {place: world.result(place).outcome for place in (STUCK, ABANDONED, UNHEARD, ENDED)}
    assert outcomes == {
        STUCK: Outcome.COMMITTED,
        ABANDONED: Outcome.ABORTED,
        UNHEARD: Outcome.COMMITTED,
        ENDED: Outcome.COMMITTED,
    }
    committed = (OLD, ENDED, STUCK, UNHEARD)
    assert set(world.visible()) == {f"sales/part-t0-{place.job_id}.parquet" for place in committed}
    assert all(world.store.head(BUCKET, place.commits) is not None for place in committed)
    alive = [f"sales/part-t0-{ALIVE.job_id}.parquet", f"sales/slow-{ALIVE.job_id}.x"]
    assert sorted(world.open_uploads()) == sorted([*FOREIGN, *alive])
    assert world.all_keys(OLD.prefix) == []
    assert world.all_keys(ENDED.prefix) == [ENDED.job, ENDED.request, ENDED.result]
    assert len(world.all_keys(ALIVE.prefix)) == 2
    assert [lock for lock in world.ledger._locks.values() if not lock.empty] == []


def finish(world: Swept) -> None:
    for _ in range(2):  # the second one starts what the first one asked for: no event comes here
        world.sweep()
        world.settle()
        world.later(2 * LIMITS.stuck + 1)


@pytest.mark.parametrize("when", ["before", "after", "answer lost"])
def test_i2_i4_i5_wherever_a_sweep_dies_the_next_one_ends_its_work(when: str) -> None:
    point = 0
    while True:
        point += 1
        plan = FaultPlan()
        {
            "before": plan.crash_before,
            "after": plan.crash_after,
            "answer lost": plan.lose_response,
        }[when](nth=point)
        world = prepared(plan)
        try:
            world.sweep()
        except Crash:
            pass
        except Exception as error:  # a step that fails is tried again, from its cursor
            assert "was lost" in str(error)
        if not plan.fired:
            assert point > 60, "the enumeration must have reached the whole sweep"
            return
        finish(world)
        check(world)


def test_two_sweeps_at_once_do_what_one_does() -> None:
    """The second one runs whole between any two calls of the first."""
    point = 0
    while True:
        point += 1
        plan = FaultPlan()
        world = prepared(plan)
        beside = Swept()
        beside.__dict__.update({**world.__dict__, "plan": FaultPlan()})
        beside.pipeline = type(world.pipeline)(world.store, world.ledger, world.clock)
        plan.run_before(None, beside.sweep, nth=point)
        report = world.sweep()
        assert report.failed == 0
        if not plan.fired:
            assert point > 60
            return
        finish(world)
        check(world)
        assert len(world.executions.started) <= 4
