"""A crash before and after each single call of a job, enumerated; then someone goes on (I1-I5, I9).

The pipeline dies at one call, with its execution. A later execution goes on, as a redrive or the
sweep would start it. Whatever the point, the job ends, and every invariant holds on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.model import Outcome
from s3commit.testing.faults import Crash, FaultPlan
from tests.core.world import BUCKET, World, place_of


def committing(world: World) -> None:
    """A job of three tasks, one of them with two finished attempts and one attempt killed."""
    place = place_of()
    world.open(place)
    counted = [world.attempt(place, f"t{number}") for number in range(3)]
    world.attempt(place, "t0", "loser")
    world.store.create_upload(
        BUCKET, f"sales/part-t9-{place.job_id}.x", metadata={}, content_type=""
    )
    world.request(place, *counted)


def aborting(world: World) -> None:
    """A job whose driver gave up."""
    place = place_of()
    world.open(place)
    world.attempt(place, "t0")
    world.ask_abort(place)


def refused(world: World) -> None:
    """A job that counts a manifest whose upload is gone before the decision."""
    place = place_of()
    world.open(place)
    counted = [world.attempt(place, f"t{number}") for number in range(2)]
    upload = next(world.store.list_uploads(BUCKET, "sales/"))
    world.store.abort_upload(BUCKET, upload.key, upload.upload_id)
    world.request(place, *counted)


def rolling_back(world: World) -> None:
    """A job that loses an upload after its decision."""
    place = place_of()
    world.open(place)
    world.request(place, *[world.attempt(place, f"t{number}") for number in range(3)])

    victim = list(world.store.list_uploads(BUCKET, "sales/"))[1]

    def lose() -> None:
        world.store.abort_upload(BUCKET, victim.key, victim.upload_id)

    # Twice: the first completion may be the very crash point, and then it does not happen.
    world.plan.run_before("complete_upload", lose).run_before("complete_upload", lose, nth=2)


SCENARIOS: list[tuple[Callable[[World], None], Outcome]] = [
    (committing, Outcome.COMMITTED),
    (aborting, Outcome.ABORTED),
    (refused, Outcome.ABORTED),
    (rolling_back, Outcome.ROLLED_BACK),
]


def check_ended(world: World, outcome: Outcome) -> None:
    """What holds of an ended job, by I2, I4, I5 and I9."""
    place = place_of()
    assert world.result(place).outcome is outcome
    visible = sorted(world.visible().values())
    if outcome is Outcome.COMMITTED:
        assert visible == [b"t0 a0", b"t1 a0", b"t2 a0"]
        assert world.json(place.success)["jobId"] == place.job_id
        assert world.store.head(BUCKET, place.commits) is not None
    else:
        assert visible == []
        assert world.store.head(BUCKET, place.success) is None
    assert world.open_uploads("sales/") == []
    assert world.open_uploads("sales2/") == ["sales2/theirs"]
    assert not [key for key in world.all_keys(place.tasks) if key.endswith(".pendingset")]
    assert world.ledger.lock("lake/sales/").empty


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
@pytest.mark.parametrize(
    ("scenario", "outcome"), SCENARIOS, ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.parametrize("when", ["before", "after", "answer lost"])
def test_i1_i2_i4_i5_i9_whatever_the_crash_point_the_job_ends_whole(
    when: str, scenario: Callable[[World], None], outcome: Outcome, versioned: bool
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
        scenario(world)
        try:
            world.run(place_of())
        except Crash:
            world.run(place_of(), "execution-2")
        check_ended(world, outcome)
        if not [call for call in plan.fired if call.number == point]:
            assert point > 15, "the enumeration must have reached the whole job"
            return
