"""Requests to S3 that take more than one call of the client.

A listing of open uploads, page by page, a delete of many objects, each only if it is the one that
was seen, and the look whether a store keeps that promise.
"""

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import unquote_plus

from botocore.exceptions import ClientError

from s3commit.aws.clients import S3Client, is_aws
from s3commit.aws.failures import BAD_ENDPOINT, translate, translated
from s3commit.core.formats.layout import PIPELINE
from s3commit.core.model.errors import (
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.moments import rfc3339
from s3commit.core.ports.objects import ListedObject, OpenUpload

# Characters that XML 1.0 cannot carry, not even as a character reference (https://www.w3.org/TR/xml/#charsets)
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@contextmanager
def listed(what: str) -> Iterator[None]:
    """As `translated`, of a listing.

    Raises `NeedsOperatorError` (``LISTING``) for one that is not as AWS's: another store may leave
    out what it does not know, as when an upload was begun.
    """
    with translated(what):
        try:
            yield
        except (KeyError, ValueError) as error:
            if str(error).startswith(BAD_ENDPOINT):
                raise
            raise NeedsOperatorError(
                f"{what}: the store's answer is not as AWS's ({type(error).__name__}: {error}):"
                " use another store",
                code="LISTING",
            ) from error


def open_uploads(
    client: S3Client, bucket: str, prefix: str, *, after: str, page_size: int
) -> Iterator[OpenUpload]:
    """As `ObjectReader.list_uploads`; a request a page.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html

    Raises as `listed`, also where a store does not say how to list the rest, and S3's errors as
    `s3commit.core.model.errors`.
    """
    # Not botocore's paginator: it does not decode keys here, and without EncodingType a key
    # that XML cannot carry breaks the listing.
    markers: dict[str, Any] = {"KeyMarker": after} if after else {}
    while True:
        with listed(f"listing the uploads of s3://{bucket}/{prefix}"):
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
                    storage_class=found.get("StorageClass") or "STANDARD",
                )
        if not page.get("IsTruncated"):
            return
        if "NextKeyMarker" not in page:  # SeaweedFS 4.48; the rest would be missed
            raise NeedsOperatorError(
                f"s3://{bucket}/{prefix} has more than {page_size} open uploads, and this store"
                " does not say how to list the rest",
                code="LISTING",
            )
        markers = {
            "KeyMarker": decode(page["NextKeyMarker"]),
            "UploadIdMarker": page["NextUploadIdMarker"],
        }


def fits_xml(key: str) -> bool:
    """True if the body of a DeleteObjects request can name the key."""
    return not _NOT_XML.search(key)


def delete_together(client: S3Client, bucket: str, objects: Sequence[ListedObject]) -> None:
    """Delete up to 1,000 objects, each on condition of its etag; pass over those that changed.

    S3 judges each key by itself, by the ``ETag`` of its identifier, and names the refused ones:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html (the right to
    read the objects is needed as well). Of several errors one that lasts is raised first.
    """
    named: Any = [{"Key": seen.key, "ETag": seen.etag} for seen in objects]
    with translated(f"deleting {len(objects)} objects of s3://{bucket}"):
        answer = client.delete_objects(Bucket=bucket, Delete={"Objects": named, "Quiet": True})
    errors = [_error_of_key(bucket, refused) for refused in answer.get("Errors", ())]
    errors = [each for each in errors if not isinstance(each, PreconditionError | NotFoundError)]
    if errors:
        raise min(errors, key=lambda each: isinstance(each, TransientError))


def _error_of_key(bucket: str, refused: Any) -> S3CommitError:
    """S3's error for one key, with status 200 for the request."""
    answer: Any = {"Error": {"Code": refused["Code"], "Message": refused.get("Message", "")}}
    what = f"deleting s3://{bucket}/{refused.get('Key', '')}"
    return translate(ClientError(answer, "DeleteObjects"), what)


def keeps_changed(client: S3Client, bucket: str, prefix: str = PIPELINE) -> bool:
    """True if the bucket's store deletes an object only if it has the etag that is named (I5).

    AWS documents that it does, so it is not asked, and no job there takes a request more. Another
    store may ignore the etag, and report success: MinIO and LocalStack do. So it is tried there,
    with an object below ``prefix`` that is removed again, by both requests that the pipeline makes:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html

    Raises S3's errors as `s3commit.core.model.errors`.
    """
    if is_aws(client):
        return True
    key, other = f"{prefix}_s3commit-probe-{uuid.uuid4()}", f'"{"0" * 32}"'
    named: Any = {"Bucket": bucket, "Key": key}
    together: Any = {"Objects": [{"Key": key, "ETag": other}], "Quiet": True}
    what = f"trying a conditional delete of s3://{bucket}/{key}"
    with suppress(PreconditionError, NotFoundError), translated(what):
        client.delete_object(**named, IfMatch=other)  # without the right to delete, nothing is put
    with translated(what):
        try:
            for attempt in (
                partial(client.delete_objects, Bucket=bucket, Delete=together),
                partial(client.delete_object, **named, IfMatch=other),
            ):
                client.put_object(**named, Body=b"probe")
                with suppress(ClientError):  # it refuses: whether the object is there is looked at
                    attempt()
                listed = client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
                if not listed.get("Contents"):
                    return False
        finally:
            client.delete_object(**named)
    return True


def check_deletes(client: S3Client, bucket: str) -> None:
    """Raise `JobRefusedError` for a job that replaces where the store ignores the etag."""
    if not keeps_changed(client, bucket):
        raise JobRefusedError(
            f"conflict 'replace' is not allowed in bucket {bucket}: its store ignores the etag of a"
            " conditional delete, so the job would delete what was changed after its list was made."
            " Nothing was changed: append, or use a store that `s3commit doctor` accepts",
            code="REPLACE_NOT_ALLOWED",
        )
