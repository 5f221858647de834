"""What the simulation found, each as one interleaving of its own."""

from __future__ import annotations

from s3commit.core.model import CountedAttempt, Names, Outcome
from s3commit.testing.faults import Call
from tests.core.world import BUCKET, World, place_of


def test_i4_a_manifest_that_comes_while_the_job_is_tidied_up_is_left_to_its_event() -> None:
    """Found by seed 261: deleted unread, a manifest takes with it all trace of its uploads."""
    world, place = World(), place_of()
    world.open(place, names=Names.EXACT)
    world.request(place, world.attempt(place, "t0", files={"a.parquet": b"a"}))
    late: list[CountedAttempt] = []

    def is_of_tidy_up(call: Call) -> bool:
        return world.store.head(BUCKET, place.result) is not None

    def finish_late() -> None:
        late.append(world.attempt(place, "t0", "a1", files={"a.parquet": b"zombie"}))

    world.plan.run_after("list_uploads", finish_late, nth=2, where=is_of_tidy_up)
    assert world.run(place)[-1] == "TidyUp"
    assert world.announce(place, late[0]) == 1
    assert world.result(place).outcome is Outcome.COMMITTED
    assert world.open_uploads() == []
    assert world.visible() == {"sales/a.parquet": b"a"}
