"""A look into S3 that only the command takes, and the ports therefore do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from s3commit.aws.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Peek(Protocol):
    """Looks at what is not an object yet."""

    def uploaded_bytes(self, bucket: str, key: str, upload_id: str) -> int:
        """The bytes of all parts of an open upload. Raises `UploadGoneError`."""
        ...


class S3Peek:
    """Implements `Peek`: a ListParts for each 1,000 parts."""

    def __init__(self, client: S3Client) -> None:
        self._client = client

    def uploaded_bytes(self, bucket: str, key: str, upload_id: str) -> int:
        """See `Peek.uploaded_bytes`."""
        pages = self._client.get_paginator("list_parts").paginate(
            Bucket=bucket, Key=key, UploadId=upload_id
        )
        with translated(f"listing the parts of an upload of s3://{bucket}/{key}"):
            return sum(part["Size"] for page in pages for part in page.get("Parts", ()))
