"""What the fakes do beyond the contract, so that tests can be repeated and be hard."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.model.errors import AccessError, InvalidInputError, TransientError
from tests.fakes.memory import ManualClock, MemoryObjectStore
from tests.fakes.s3_limits import Sizes


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


SMALL = Sizes(least_part=2, part=4, put=3, object=5)


def test_an_object_that_is_put_whole_has_s3s_bounds() -> None:
    """5 GB on S3, less here; in parts it may be larger."""
    store = MemoryObjectStore("lake", sizes=SMALL)
    store.put("lake", "a", b"xxx")

    with pytest.raises(InvalidInputError):
        store.put("lake", "a", b"xxxx")

    assert store.get("lake", "a", max_bytes=4).body == b"xxx"


def test_parts_and_what_they_make_have_s3s_bounds() -> None:
    """5 GiB and 50 TiB on S3, less here."""
    store = MemoryObjectStore("lake", sizes=SMALL)
    upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")
    with pytest.raises(InvalidInputError):
        store.upload_part("lake", "a", upload_id, 1, b"xxxxx")
    etags = [store.upload_part("lake", "a", upload_id, n, b"xxx") for n in (1, 2)]

    with pytest.raises(InvalidInputError):
        store.complete_upload("lake", "a", upload_id, etags, length=6)

    assert store.head("lake", "a") is None
    assert store.upload_is_open("lake", "a", upload_id)


def test_without_a_right_to_list_what_is_missing_is_denied() -> None:
    store = MemoryObjectStore("lake")
    store.deny("lake", "secret/", "s3:ListBucket", "s3:ListBucketMultipartUploads")
    store.put("lake", "secret/there", b"x")
    refused: list[Callable[[], object]] = [
        lambda: store.head("lake", "secret/missing"),
        lambda: store.list("lake", "secret/"),
        lambda: store.list_uploads("lake", "secret/"),
    ]

    for call in refused:
        with pytest.raises(AccessError):
            call()

    assert store.head("lake", "secret/there") is not None
    assert store.head("lake", "missing") is None
    store.allow("lake")
    assert store.head("lake", "secret/missing") is None


def test_rights_to_abort_and_to_look_at_uploads_are_asked_for() -> None:
    store = MemoryObjectStore("lake")
    upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")
    store.deny("lake", "a", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")

    for call in (store.abort_upload, store.upload_is_open):
        with pytest.raises(AccessError):
            call("lake", "a", upload_id)

    store.allow("lake")
    assert store.upload_is_open("lake", "a", upload_id)


def test_a_conditional_write_or_delete_asks_for_the_right_to_read() -> None:
    store = MemoryObjectStore("lake")
    etag = store.put("lake", "a", b"x")
    store.deny("lake", "a", "s3:GetObject")

    with pytest.raises(AccessError):
        store.put("lake", "a", b"y", if_match=etag)
    with pytest.raises(AccessError):
        store.delete("lake", "a", if_match=etag)

    store.put("lake", "a", b"z")
    store.delete("lake", "a")


def test_an_answer_with_a_key_that_xml_can_not_carry_comes_after_the_deed() -> None:
    store = MemoryObjectStore("lake")
    key = "bell\x07"
    with pytest.raises(TransientError):
        store.create_upload("lake", key, metadata={}, content_type="x/y")
    (upload,) = store.list_uploads("lake", "")
    etag = store.upload_part("lake", key, upload.upload_id, 1, b"x")

    with pytest.raises(TransientError):
        store.complete_upload("lake", key, upload.upload_id, [etag], length=1)

    assert store.head("lake", key) is not None


def test_ids_are_the_same_in_each_run() -> None:
    def ids() -> list[str | None]:
        store = MemoryObjectStore("lake", versioned=True)
        upload_id = store.create_upload("lake", "a", metadata={}, content_type="x/y")
        store.put("lake", "b", b"")
        head = store.head("lake", "b")
        return [upload_id, head.version_id if head else None]

    assert ids() == ids()
