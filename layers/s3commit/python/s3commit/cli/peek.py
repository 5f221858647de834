"""Two looks into S3 that only the command takes, and the ports therefore do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from s3commit.aws.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Peek(Protocol):
    """Looks at a part of something large."""

    def first_bytes(self, bucket: str, key: str, count: int) -> bytes:
        """The first bytes of an object that is not empty. Raises `NotFoundError`."""
        ...

    def uploaded_bytes(self, bucket: str, key: str, upload_id: str) -> int:
        """The bytes of all parts of an open upload. Raises `UploadGoneError`."""
        ...


class S3Peek:
    """Implements `Peek`: one ranged GetObject, and a ListParts for each 1,000 parts."""

    def __init__(self, client: S3Client) -> None:
        self._client = client

    def first_bytes(self, bucket: str, key: str, count: int) -> bytes:
        """See `Peek.first_bytes`."""
        with translated(f"reading s3://{bucket}/{key}"):
            answer = self._client.get_object(Bucket=bucket, Key=key, Range=f"bytes=0-{count - 1}")
            return answer["Body"].read()

    def uploaded_bytes(self, bucket: str, key: str, upload_id: str) -> int:
        """See `Peek.uploaded_bytes`."""
        pages = self._client.get_paginator("list_parts").paginate(
            Bucket=bucket, Key=key, UploadId=upload_id
        )
        with translated(f"listing the parts of an upload of s3://{bucket}/{key}"):
            return sum(part["Size"] for page in pages for part in page.get("Parts", ()))
