"""Listings of objects, versions and uploads with times, which can be resumed from a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from s3commit.aws.failures import translated
from s3commit.aws.s3_uploads import open_uploads, rfc3339
from s3commit.core.ports.objects import OpenUpload
from s3commit.core.ports.survey import SeenObject, SeenVersion, UploadParts

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PAGE = 1000  # S3's own maximum of a listing


class S3Survey:
    """Implements `s3commit.core.ports.survey.Survey`; a request a page, thread-safe."""

    def __init__(self, client: S3Client, *, page: int = PAGE) -> None:
        self._client = client
        self._page = page

    def objects(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[SeenObject]:
        """See `Survey.objects`."""
        start: Any = {"StartAfter": after} if after else {}
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": self._page}, **start
        )
        with translated(f"listing s3://{bucket}/{prefix}"):
            for page in pages:
                for found in page.get("Contents", ()):
                    moment = rfc3339(found["LastModified"])
                    yield SeenObject(found["Key"], found["ETag"], found["Size"], moment)

    def uploads(
        self, bucket: str, prefix: str = "", *, after: str = "", after_upload: str = ""
    ) -> Iterator[OpenUpload]:
        """See `Survey.uploads`."""
        return open_uploads(
            self._client,
            bucket,
            prefix,
            after=after,
            after_upload=after_upload,
            page_size=self._page,
        )

    def parts(self, bucket: str, key: str, upload_id: str) -> UploadParts:
        """See `Survey.parts`."""
        pages = self._client.get_paginator("list_parts").paginate(
            Bucket=bucket, Key=key, UploadId=upload_id
        )
        size, last = 0, ""
        with translated(f"listing the parts of an upload of s3://{bucket}/{key}"):
            for page in pages:
                for part in page.get("Parts", ()):
                    size += part["Size"]
                    last = max(last, rfc3339(part["LastModified"]))
        return UploadParts(size, last)

    def versions(self, bucket: str, key: str) -> Iterator[SeenVersion]:
        """See `Survey.versions`."""
        pages = self._client.get_paginator("list_object_versions").paginate(
            Bucket=bucket, Prefix=key
        )
        with translated(f"listing the versions of s3://{bucket}/{key}"):
            for page in pages:
                for one in page.get("Versions", ()):
                    if one["Key"] != key:
                        return  # in the order of keys, and this one's come first
                    yield SeenVersion(one["VersionId"], one["ETag"], one["Size"])
