"""What the fakes do beyond the contract, so that tests can be repeated and be hard."""

from __future__ import annotations

import pytest

from s3commit.core.errors import InvalidInputError
from s3commit.testing.memory import ManualClock, MemoryObjectStore


def test_the_clock_stands_until_it_is_moved() -> None:
    clock = ManualClock("2026-11-21T23:59:59.500Z")

    assert clock.now() == clock.now() == "2026-11-21T23:59:59.500Z"
    clock.advance(0.5)
    assert clock.now() == "2026-11-22T00:00:00.000Z"


def test_the_clock_may_step_by_itself() -> None:
    clock = ManualClock("2026-11-21T22:00:00.000Z", step=0.001)

    assert [clock.now()[-4:] for _ in range(3)] == ["000Z", "001Z", "002Z"]


def test_uploads_are_initiated_at_the_clocks_time() -> None:
    clock = ManualClock("2026-11-21T22:00:00.000Z")
    store = MemoryObjectStore("lake", clock=clock)
    store.create_upload("lake", "a", metadata={}, content_type="x/y")
    clock.advance(3600)
    store.create_upload("lake", "a", metadata={}, content_type="x/y")

    initiated = [upload.initiated for upload in store.list_uploads("lake", "")]

    assert initiated == ["2026-11-21T22:00:00.000Z", "2026-11-21T23:00:00.000Z"]


def test_a_repeated_completion_may_lie_as_s3_does() -> None:
    """S3 may say 200 again; the object that it names may be another by then, or gone."""
    store = MemoryObjectStore("lake", repeats_complete=True)
    upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")
    etag = store.upload_part("lake", "a", upload_id, 1, b"x")
    first = store.complete_upload("lake", "a", upload_id, [etag], length=1)
    store.delete("lake", "a")

    assert store.complete_upload("lake", "a", upload_id, [etag], length=1) == first
    assert store.head("lake", "a") is None


def test_the_smallest_part_may_be_made_smaller() -> None:
    store = MemoryObjectStore("lake", min_part_bytes=2)
    upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")
    etags = [store.upload_part("lake", "a", upload_id, n, b"xx") for n in (1, 2)]

    assert store.complete_upload("lake", "a", upload_id, etags, length=4).length == 4


@pytest.mark.parametrize("number", [0, 10_001])
def test_part_numbers_have_s3s_bounds(number: int) -> None:
    store = MemoryObjectStore("lake")
    upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")

    with pytest.raises(InvalidInputError):
        store.upload_part("lake", "a", upload_id, number, b"")


@pytest.mark.parametrize("key", ["", "k" * 1025, "ü" * 513])
def test_keys_have_s3s_bounds(key: str) -> None:
    with pytest.raises(InvalidInputError):
        MemoryObjectStore("lake").put("lake", key, b"")


def test_ids_are_the_same_in_each_run() -> None:
    def ids() -> list[str | None]:
        store = MemoryObjectStore("lake", versioned=True)
        upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")
        store.put("lake", "b", b"")
        head = store.head("lake", "b")
        return [upload_id, head.version_id if head else None]

    assert ids() == ids()
