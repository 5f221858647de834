"""The object store on S3.

Requests are what they say: one call is one request (a listing: one a page), apart from botocore's
retries and the look that a conditional delete takes after a 412.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, TypeVar

from s3commit.aws.clients import Encryption, S3Client, make_client
from s3commit.aws.failures import answered, translated
from s3commit.aws.prepared import PreparedRequests
from s3commit.aws.s3_requests import delete_together, fits_xml, listed, open_uploads
from s3commit.core.model.errors import (
    CONFLICT,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
    TransientError,
    UploadGoneError,
)
from s3commit.core.model.moments import rfc3339
from s3commit.core.ports.objects import (
    ListedObject,
    ListedVersion,
    ObjectFacts,
    OpenUpload,
    PartSource,
    StoredObject,
    listed_at,
)

T = TypeVar("T")

PAGE = 1000  # S3's own maximum of a listing

CONFLICT_TRIES = 4  # of a put or delete that met another request for its key (409)
CONFLICT_PAUSE = 0.1  # seconds, doubled each time


class S3ObjectStore:
    """Implements `s3commit.core.ports.objects.ObjectStore`; thread-safe, as its client is.

    ``page`` bounds a page of a listing. Botocore may repeat a conditional put whose answer was
    lost, and then reports the caller's own object as a conflict (`PreconditionError`): a caller
    whose conditional put is refused reads what is there.
    """

    def __init__(
        self,
        client: S3Client | None = None,
        *,
        encryption: Encryption | None = None,
        page: int = PAGE,
    ) -> None:
        self._client = client or make_client()
        self._encryption = encryption.parameters() if encryption else {}
        self._prepared = PreparedRequests(self._client)
        self._page = page

    def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        with translated(f"reading s3://{bucket}/{key}"):
            answer = self._client.get_object(Bucket=bucket, Key=key)
            with closing(answer["Body"]) as stream:
                if answer["ContentLength"] > max_bytes:
                    raise InvalidInputError(
                        f"s3://{bucket}/{key} has {answer['ContentLength']} bytes, more than the"
                        f" {max_bytes} that are read",
                        code="TOO_LARGE",
                    )
                return StoredObject(_facts(key, answer), stream.read())

    def first_bytes(self, bucket: str, key: str, count: int, *, start: int = 0) -> bytes:
        asked = f"bytes={start}-{start + count - 1}"
        with translated(f"reading s3://{bucket}/{key}"):
            answer = self._client.get_object(Bucket=bucket, Key=key, Range=asked)
            with closing(answer["Body"]) as stream:
                return stream.read()

    def last_bytes(self, bucket: str, key: str, count: int) -> bytes:
        with translated(f"reading s3://{bucket}/{key}"):
            answer = self._client.get_object(Bucket=bucket, Key=key, Range=f"bytes=-{count}")
            with closing(answer["Body"]) as stream:
                return stream.read()

    def head(self, bucket: str, key: str) -> ObjectFacts | None:
        try:
            with translated(f"looking at s3://{bucket}/{key}"):
                return _facts(key, self._client.head_object(Bucket=bucket, Key=key))
        except NotFoundError:
            return None

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        start: Any = {"StartAfter": after} if after else {}
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": self._page}, **start
        )
        with listed(f"listing s3://{bucket}/{prefix}"):
            for page in pages:
                yield from map(_listed, page.get("Contents", ()))

    def below(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, Delimiter="/", PaginationConfig={"PageSize": self._page}
        )
        with listed(f"listing s3://{bucket}/{prefix}"):
            for page in pages:
                found = [*map(_listed, page.get("Contents", ()))]
                found += [
                    ListedObject(one["Prefix"], "", 0) for one in page.get("CommonPrefixes", ())
                ]
                found.sort(key=lambda one: one.key)
                yield from (one for one in found if one.key != prefix)

    def list_versions(self, bucket: str, key: str) -> Iterator[ListedVersion]:
        pages = self._client.get_paginator("list_object_versions").paginate(
            Bucket=bucket, Prefix=key
        )
        with listed(f"listing the versions of s3://{bucket}/{key}"):
            for page in pages:
                for one in page.get("Versions", ()):
                    if one["Key"] != key:
                        return  # in the order of keys, and this one's come first
                    yield ListedVersion(one["VersionId"], one["ETag"], one["Size"])

    def list_uploads(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[OpenUpload]:
        return open_uploads(self._client, bucket, prefix, after=after, page_size=self._page)

    def upload_is_open(self, bucket: str, key: str, upload_id: str) -> bool:
        try:
            with translated(f"looking at an upload of s3://{bucket}/{key}"):
                self._client.list_parts(Bucket=bucket, Key=key, UploadId=upload_id, MaxParts=1)
        except UploadGoneError:
            return False
        return True

    def upload_bytes(self, bucket: str, key: str, upload_id: str) -> int:
        pages = self._client.get_paginator("list_parts").paginate(
            Bucket=bucket, Key=key, UploadId=upload_id, PaginationConfig={"PageSize": self._page}
        )
        with listed(f"listing the parts of an upload of s3://{bucket}/{key}"):
            return sum(part["Size"] for page in pages for part in page.get("Parts", ()))

    def put(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        if_absent: bool = False,
        if_match: str | None = None,
        content_type: str = "application/json",
        metadata: dict[str, str] | None = None,
    ) -> str:
        condition: dict[str, Any] = {} if if_match is None else {"IfMatch": if_match}
        if if_absent:
            condition["IfNoneMatch"] = "*"
        what = f"writing s3://{bucket}/{key}"

        def attempt() -> str:
            with translated(what):
                answer = self._prepared.call(
                    "PutObject",
                    Bucket=bucket,
                    Key=key,
                    Body=body,
                    ContentType=content_type,
                    Metadata=metadata or {},
                    **self._encryption,
                    **condition,
                )
            return str(answer["ETag"])

        try:
            return self._settle(attempt)
        except NotFoundError as error:
            if if_match is not None and answered(error) == "NoSuchKey":
                raise PreconditionError(f"{what}: expected {if_match}, found nothing") from error
            raise

    def delete(self, bucket: str, key: str, *, if_match: str | None = None) -> None:
        chosen: dict[str, Any] = {} if if_match is None else {"IfMatch": if_match}

        def attempt() -> None:
            with translated(f"deleting s3://{bucket}/{key}"):
                self._client.delete_object(Bucket=bucket, Key=key, **chosen)

        try:
            self._settle(attempt)
        except NotFoundError as error:
            if answered(error) == "NoSuchBucket":
                raise
        except PreconditionError:
            # S3 answers 412 to an object that is not there as well. A HEAD may be refused where a
            # stranger has put another object.
            if listed_at(self, bucket, key) is not None:
                raise

    def delete_seen(self, bucket: str, objects: Sequence[ListedObject]) -> None:
        together = [seen for seen in objects if fits_xml(seen.key)]
        if together:
            delete_together(self._client, bucket, together)
        for seen in objects:
            if not fits_xml(seen.key):
                with suppress(PreconditionError):
                    self.delete(bucket, seen.key, if_match=seen.etag)

    def create_upload(
        self, bucket: str, key: str, *, metadata: dict[str, str], content_type: str
    ) -> str:
        with translated(f"starting an upload of s3://{bucket}/{key}"):
            answer = self._prepared.call(
                "CreateMultipartUpload",
                Bucket=bucket,
                Key=key,
                Metadata=metadata,
                ContentType=content_type,
                **self._encryption,
            )
        return str(answer["UploadId"])

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        # botocore takes bytes; from a memoryview this makes the copy, from bytes it does not
        whole = bytes(body)
        with translated(f"sending part {number} of s3://{bucket}/{key}"):
            answer = self._prepared.call(
                "UploadPart",
                Bucket=bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                Body=whole,
            )
        return str(answer["ETag"])

    def copy_part(
        self, bucket: str, key: str, upload_id: str, number: int, source: PartSource
    ) -> str:
        part: Any = {}
        if source.stop is not None:
            part["CopySourceRange"] = f"bytes={source.start}-{source.stop - 1}"
        with translated(f"copying a version of s3://{bucket}/{source.key}"):
            answer = self._client.upload_part_copy(
                Bucket=bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                CopySource={"Bucket": bucket, "Key": source.key, "VersionId": source.version_id},
                **part,
            )
        return answer["CopyPartResult"]["ETag"]

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        with suppress(UploadGoneError), translated(f"aborting an upload of s3://{bucket}/{key}"):
            self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        etags: Sequence[str],
        *,
        length: int,
        if_absent: bool = False,
    ) -> ObjectFacts:
        what = f"completing an upload of s3://{bucket}/{key}"
        if not etags:
            raise JobRefusedError(f"{what}: no part is named", code="PARTS_MISMATCH")
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if if_absent else {}
        parts: Any = [
            {"ETag": etag, "PartNumber": number} for number, etag in enumerate(etags, start=1)
        ]
        try:
            with translated(what):
                answer = self._prepared.call(
                    "CompleteMultipartUpload",
                    Bucket=bucket,
                    Key=key,
                    UploadId=upload_id,
                    MultipartUpload={"Parts": parts},
                    MpuObjectSize=length,
                    **condition,
                )
        except TransientError as error:
            if if_absent and error.code == CONFLICT:
                # the parts would have to be sent again, and the task that has them has ended
                raise PreconditionError(error.message, code=CONFLICT) from error
            raise
        except InvalidInputError as error:
            # The client has chosen all that S3 may find wrong with the request: the parts, their
            # etags and the length. So no retry helps.
            raise JobRefusedError(error.message, code="PARTS_MISMATCH") from error
        return ObjectFacts(key, answer["ETag"], length)

    def _settle(self, attempt: Callable[[], T]) -> T:
        """The result of ``attempt``; repeated while S3 answers that another request was under way.

        Such an answer, a 409, says that nothing has happened.
        """
        for number in range(CONFLICT_TRIES - 1):
            try:
                return attempt()
            except TransientError as error:
                if error.code != CONFLICT:
                    raise
            time.sleep(CONFLICT_PAUSE * 2**number)
        return attempt()


def _listed(found: Any) -> ListedObject:
    moment = rfc3339(found["LastModified"])
    return ListedObject(found["Key"], found["ETag"], found["Size"], moment)


def _facts(key: str, answer: Any) -> ObjectFacts:
    metadata = {name.lower(): value for name, value in answer.get("Metadata", {}).items()}
    return ObjectFacts(
        key,
        answer["ETag"],
        answer["ContentLength"],
        metadata,
        opaque=answer.get("ServerSideEncryption", "AES256") != "AES256",
        modified=rfc3339(answer["LastModified"]),
    )
