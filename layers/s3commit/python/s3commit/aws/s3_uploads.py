"""The listing of open uploads, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from s3commit.aws.failures import translated
from s3commit.core.model.errors import NeedsOperatorError
from s3commit.core.ports.objects import OpenUpload

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def open_uploads(
    client: S3Client, bucket: str, prefix: str, *, after: str, after_upload: str, page_size: int
) -> Iterator[OpenUpload]:
    """As `ObjectReader.list_uploads`, be ``after_upload`` there or not; a request a page.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html

    Raises `NeedsOperatorError` (``LISTING``) where a store does not say how to list the rest, and
    S3's errors as `s3commit.core.model.errors`.
    """
    # Not botocore's paginator: it does not decode keys here, and without EncodingType a key
    # that XML can not carry breaks the listing. Without an upload's id, a marker is a key: what
    # has that very key is left out.
    markers: dict[str, Any] = {"KeyMarker": after} if after else {}
    if after_upload:
        markers["UploadIdMarker"] = after_upload
    while True:
        with translated(f"listing the uploads of s3://{bucket}/{prefix}"):
            page: Any = client.list_multipart_uploads(
                Bucket=bucket, Prefix=prefix, MaxUploads=page_size, EncodingType="url", **markers
            )
        decode = unquote_plus if page.get("EncodingType") == "url" else str
        for found in page.get("Uploads", ()):
            yield OpenUpload(
                decode(found["Key"]),
                found["UploadId"],
                rfc3339(found["Initiated"]),
                composite=found.get("ChecksumType") == "COMPOSITE",
            )
        if not page.get("IsTruncated"):
            return
        if "NextKeyMarker" not in page:  # SeaweedFS 4.48; going on would miss uploads
            raise NeedsOperatorError(
                f"s3://{bucket}/{prefix} has more than {page_size} open uploads, and this store"
                " does not say how to list the rest",
                code="LISTING",
            )
        markers = {
            "KeyMarker": decode(page["NextKeyMarker"]),
            "UploadIdMarker": page["NextUploadIdMarker"],
        }


def rfc3339(moment: datetime) -> str:
    """A moment of S3's, in UTC, with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
