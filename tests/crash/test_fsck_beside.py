"""A pipeline that acts while a repair does: what it ends meanwhile ends as it would have."""

from __future__ import annotations

from itertools import count

import pytest

from s3commit.core.model.job import Outcome
from s3commit.core.model.states import JobState
from s3commit.testing.execution import run_execution
from s3commit.testing.faults import FaultPlan
from tests.core.fsck_world import Checked
from tests.core.world import BUCKET, NEIGHBOUR, World, job_directory
from tests.crash.test_fsck import disarm, spoil, unplanned

LIVE = job_directory(NEIGHBOUR)
ITS_FILE = f"sales/part-t0-{NEIGHBOUR}.parquet"


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
def test_i2_i4_i5_a_job_that_is_committed_at_any_call_of_a_repair_is_whole(versioned: bool) -> None:
    for point in count(1):
        plan = FaultPlan()
        desk = Checked(World(versioned=versioned, plan=plan))
        spoil(desk.world)
        came: list[int] = []

        def commits(desk: Checked = desk, came: list[int] = came, plan: FaultPlan = plan) -> None:
            came.append(1)
            desk.world.plan = FaultPlan()
            run_execution(unplanned(desk.world), LIVE)
            desk.world.plan = plan

        plan.run_before(None, commits, nth=point)
        desk.repair()
        disarm(desk.world)
        if not came:
            assert point > 25, "the enumeration must have reached the whole repair"
            return
        assert desk.world.record(LIVE).state is JobState.COMMITTED
        assert desk.world.result(LIVE).outcome is Outcome.COMMITTED
        desk.repair()
        assert desk.findings() == []
        assert set(desk.world.visible()) == {"sales/a.csv", "sales/theirs.csv", ITS_FILE}
        assert desk.world.open_uploads() == ["sales/theirs-too.csv"]
        assert desk.world.store.head(BUCKET, LIVE.commits) is not None
