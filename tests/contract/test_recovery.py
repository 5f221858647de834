"""What recovery and roll back rest on, on every store; where they differ AWS's words decide.

Complete twice, complete after an abort, abort after a completion, ListParts after an abort and the
deletes by etag are in test_uploads.py, test_objects.py and test_deletes.py.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.session import Encryption, make_client
from s3commit.core.model.errors import PreconditionError
from tests.contract.conftest import Place
from tests.contract.given import make_bucket
from tests.fakes.memory import MemoryObjectStore


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


@pytest.fixture
def on_moto(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> tuple[S3ObjectStore, str]:
    """A store, and a bucket of its own."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    client = make_client()
    return S3ObjectStore(client), make_bucket(client, f"own-{uuid.uuid4().hex}")


@pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT", ""])
def test_a_listing_says_which_uploads_can_not_be_completed_by_etags_alone(
    on_moto: tuple[S3ObjectStore, str], kind: str
) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_MultipartUpload.html, ChecksumType"""
    store, bucket = on_moto
    asked: Any = {"ChecksumAlgorithm": "CRC32", "ChecksumType": kind} if kind else {}
    store._client.create_multipart_upload(Bucket=bucket, Key="k", **asked)

    (upload,) = store.list_uploads(bucket, "k")

    assert upload.composite is (kind == "COMPOSITE")


@pytest.mark.parametrize("algorithm", ["aws:kms", "aws:kms:dsse"])
def test_an_object_behind_a_key_says_that_its_etag_tells_nothing(
    on_moto: tuple[S3ObjectStore, str], algorithm: str
) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html: not an MD5 digest."""
    plain, bucket = on_moto
    hidden = S3ObjectStore(plain._client, encryption=Encryption(algorithm))
    plain.put(bucket, "plain", b"x")
    hidden.put(bucket, "hidden", b"x")
    memory = MemoryObjectStore("m", opaque=True)
    memory.put("m", "hidden", b"x")

    seen = [plain.head(bucket, "plain"), hidden.head(bucket, "hidden"), memory.head("m", "hidden")]

    assert [facts is not None and facts.opaque for facts in seen] == [False, True, True]
