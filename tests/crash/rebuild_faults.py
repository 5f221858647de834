"""Faults at a call, and worlds for a repair or a rebuild that they strike."""

from __future__ import annotations

import pytest

from s3commit.core.ports.bundle import Ports
from tests.core.lost_world import Checked
from tests.core.world import BUCKET, World
from tests.crash.scenarios import (
    POLICIES,
    SCENARIOS,
    Scenario,
)
from tests.fakes.faults import FaultPlan

EVERY = [*SCENARIOS, *POLICIES]
each_scenario = pytest.mark.parametrize("scenario", EVERY, ids=lambda one: one.name)
FAULTS = ["before", "after", "answer lost"]


def with_fault(when: str, point: int) -> FaultPlan:
    plan = FaultPlan()
    strike = {
        "before": plan.crash_before,
        "after": plan.crash_after,
        "answer lost": plan.lose_response,
    }[when]
    strike(nth=point)
    return plan


def unplanned(world: World) -> Ports:
    return Ports(world.store, world.ledger, world.clock)


def disarm(world: World) -> None:
    world.plan = FaultPlan()
    world.ports = unplanned(world)


# The ledger.


def prepared(scenario: Scenario, plan: FaultPlan) -> Checked:
    """A world in which the scenario's job is about to run, beside a foreign upload.

    Versioned if it can be: nothing is deleted in these tests but by the job's own execution, which
    `test_crash_points` runs without versions too.
    """
    desk = Checked(World(versioned=scenario.versioned[-1], plan=plan))
    desk.world.store.create_upload(BUCKET, "sales2/theirs", metadata={}, content_type="x")
    scenario.prepare(desk.world)
    return desk
