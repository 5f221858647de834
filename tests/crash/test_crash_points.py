"""A crash before and after each single call of a job, enumerated; then someone goes on (I1-I11).

The pipeline dies at one call, with its execution. A later execution goes on, as a redrive or the
sweep would start it. Whatever the point, the job ends, and every invariant holds on the way.
"""

from __future__ import annotations

import pytest

from s3commit.testing.faults import Crash, FaultPlan
from tests.core.world import BUCKET, World, place_of
from tests.crash.scenarios import PLACES, POLICIES, SCENARIOS, Scenario, check_ended


@pytest.mark.parametrize(
    ("scenario", "versioned"),
    [
        pytest.param(
            scenario, versioned, id=f"{scenario.name}-{'versioned' if versioned else 'plain'}"
        )
        for scenario in [*SCENARIOS, *POLICIES, *PLACES]
        for versioned in scenario.versioned
    ],
)
@pytest.mark.parametrize("when", ["before", "after", "answer lost"])
def test_i1_i2_i4_i5_i6_i9_i10_i11_whatever_the_crash_point_the_job_ends_whole(
    when: str, scenario: Scenario, versioned: bool
) -> None:
    point = 0
    while True:
        point += 1
        plan = FaultPlan()
        {
            "before": plan.crash_before,
            "after": plan.crash_after,
            "answer lost": plan.lose_response,
        }[when](nth=point)
        world = World(versioned=versioned, plan=plan)
        world.store.create_upload(BUCKET, "sales2/theirs", metadata={}, content_type="x")
        scenario.prepare(world)
        try:
            world.run(place_of())
        except Crash:
            world.run(place_of(), "execution-2")
        check_ended(world, scenario)
        if not [call for call in plan.fired if call.number == point]:
            assert point > 15, "the enumeration must have reached the whole job"
            return
