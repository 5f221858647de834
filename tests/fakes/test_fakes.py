"""What the fakes do beyond the contract, so that tests can be repeated and be hard."""

from __future__ import annotations

from tests.fakes.memory import ManualClock, MemoryObjectStore


def test_the_clock_stands_until_it_is_moved() -> None:
    clock = ManualClock("2026-11-21T23:59:59.500Z")

    assert clock.now() == clock.now() == "2026-11-21T23:59:59.500Z"
    clock.advance(0.5)
    assert clock.now() == "2026-11-22T00:00:00.000Z"


def test_a_repeated_completion_may_lie_as_s3_does() -> None:
    """S3 may say 200 again; the object that it names may be another by then, or gone."""
    store = MemoryObjectStore("lake", repeats_complete=True)
    upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")
    etag = store.upload_part("lake", "a", upload_id, 1, b"x")
    first = store.complete_upload("lake", "a", upload_id, [etag], length=1)
    store.delete("lake", "a")

    assert store.complete_upload("lake", "a", upload_id, [etag], length=1) == first
    assert store.head("lake", "a") is None
