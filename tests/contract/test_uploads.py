"""Multipart uploads: what every object store does with them."""

import uuid
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Any

import pytest

from s3commit.aws.clients import Encryption, make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import (
    JobRefusedError,
    PreconditionError,
    S3CommitError,
    UploadGoneError,
)
from s3commit.core.model.moments import rfc3339, seconds
from tests.contract.conftest import PAGE, PART, THREADS, Backend, Place, at_once, winners
from tests.contract.given import make_bucket
from tests.contract.test_objects import UNUSUAL
from tests.fakes.bucket import composite_etag
from tests.fakes.memory import MemoryObjectStore


def test_i1_an_upload_is_invisible_until_it_is_completed(place: Place) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    store.put(bucket, key, b"before")
    upload_id, etags = place.upload(key, b"a" * PART, b"rest")

    assert place.body(key) == b"before"
    assert [line.key for line in store.list(bucket, place.prefix)] == [key]

    facts = store.complete_upload(bucket, key, upload_id, etags, length=PART + 4)

    assert place.body(key) == b"a" * PART + b"rest"
    assert (facts.key, facts.length) == (key, PART + 4)
    assert facts.etag == composite_etag([b"a" * PART, b"rest"])
    head = store.head(bucket, key)
    assert head is not None
    assert (head.etag, head.length) == (facts.etag, facts.length)


@pytest.mark.parametrize(
    ("first", "chosen"),
    [
        pytest.param(b"a" * PART, lambda etags: [], id="none"),
        pytest.param(b"a" * PART, lambda etags: [etags[0], f'"{"0" * 32}"'], id="unknown etag"),
        pytest.param(b"a" * PART, lambda etags: etags[::-1], id="wrong order"),
        pytest.param(b"a" * PART, lambda etags: [*etags, etags[1]], id="one too many"),
        pytest.param(b"small", list, id="a small one before the last"),
    ],
)
def test_other_parts_than_those_sent_or_too_small_ones_are_refused(
    place: Place, first: bytes, chosen: Callable[[list[str]], list[str]]
) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    upload_id, etags = place.upload(key, first, b"b")

    with pytest.raises(JobRefusedError) as caught:
        store.complete_upload(bucket, key, upload_id, chosen(etags), length=len(first) + 1)

    assert caught.value.code == "PARTS_MISMATCH"
    assert store.head(bucket, key) is None
    assert store.upload_is_open(bucket, key, upload_id)


@pytest.mark.parametrize("parts", [0, 1, PAGE, PAGE + 1])
def test_the_bytes_of_an_upload_are_those_of_all_its_parts(place: Place, parts: int) -> None:
    upload_id, _ = place.upload(place.key(), *[b"part"] * parts)
    assert place.store.upload_bytes(place.bucket, place.key(), upload_id) == 4 * parts
    place.store.abort_upload(place.bucket, place.key(), upload_id)
    with pytest.raises(UploadGoneError):
        place.store.upload_bytes(place.bucket, place.key(), upload_id)


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
    assert composite_etag([place.body(key)]) in {facts.etag for facts in won}
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


def test_what_came_in_parts_is_from_when_its_upload_was_started(
    versioned: Place, backend: Backend
) -> None:
    """Whoever looks, and whatever was put there since; a copy is from when it was made."""
    store, bucket, key = versioned.store, versioned.bucket, versioned.key()
    upload_id, etags = versioned.upload(key, b"x")
    [upload] = store.list_uploads(bucket, versioned.prefix)
    versioned.later(2.1)  # S3 gives whole seconds
    store.complete_upload(bucket, key, upload_id, etags, length=1)

    head, [listed] = store.head(bucket, key), store.list(bucket, key)
    assert head is not None
    found = {head.modified, store.get(bucket, key, max_bytes=1).facts.modified, listed.modified}
    if client := backend.client:
        copied = {"CopySource": {"Bucket": bucket, "Key": key}}
        client.copy_object(Bucket=bucket, Key=f"{key}-copy", **copied)
        pages = client.list_objects(Bucket=bucket, Prefix=key)["Contents"]
        pages += client.list_object_versions(Bucket=bucket, Prefix=key)["Versions"]
        dates = {(one["Key"] == key, rfc3339(one["LastModified"])) for one in pages}
        found |= {date for is_it, date in dates if is_it}
        assert all(seconds(upload.initiated, date) > 1 for is_it, date in dates if not is_it)
    apart = [seconds(upload.initiated, date) for date in found]
    assert all(abs(one) < 1 if versioned.known.dates_by_start else one > 1 for one in apart)


def uploads_below(backend: Backend, place: Place, after: str = "") -> list[str]:
    """The bucket's uploads from the place's prefix on, as far as they are below it."""
    if not place.known.pages_uploads:  # nor does it know a KeyMarker
        store = S3ObjectStore(backend.client)  # with pages as large as S3's
        keys = sorted(one.key for one in store.list_uploads(place.bucket, place.prefix))
        return [key[len(place.prefix) :] for key in keys if key > after]
    found = place.store.list_uploads(place.bucket, "", after=after or place.prefix)
    below = takewhile(lambda upload: upload.key.startswith(place.prefix), found)
    return [upload.key[len(place.prefix) :] for upload in below]


def test_many_open_uploads_are_listed_all_or_from_a_key_on(place: Place, backend: Backend) -> None:
    """Pages end within a key and between keys."""
    names = [f"{number % 5}" for number in range(4 * PAGE + 1)]
    ids = [place.upload(place.key(name))[0] for name in names]
    assert uploads_below(backend, place) == sorted(names)
    assert uploads_below(backend, place, place.key("1")) == sorted(
        name for name in names if name > "1"
    )
    if not place.known.pages_uploads:
        with pytest.raises(S3CommitError) as caught:
            list(place.store.list_uploads(place.bucket, place.prefix))
        assert caught.value.code == "LISTING"
        return

    found = list(place.store.list_uploads(place.bucket, place.prefix))

    assert sorted(upload.upload_id for upload in found) == sorted(ids)
    assert [upload.key for upload in found] == sorted(upload.key for upload in found)


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_upload_may_have_an_unusual_key(place: Place, backend: Backend, name: str) -> None:
    upload_id, etags = place.upload(place.key(name), b"x")

    listed = name
    if not place.known.encodes_upload_keys:
        listed = name.replace("+", " ").replace("%20", " ")
    (found,) = place.store.list_uploads(place.bucket, place.prefix)
    assert found.key == place.key(listed)
    assert uploads_below(backend, place) == [listed]
    assert uploads_below(backend, place, place.key(listed)) == []
    assert place.store.upload_is_open(place.bucket, place.key(name), upload_id)
    place.store.complete_upload(place.bucket, place.key(name), upload_id, etags, length=1)
    assert place.body(place.key(name)) == b"x"


OF_A_FILE = {"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "PutObject"}


def test_after_the_first_file_no_request_of_a_file_takes_work_of_botocore(
    place: Place, backend: Backend
) -> None:
    """`s3commit.aws.prepared`, on each server: a refusal would show here alone."""
    made: list[str] = []

    def note(model: Any, **_: Any) -> None:
        made.append(model.name)

    events = backend.client.meta.events if backend.client else None
    if events:
        events.register("before-call.s3", note)
    try:
        for number in range(3):
            made.clear()
            key, other = place.key(f"{number} ä+%.csv"), place.key(f"{number}")
            place.complete(key, b"x")
            place.store.put(place.bucket, other, b"y", if_absent=True)
            assert (place.body(key), place.body(other)) == (b"x", b"y")
            assert number == 0 or not OF_A_FILE & {*made}
    finally:
        if events:
            events.unregister("before-call.s3", note)


# What recovery and roll back rest on, on every store; where they differ AWS's words decide.


@pytest.fixture
def on_moto(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """A client, and a bucket of its own."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    client = make_client()
    return client, make_bucket(client, f"own-{uuid.uuid4().hex}")


@pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT", ""])
def test_a_listing_says_which_uploads_can_not_be_completed_by_etags_alone(
    on_moto: tuple[Any, str], kind: str
) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_MultipartUpload.html, ChecksumType"""
    client, bucket = on_moto
    asked: Any = {"ChecksumAlgorithm": "CRC32", "ChecksumType": kind} if kind else {}
    client.create_multipart_upload(Bucket=bucket, Key="k", **asked)

    (upload,) = S3ObjectStore(client).list_uploads(bucket, "k")

    assert upload.composite is (kind == "COMPOSITE")


@pytest.mark.parametrize("algorithm", ["aws:kms", "aws:kms:dsse"])
def test_an_object_behind_a_key_says_that_its_etag_tells_nothing(
    on_moto: tuple[Any, str], algorithm: str
) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html: not an MD5 digest."""
    client, bucket = on_moto
    plain, hidden = S3ObjectStore(client), S3ObjectStore(client, encryption=Encryption(algorithm))
    plain.put(bucket, "plain", b"x")
    hidden.put(bucket, "hidden", b"x")
    memory = MemoryObjectStore("m", opaque=True)
    memory.put("m", "hidden", b"x")

    seen = [plain.head(bucket, "plain"), hidden.head(bucket, "hidden"), memory.head("m", "hidden")]

    assert [facts is not None and facts.opaque for facts in seen] == [False, True, True]
