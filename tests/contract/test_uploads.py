"""Multipart uploads: what every object store does with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import partial

import pytest

from s3commit.core.model.errors import (
    JobRefusedError,
    PreconditionError,
    S3CommitError,
    UploadGoneError,
)
from tests.contract.conftest import PAGE, PART, THREADS, Place, at_once, winners
from tests.contract.test_objects import UNUSUAL


def composite(*parts: bytes) -> str:
    digests = b"".join(hashlib.md5(part).digest() for part in parts)
    return f'"{hashlib.md5(digests).hexdigest()}-{len(parts)}"'


def test_i1_an_upload_is_invisible_until_it_is_completed(place: Place) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    store.put(bucket, key, b"before")
    upload_id, etags = place.upload(key, b"a" * PART, b"rest")

    assert place.body(key) == b"before"
    assert [line.key for line in store.list(bucket, place.prefix)] == [key]

    facts = store.complete_upload(bucket, key, upload_id, etags, length=PART + 4)

    assert place.body(key) == b"a" * PART + b"rest"
    assert (facts.key, facts.length) == (key, PART + 4)
    assert facts.etag == composite(b"a" * PART, b"rest")
    assert facts.version_id == ("null" if place.known.null_version else None)
    head = store.head(bucket, key)
    assert head is not None
    assert (head.etag, head.length) == (facts.etag, facts.length)


def test_metadata_of_the_upload_is_the_objects(place: Place) -> None:
    key = place.key()
    upload_id = place.store.create_upload(
        place.bucket,
        key,
        metadata={"s3commit-job": "j-1", "S3Commit-Task": "t_2"},
        content_type="application/vnd.apache.parquet",
    )
    etag = place.store.upload_part(place.bucket, key, upload_id, 1, memoryview(b"view"))

    completed = place.store.complete_upload(place.bucket, key, upload_id, [etag], length=4)

    head = place.store.head(place.bucket, key)
    assert head is not None
    assert head.metadata == {"s3commit-job": "j-1", "s3commit-task": "t_2"}
    assert completed.metadata == {}
    assert place.body(key) == b"view"


def test_an_empty_part_makes_an_empty_object(place: Place) -> None:
    facts = place.complete(place.key(), b"")

    assert (facts.length, facts.etag) == (0, composite(b""))
    assert place.body(place.key()) == b""


def test_a_part_sent_again_replaces_itself(place: Place) -> None:
    key = place.key()
    upload_id, old = place.upload(key, b"old")
    new = place.store.upload_part(place.bucket, key, upload_id, 1, b"new")

    if not place.known.forgets_replaced_parts:
        place.store.complete_upload(place.bucket, key, upload_id, old, length=3)
        assert place.body(key) == b"old"
        return
    with pytest.raises(JobRefusedError):
        place.store.complete_upload(place.bucket, key, upload_id, old, length=3)
    place.store.complete_upload(place.bucket, key, upload_id, [new], length=3)

    assert place.body(key) == b"new"


def test_parts_may_come_in_any_order(place: Place) -> None:
    key = place.key()
    upload_id, _ = place.upload(key)
    second = place.store.upload_part(place.bucket, key, upload_id, 2, b"b")
    first = place.store.upload_part(place.bucket, key, upload_id, 1, b"a" * PART)

    place.store.complete_upload(place.bucket, key, upload_id, [first, second], length=PART + 1)

    assert place.body(key) == b"a" * PART + b"b"


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(lambda etags: [], id="none"),
        pytest.param(lambda etags: [etags[0], '"' + "0" * 32 + '"'], id="unknown etag"),
        pytest.param(lambda etags: [etags[1], etags[0]], id="wrong order"),
        pytest.param(lambda etags: [*etags, etags[1]], id="one too many"),
    ],
)
def test_other_parts_than_those_sent_are_refused(
    place: Place, chosen: Callable[[list[str]], list[str]]
) -> None:
    upload_id, etags = place.upload(place.key(), b"a" * PART, b"b")

    with pytest.raises(JobRefusedError) as caught:
        place.store.complete_upload(
            place.bucket, place.key(), upload_id, chosen(etags), length=PART + 1
        )

    assert caught.value.code == "PARTS_MISMATCH"
    assert place.store.head(place.bucket, place.key()) is None
    assert place.store.upload_is_open(place.bucket, place.key(), upload_id)


def test_parts_with_a_gap_between_their_numbers_are_refused(place: Place) -> None:
    key = place.key()
    upload_id, _ = place.upload(key)
    etags = [place.store.upload_part(place.bucket, key, upload_id, n, b"a" * PART) for n in (1, 3)]

    with pytest.raises(JobRefusedError) as caught:
        place.store.complete_upload(place.bucket, key, upload_id, etags, length=2 * PART)

    assert caught.value.code == "PARTS_MISMATCH"


def test_of_two_uploads_of_one_key_the_one_completed_last_is_there(place: Place) -> None:
    key = place.key()
    (first, one), (second, other) = place.upload(key, b"first"), place.upload(key, b"second")

    place.store.complete_upload(place.bucket, key, second, other, length=6)
    assert place.body(key) == b"second"
    place.store.complete_upload(place.bucket, key, first, one, length=5)
    assert place.body(key) == b"first"


def test_a_small_part_before_the_last_is_refused(place: Place) -> None:
    upload_id, etags = place.upload(place.key(), b"small", b"last")

    with pytest.raises(JobRefusedError) as caught:
        place.store.complete_upload(place.bucket, place.key(), upload_id, etags, length=9)

    assert caught.value.code == "PARTS_MISMATCH"


def test_another_length_than_that_of_the_parts_is_refused(place: Place) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    upload_id, etags = place.upload(key, b"123")
    if not place.known.checks_length:
        store.complete_upload(bucket, key, upload_id, etags, length=4)
        assert place.body(key) == b"123"
        return

    with pytest.raises(JobRefusedError) as caught:
        store.complete_upload(bucket, key, upload_id, etags, length=4)

    assert caught.value.code == "PARTS_MISMATCH"
    assert store.head(bucket, key) is None
    store.complete_upload(bucket, key, upload_id, etags, length=3)


def test_a_completed_upload_is_no_longer_open(place: Place) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    upload_id, etags = place.upload(key, b"x")
    assert store.upload_is_open(bucket, key, upload_id)

    store.complete_upload(bucket, key, upload_id, etags, length=1)

    assert not store.upload_is_open(bucket, key, upload_id)
    assert list(store.list_uploads(bucket, place.prefix)) == []
    with pytest.raises(UploadGoneError):
        store.upload_part(bucket, key, upload_id, 1, b"y")


def test_i5_an_upload_is_completed_at_its_own_key_alone(place: Place) -> None:
    upload_id, etags = place.upload(place.key("mine"), b"x")

    with pytest.raises(UploadGoneError):
        place.store.complete_upload(place.bucket, place.key("yours"), upload_id, etags, length=1)

    assert not place.store.upload_is_open(place.bucket, place.key("yours"), upload_id)
    assert place.store.upload_is_open(place.bucket, place.key("mine"), upload_id)


def test_an_aborted_upload_can_never_be_completed(place: Place) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    upload_id, etags = place.upload(key, b"x")

    store.abort_upload(bucket, key, upload_id)
    store.abort_upload(bucket, key, upload_id)

    assert not store.upload_is_open(bucket, key, upload_id)
    assert list(store.list_uploads(bucket, place.prefix)) == []
    with pytest.raises(UploadGoneError):
        store.complete_upload(bucket, key, upload_id, etags, length=1)
    with pytest.raises(UploadGoneError):
        store.upload_part(bucket, key, upload_id, 1, b"x")
    assert store.head(bucket, key) is None


def test_aborting_a_completed_upload_leaves_its_object(place: Place) -> None:
    upload_id, etags = place.upload(place.key(), b"x")
    place.store.complete_upload(place.bucket, place.key(), upload_id, etags, length=1)

    place.store.abort_upload(place.bucket, place.key(), upload_id)

    assert place.body(place.key()) == b"x"


def test_an_unknown_upload_is_gone(place: Place) -> None:
    store, bucket, key = place.store, place.bucket, place.key()

    assert not store.upload_is_open(bucket, key, "unknown")
    store.abort_upload(bucket, key, "unknown")
    with pytest.raises(UploadGoneError):
        store.upload_part(bucket, key, "unknown", 1, b"x")
    with pytest.raises(UploadGoneError):
        store.complete_upload(bucket, key, "unknown", ['"e"'], length=1)


def test_completing_if_absent_has_one_winner(place: Place) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    bodies = [f"writer {number}".encode() for number in range(THREADS)]
    uploads = [place.upload(key, body) for body in bodies]

    outcomes = at_once(
        [
            partial(store.complete_upload, bucket, key, upload_id, etags, length=8, if_absent=True)
            for upload_id, etags in uploads
        ]
    )

    won = winners(outcomes, lose_by=PreconditionError)
    assert composite(place.body(key)) in {facts.etag for facts in won}
    assert len(won) == 1 or not place.known.completes_atomically


def test_open_uploads_are_listed_below_their_prefix(place: Place) -> None:
    mine = [place.upload(place.key(f"data1/{number}"))[0] for number in range(3)]
    place.upload(place.key("data10/x"))
    place.store.put(place.bucket, place.key("data1/object"), b"")

    found = list(place.store.list_uploads(place.bucket, place.key("data1/")))

    assert {upload.upload_id for upload in found} == set(mine)
    assert {upload.key for upload in found} == {place.key(f"data1/{n}") for n in range(3)}
    for upload in found:
        assert upload.initiated.endswith("Z")
        assert datetime.fromisoformat(upload.initiated).year >= 2026


def test_many_open_uploads_are_listed_all(place: Place) -> None:
    """Pages end within a key and between keys."""
    ids = [place.upload(place.key(f"{number % 5}"))[0] for number in range(4 * PAGE + 1)]
    if not place.known.pages_uploads:
        with pytest.raises(S3CommitError) as caught:
            list(place.store.list_uploads(place.bucket, place.prefix))
        assert caught.value.code == "LISTING"
        return

    found = list(place.store.list_uploads(place.bucket, place.prefix))

    assert sorted(upload.upload_id for upload in found) == sorted(ids)
    assert [upload.key for upload in found] == sorted(upload.key for upload in found)


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_upload_may_have_an_unusual_key(place: Place, name: str) -> None:
    upload_id, etags = place.upload(place.key(name), b"x")

    (found,) = place.store.list_uploads(place.bucket, place.prefix)

    if "+" in name and not place.known.encodes_upload_keys:
        assert found.key == place.key(name.replace("+", " "))
    elif "%" in name and not place.known.encodes_upload_keys:
        assert found.key == place.key(name.replace("%20", " "))
    else:
        assert found.key == place.key(name)
    assert place.store.upload_is_open(place.bucket, place.key(name), upload_id)
    place.store.complete_upload(place.bucket, place.key(name), upload_id, etags, length=1)
    assert place.body(place.key(name)) == b"x"


def test_i2_deleting_a_completed_version_restores_what_it_covered(versioned: Place) -> None:
    store, bucket, key = versioned.store, versioned.bucket, versioned.key()
    store.put(bucket, key, b"before")
    facts = versioned.complete(key, b"after")
    assert facts.version_id is not None
    assert versioned.body(key) == b"after"

    store.delete(bucket, key, version_id=facts.version_id)

    assert versioned.body(key) == b"before"
