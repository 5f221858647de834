"""A prefix of a bucket, and S3's exact answers to the requests of the protocol there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TRIES = 3  # to empty a prefix in which a late request may still put something
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload with its parts sent."""

    key: str
    upload_id: str
    parts: tuple[dict[str, Any], ...]


class Answer(NamedTuple):
    """What was told, status and code: ``200``, ``412 PreconditionFailed``; and what came with it.

    ``repeated`` is how often botocore repeated the request by itself.
    """

    told: str
    repeated: int
    response: Any


def answer_of(call: Callable[..., Any], **parameters: Any) -> str:
    """What is told to a call."""
    return asked(call, **parameters).told


def asked(call: Callable[..., Any], **parameters: Any) -> Answer:
    """The answer to a call.

    Raises botocore's error if the caller may not ask: that is no answer to what is probed.
    """
    try:
        answer = call(**parameters)
    except ClientError as error:
        told = error.response["ResponseMetadata"]
        status, code = str(told["HTTPStatusCode"]), error.response["Error"]["Code"]
        if status in {"401", "403"} or code == "AccessDeniedException":
            raise
        line = code if code == status else f"{status} {code}"
        return Answer(line, told.get("RetryAttempts", 0), error.response)
    told = answer["ResponseMetadata"]
    return Answer(str(told["HTTPStatusCode"]), told.get("RetryAttempts", 0), answer)


@dataclass(frozen=True, slots=True)
class Prefix:
    """Requests below one prefix. Keys are relative to it."""

    client: S3Client
    bucket: str
    prefix: str

    def put(self, key: str, body: bytes = b"first", **condition: str) -> str:
        """PutObject."""
        return answer_of(self.client.put_object, Body=body, **self._at(key), **condition)

    def delete(self, key: str, **condition: str) -> str:
        """DeleteObject."""
        return answer_of(self.client.delete_object, **self._at(key), **condition)

    def delete_seen(self, key: str, etag: str) -> str:
        """DeleteObjects with one key and its etag: ``Deleted``, or the code of its error."""
        named: Any = {"Objects": [{"Key": self.prefix + key, "ETag": etag}]}
        answer = self.client.delete_objects(Bucket=self.bucket, Delete=named)
        errors = answer.get("Errors", [])
        return errors[0].get("Code", "?") if errors else "Deleted"

    def head(self, key: str) -> str:
        """HeadObject."""
        return answer_of(self.client.head_object, **self._at(key))

    def facts(self, key: str, **asked: Any) -> Any:
        """What HeadObject says of what is there."""
        return self.client.head_object(**self._at(key), **asked)

    def etag(self, key: str) -> str:
        """The etag of what is there."""
        return str(self.facts(key)["ETag"])

    def body(self, key: str) -> str:
        """What is there, or ``nothing``."""
        if self.head(key) != "200":
            return "nothing"
        answer = self.client.get_object(**self._at(key))
        with answer["Body"] as stream:
            return stream.read(100).decode(errors="replace")

    def start(self, key: str, body: bytes | None = b"first", **parameters: Any) -> Upload:
        """An upload with one part, or with none if there is no body."""
        made = self.client.create_multipart_upload(**self._at(key), **parameters)
        upload = Upload(key, made["UploadId"], ())
        if body is None:
            return upload
        etag = self.client.upload_part(**self._of(upload), PartNumber=1, Body=body)["ETag"]
        return Upload(key, upload.upload_id, ({"PartNumber": 1, "ETag": etag},))

    def complete(self, upload: Upload, **parameters: Any) -> str:
        """CompleteMultipartUpload by etags alone."""
        return self.completed(upload, **parameters)[0]

    def completed(self, upload: Upload, **parameters: Any) -> tuple[str, int]:
        """As `complete`, with how often botocore repeated it by itself."""
        call, parts = self.client.complete_multipart_upload, {"Parts": list(upload.parts)}
        return asked(call, **self._of(upload), MultipartUpload=parts, **parameters)[:2]

    def abort(self, upload: Upload) -> str:
        """AbortMultipartUpload."""
        return answer_of(self.client.abort_multipart_upload, **self._of(upload))

    def parts_of(self, upload: Upload) -> str:
        """ListParts."""
        return answer_of(self.client.list_parts, **self._of(upload))

    def send_part(self, upload: Upload) -> str:
        """UploadPart."""
        return answer_of(self.client.upload_part, **self._of(upload), PartNumber=2, Body=b"late")

    def copy_part(self, upload: Upload, number: int, source: str) -> dict[str, Any]:
        """UploadPartCopy of an object below the prefix as a whole: no byte goes to the client."""
        copied = self.client.upload_part_copy(
            **self._of(upload),
            PartNumber=number,
            CopySource={"Bucket": self.bucket, "Key": self.prefix + source},
        )
        return {"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]}

    def listed(self, below: str = "") -> list[str]:
        """The keys that a listing shows."""
        page = self.client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix + below)
        return [found["Key"].removeprefix(self.prefix) for found in page.get("Contents", ())]

    def listed_uploads(self, below: str = "") -> list[dict[str, Any]]:
        """The open uploads that a listing shows."""
        page: Any = self.client.list_multipart_uploads(
            Bucket=self.bucket, Prefix=self.prefix + below
        )
        return list(page.get("Uploads", ()))

    def is_listed(self, upload: Upload) -> bool:
        """Whether a listing shows the upload."""
        return upload.upload_id in [one["UploadId"] for one in self.listed_uploads(upload.key)]

    def versions(self, key: str) -> list[str]:
        """The ids of all versions and delete markers of the key; one without versioning."""
        found = self._versions(self.prefix + key)
        return [each["VersionId"] for each in found if each["Key"] == self.prefix + key]

    def empty(self, keep: str = "") -> None:
        """Abort every upload, and delete every object, version and marker, save below `keep`."""
        keep = self.prefix + keep if keep else "\0"  # no key begins so
        plain = "Status" not in self.client.get_bucket_versioning(Bucket=self.bucket)
        for _ in range(TRIES):
            uploads = [one for one in self.listed_uploads() if not one["Key"].startswith(keep)]
            found = self._versions(self.prefix)
            versions = [one for one in found if not one["Key"].startswith(keep)]
            for upload in uploads:
                self.client.abort_multipart_upload(
                    Bucket=self.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                )
            for each in versions:
                chosen: Any = {} if plain else {"VersionId": each["VersionId"]}
                self.client.delete_object(Bucket=self.bucket, Key=each["Key"], **chosen)
            if not uploads and not versions:
                return

    def left(self) -> list[str]:
        """What is there, the first of it, one line each."""
        found = [f"upload s3://{self.bucket}/{one['Key']}" for one in self.listed_uploads()]
        found += [f"s3://{self.bucket}/{one['Key']}" for one in self._versions(self.prefix)]
        return found[:SHOWN]

    def _versions(self, prefix: str) -> list[Any]:
        pages = self.client.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        found: list[Any] = []
        for page in pages:
            found += [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        return found

    def _at(self, key: str) -> Any:
        return {"Bucket": self.bucket, "Key": self.prefix + key}

    def _of(self, upload: Upload) -> Any:
        return {**self._at(upload.key), "UploadId": upload.upload_id}
