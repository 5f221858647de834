"""TidyUp: what goes when a job has ended, how, and what stays (I4)."""

from __future__ import annotations

import pytest

from s3commit.core.model import Names, Outcome
from s3commit.core.policy import DELETE_AT_ONCE
from s3commit.core.protocol import own_uploads
from s3commit.testing.faults import Call
from tests.core.world import BUCKET, World, place_of


def test_all_manifests_go_with_a_request_for_each_thousand() -> None:
    world, place = World(), place_of()
    world.open(place)
    for number in range(2 * DELETE_AT_ONCE + 1):
        world.store.put(BUCKET, place.manifest(f"loser{number}", "a0"), b"")
    world.request(place, world.attempt(place, "t0"))
    world.run(place)
    groups = [call.arguments["objects"] for call in world.plan.calls if call.verb == "delete_seen"]
    assert [len(group) for group in groups] == [DELETE_AT_ONCE, DELETE_AT_ONCE, 3]
    assert world.plan.counts().get("delete", 0) == 0
    assert world.all_keys(place.tasks) == []


def test_i4_a_manifest_that_was_put_anew_since_it_was_listed_stays() -> None:
    world, place = World(), place_of()
    world.open(place)
    world.request(place, world.attempt(place, "t0"))
    late = place.manifest("t0", "a1")
    world.store.put(BUCKET, late, b"first")
    world.plan.run_before("delete_seen", lambda: world.store.put(BUCKET, late, b"second"))
    world.run(place)
    assert world.all_keys(place.tasks) == [late]


def test_i4_while_an_upload_can_not_be_aborted_what_names_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of an exact name nothing else tells whose its upload is; the sweep tidies up later."""
    monkeypatch.setattr(own_uploads, "ABORT_ROUNDS", 2)
    world, place = World(), place_of()
    world.open(place, names=Names.EXACT)
    world.request(place, world.attempt(place, "t0", files={"a.csv": b"a"}))
    world.attempt(place, "t0", "loser", files={"b.csv": b"b"})

    def is_of_loser(call: Call) -> bool:
        return call.key == "sales/b.csv"

    def open_again() -> None:
        """A part that was under way has survived the abort."""
        key = "sales/b.csv"
        again = world.upload(place, "b.csv", b"b", task="t0", attempt="loser")
        uploads = world.store.bucket(BUCKET).uploads
        uploads[gone] = uploads.pop(again.upload_id)
        assert [one.key for one in world.store.list_uploads(BUCKET, key)] == [key]

    (gone,) = [one.upload_id for one in world.store.list_uploads(BUCKET, "sales/b.csv")]
    for nth in (1, 2):
        world.plan.run_after("abort_upload", open_again, nth=nth, where=is_of_loser)
    assert world.run(place)[-1] == "TidyUp"
    assert world.result(place).outcome is Outcome.COMMITTED
    assert place.manifest("t0", "loser") in world.all_keys(place.tasks)
    world.run(place, "again")
    assert world.all_keys(place.tasks) == []
    assert world.open_uploads() == []
