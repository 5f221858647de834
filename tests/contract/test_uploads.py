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
    head = store.head(bucket, key)
    assert head is not None
    assert (head.etag, head.length) == (facts.etag, facts.length)


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


def test_i5_an_upload_is_completed_at_its_own_key_alone(place: Place) -> None:
    upload_id, etags = place.upload(place.key("mine"), b"x")

    with pytest.raises(UploadGoneError):
        place.store.complete_upload(place.bucket, place.key("yours"), upload_id, etags, length=1)

    place.store.abort_upload(place.bucket, place.key("yours"), upload_id)
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
