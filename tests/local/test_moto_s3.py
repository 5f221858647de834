"""The patches of S3: each test fails without its patch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import Local
from tests.local.stress import switching_fast


def code(error: pytest.ExceptionInfo[ClientError]) -> tuple[str, int]:
    response = error.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


class Upload:
    def __init__(self, local: Local, key: str, *bodies: bytes) -> None:
        self.s3, self.key = local.s3, key
        self.id = self.s3.create_multipart_upload(
            Bucket=local.bucket, Key=key, Metadata={"who": "me"}
        )["UploadId"]
        self.where = {"Bucket": local.bucket, "Key": key, "UploadId": self.id}
        self.parts = [
            {"PartNumber": n, "ETag": self.part(n, body)} for n, body in enumerate(bodies, 1)
        ]

    def part(self, number: int, body: bytes) -> str:
        etag: str = self.s3.upload_part(**self.where, PartNumber=number, Body=body)["ETag"]
        return etag

    def complete(self, **more: Any) -> Any:
        request = self.where | {"MultipartUpload": {"Parts": self.parts}} | more
        return self.s3.complete_multipart_upload(**request)

    def abort(self) -> None:
        self.s3.abort_multipart_upload(**self.where)


def test_an_aborted_upload_is_no_such_upload_to_all(local: Local, key: str) -> None:
    upload = Upload(local, key, b"x")
    upload.abort()
    calls: tuple[Callable[[], Any], ...] = (
        upload.complete,
        lambda: upload.part(2, b"y"),
        lambda: local.s3.list_parts(**upload.where),
        upload.abort,
    )
    for call in calls:
        with pytest.raises(ClientError) as error:
            call()
        assert code(error) == ("NoSuchUpload", 404)


def test_an_upload_belongs_to_its_key(local: Local, key: str) -> None:
    upload = Upload(local, key, b"x")
    elsewhere = upload.where | {"Key": key + "2"}
    calls: tuple[Callable[[], Any], ...] = (
        lambda: upload.complete(Key=key + "2"),
        lambda: local.s3.abort_multipart_upload(**elsewhere),
        lambda: local.s3.list_parts(**elsewhere),
    )
    for call in calls:
        with pytest.raises(ClientError) as error:
            call()
        assert code(error) == ("NoSuchUpload", 404)
    upload.complete()


def test_completing_again_is_the_same_answer(local: Local, key: str) -> None:
    upload = Upload(local, key, b"x")
    assert upload.complete()["ETag"] == upload.complete()["ETag"]


def test_completing_what_was_overwritten_is_no_such_upload(local: Local, key: str) -> None:
    upload = Upload(local, key, b"x")
    upload.complete()
    local.s3.put_object(Bucket=local.bucket, Key=key, Body=b"other")
    with pytest.raises(ClientError) as error:
        upload.complete()
    assert code(error) == ("NoSuchUpload", 404)


def test_a_refused_completion_leaves_the_upload_open(local: Local, key: str) -> None:
    upload = Upload(local, key, b"new")
    local.s3.put_object(Bucket=local.bucket, Key=key, Body=b"old")
    with pytest.raises(ClientError) as error:
        upload.complete(IfNoneMatch="*")
    assert code(error) == ("PreconditionFailed", 412)
    assert local.s3.list_parts(**upload.where)["Parts"]
    upload.complete()


def test_the_parts_must_add_up_to_the_size_that_is_named(local: Local, key: str) -> None:
    upload = Upload(local, key, b"12345")
    with pytest.raises(ClientError) as error:
        upload.complete(MpuObjectSize=6)
    assert code(error) == ("InvalidRequest", 400)
    upload.complete(MpuObjectSize=5)


def test_uploads_are_listed_in_pages_and_with_their_time(local: Local, key: str) -> None:
    start = datetime.now(UTC) - timedelta(seconds=2)
    made = {(f"{key}/{n % 5}", Upload(local, f"{key}/{n % 5}").id) for n in range(7)}
    seen: list[tuple[str, str]] = []
    marker: dict[str, str] = {}
    while True:
        page = local.s3.list_multipart_uploads(
            Bucket=local.bucket, Prefix=key, MaxUploads=3, **marker
        )
        assert len(page["Uploads"]) <= 3
        seen += [(upload["Key"], upload["UploadId"]) for upload in page["Uploads"]]
        assert all(start <= u["Initiated"] <= datetime.now(UTC) for u in page["Uploads"])
        if not page["IsTruncated"]:
            break
        marker = {
            "KeyMarker": page["NextKeyMarker"],
            "UploadIdMarker": page["NextUploadIdMarker"],
        }
    assert set(seen) == made
    assert [name for name, _ in seen] == sorted(name for name, _ in seen)
    assert len(seen) == 7


def test_delete_objects_keeps_what_has_another_etag(local: Local, key: str) -> None:
    put = {
        name: local.s3.put_object(Bucket=local.bucket, Key=name, Body=name.encode())["ETag"]
        for name in (key + "&a", key + "b")
    }
    first, second = put
    for etag_of_first in ('"other"', put[first]):
        answer = local.s3.delete_objects(
            Bucket=local.bucket,
            Delete={
                "Objects": [
                    {"Key": first, "ETag": etag_of_first},
                    {"Key": second, "ETag": put[second]},
                ]
            },
        )
        if etag_of_first == '"other"':
            assert [deleted["Key"] for deleted in answer["Deleted"]] == [second]
            assert [(e["Key"], e["Code"]) for e in answer["Errors"]] == [
                (first, "PreconditionFailed")
            ]
            local.s3.head_object(Bucket=local.bucket, Key=first)
            put[second] = local.s3.put_object(Bucket=local.bucket, Key=second, Body=b"2")["ETag"]
        else:
            assert len(answer["Deleted"]) == 2
    answer = local.s3.delete_objects(
        Bucket=local.bucket, Delete={"Objects": [{"Key": first, "ETag": '"gone"'}]}
    )
    assert answer["Errors"][0]["Code"] == "PreconditionFailed"
    assert not answer.get("Deleted")


def test_one_put_of_many_wins_a_key(local: Local, key: str) -> None:
    def claim(n: int) -> int:
        try:
            local.s3.put_object(
                Bucket=local.bucket, Key=f"{key}/{n // 8}", Body=b"%d" % n, IfNoneMatch="*"
            )
        except ClientError:
            return 0
        return 1

    with switching_fast(), ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(8 * 40))) == 40


def test_no_reader_sees_a_completed_object_without_its_metadata(local: Local, key: str) -> None:
    uploads = [Upload(local, f"{key}/{n}", b"x") for n in range(30)]
    seen: list[dict[str, str]] = []

    def watch(upload: Upload) -> None:
        while True:
            try:
                head = local.s3.head_object(Bucket=local.bucket, Key=upload.key)
            except ClientError:
                continue
            seen.append(head["Metadata"])
            return

    with switching_fast(), ThreadPoolExecutor(4) as pool:
        for upload in uploads:
            watching = [pool.submit(watch, upload) for _ in range(3)]
            upload.complete()
            for future in watching:
                future.result()
    assert seen == [{"who": "me"}] * 90
