"""What recovery and roll back rest on, on every store; where they differ AWS's words decide.

Complete twice, complete after an abort, abort after a completion, ListParts after an abort and the
deletes by etag and by version are in test_uploads.py, test_objects.py and test_deletes.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_client import Encryption
from s3commit.core.model.errors import PreconditionError
from s3commit.core.ports.objects import NULL_VERSION
from tests.contract.conftest import PAGE, Backend, Place
from tests.fakes.memory import MemoryObjectStore


@pytest.fixture
def once_versioned(backend: Backend) -> Iterator[Place]:
    """A bucket that kept versions, has one of ``data``, and keeps none any more."""
    if isinstance(backend.store, S3ObjectStore):
        bucket, client = backend.make_bucket(), backend.store._client
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        place = Place(backend.store, bucket, "place/", backend.known)
        place.store.put(bucket, place.key(), b"before")
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    else:
        store = MemoryObjectStore("contract-suspended", versioned=True)
        place = Place(store, "contract-suspended", "place/", backend.known)
        store.put(place.bucket, place.key(), b"before")
        store.suspend_versioning(place.bucket)
    yield place


def test_where_versioning_is_suspended_a_completion_makes_the_null_version(
    once_versioned: Place,
) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/AddingObjectstoVersionSuspendedBuckets.html"""
    place = once_versioned
    assert not place.store.is_versioned(place.bucket)

    place.complete(place.key(), b"after")

    head = place.store.head(place.bucket, place.key())
    assert head is not None
    assert head.version_id == (NULL_VERSION if place.known.names_null_version else None)
    assert place.body(place.key()) == b"after"


def test_i5_where_versioning_is_suspended_a_delete_is_told_by_its_etag(
    once_versioned: Place,
) -> None:
    """The null version is whatever was put last, so its id proves nothing."""
    place = once_versioned
    ours = place.complete(place.key(), b"ours")
    theirs = place.store.put(place.bucket, place.key(), b"theirs")

    with pytest.raises(PreconditionError):
        place.store.delete(place.bucket, place.key(), if_match=ours.etag)
    assert place.body(place.key()) == b"theirs"
    place.store.delete(place.bucket, place.key(), if_match=theirs)

    assert place.store.head(place.bucket, place.key()) is None
    assert list(place.store.list(place.bucket, place.prefix)) == []


def test_a_refused_completion_leaves_its_upload_open(place: Place) -> None:
    """That distinguishes a foreign file at the key from the upload's own."""
    store, bucket, key = place.store, place.bucket, place.key()
    store.put(bucket, key, b"theirs")
    upload_id, etags = place.upload(key, b"ours")

    with pytest.raises(PreconditionError):
        store.complete_upload(bucket, key, upload_id, etags, length=4, if_absent=True)

    assert store.upload_is_open(bucket, key, upload_id)
    store.abort_upload(bucket, key, upload_id)
    assert not store.upload_is_open(bucket, key, upload_id)


def test_i5_a_version_that_a_stranger_covers_is_deleted_and_theirs_stays(
    versioned: Place,
) -> None:
    store, bucket, key = versioned.store, versioned.bucket, versioned.key()
    facts = versioned.complete(key, b"ours")
    store.put(bucket, key, b"theirs")

    store.delete(bucket, key, version_id=facts.version_id)
    store.delete(bucket, key, version_id=facts.version_id)

    assert versioned.body(key) == b"theirs"


def test_i2_a_version_below_a_strangers_delete_marker_stays_away(versioned: Place) -> None:
    store, bucket, key = versioned.store, versioned.bucket, versioned.key()
    store.put(bucket, key, b"before")
    facts = versioned.complete(key, b"ours")
    store.delete(bucket, key)

    assert store.head(bucket, key) is None
    store.delete(bucket, key, version_id=facts.version_id)

    assert store.head(bucket, key) is None


def test_many_uploads_of_one_key_are_listed_by_key_and_id(place: Place) -> None:
    """Pages end within the key: its name alone is no marker."""
    ids = [place.upload(place.key())[0] for _ in range(2 * PAGE + 1)]
    if not place.known.pages_uploads:
        return  # test_many_open_uploads_are_listed_all: the listing is refused

    found = list(place.store.list_uploads(place.bucket, place.key()))

    assert sorted(upload.upload_id for upload in found) == sorted(ids)
    for upload_id in ids:
        place.store.abort_upload(place.bucket, place.key(), upload_id)
    assert list(place.store.list_uploads(place.bucket, place.prefix)) == []


@pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT", ""])
def test_a_listing_says_which_uploads_can_not_be_completed_by_etags_alone(
    moto_endpoint: str, kind: str
) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_MultipartUpload.html, ChecksumType"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
        store = S3ObjectStore()
    bucket = f"own-{uuid.uuid4().hex}"
    store._client.create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    asked: Any = {"ChecksumAlgorithm": "CRC32", "ChecksumType": kind} if kind else {}
    store._client.create_multipart_upload(Bucket=bucket, Key="k", **asked)

    (upload,) = store.list_uploads(bucket, "k")

    assert upload.composite is (kind == "COMPOSITE")


@pytest.mark.parametrize("algorithm", ["aws:kms", "aws:kms:dsse"])
def test_an_object_behind_a_key_says_that_its_etag_tells_nothing(
    moto_endpoint: str, algorithm: str
) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html: not an MD5 digest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
        plain, hidden = S3ObjectStore(), S3ObjectStore(encryption=Encryption(algorithm))
    bucket = f"own-{uuid.uuid4().hex}"
    plain._client.create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    plain.put(bucket, "plain", b"x")
    hidden.put(bucket, "hidden", b"x")
    memory = MemoryObjectStore("m", opaque=True)
    memory.put("m", "hidden", b"x")

    seen = [plain.head(bucket, "plain"), hidden.head(bucket, "hidden"), memory.head("m", "hidden")]

    assert [facts is not None and facts.opaque for facts in seen] == [False, True, True]
