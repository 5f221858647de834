"""A prefix of a bucket, and S3's exact answers to the requests of the protocol there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


def answer_of(call: Callable[..., Any], **parameters: Any) -> str:
    """The status and the code of the answer: ``200``, ``412 PreconditionFailed``."""
    return asked(call, **parameters)[0]


def asked(call: Callable[..., Any], **parameters: Any) -> tuple[str, dict[str, Any]]:
    """As `answer_of`, with the answer or the error as botocore has it.

    Raises botocore's error if the caller may not ask: that is no answer to what is probed.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - as in `World`

    try:
        answer = call(**parameters)
    except ClientError as error:
        status = str(error.response["ResponseMetadata"]["HTTPStatusCode"])
        code = error.response["Error"]["Code"]
        if status in {"401", "403"} or code == "AccessDeniedException":
            raise
        return code if code == status else f"{status} {code}", {**error.response}
    return str(answer["ResponseMetadata"]["HTTPStatusCode"]), answer


@dataclass(frozen=True, slots=True)
class Place:
    """Requests below one prefix. Keys are relative to it."""

    client: S3Client
    bucket: str
    prefix: str

    def put(self, key: str, body: bytes = b"first", **condition: str) -> str:
        """PutObject."""
        at = self._at(key)
        return answer_of(self.client.put_object, Body=body, **at, **condition)

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

    def facts(self, key: str, **parameters: Any) -> Any:
        """What HeadObject tells of what is there."""
        return self.client.head_object(**self._at(key), **parameters)

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
        at: Any = {**self._of(upload), "PartNumber": 1}
        etag = self.client.upload_part(**at, Body=body)["ETag"]
        return Upload(key, upload.upload_id, ({"PartNumber": 1, "ETag": etag},))

    def complete(self, upload: Upload, **parameters: Any) -> str:
        """CompleteMultipartUpload by etags alone."""
        return self.completed(upload, **parameters)[0]

    def completed(self, upload: Upload, **parameters: Any) -> tuple[str, int]:
        """As `complete`, with how often botocore repeated it by itself."""
        parts: Any = {"MultipartUpload": {"Parts": list(upload.parts)}, **parameters}
        told, answer = asked(self.client.complete_multipart_upload, **self._of(upload), **parts)
        return told, answer["ResponseMetadata"].get("RetryAttempts", 0)

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
        """UploadPartCopy of an object of the place as a whole: no byte goes to the client."""
        copied = self.client.upload_part_copy(
            **self._of(upload),
            PartNumber=number,
            CopySource={"Bucket": self.bucket, "Key": self.prefix + source},
        )
        return {"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]}

    def listed(self, below: str = "") -> list[str]:
        """The keys that a listing shows."""
        found = self._found("list_objects_v2", below, "Contents")
        return [one["Key"].removeprefix(self.prefix) for one in found]

    def listed_uploads(self, below: str = "") -> list[dict[str, Any]]:
        """The open uploads that a listing shows."""
        return self._found("list_multipart_uploads", below, "Uploads")

    def versions(self, key: str) -> list[str]:
        """The ids of all versions and delete markers of the key; one without versioning."""
        found = self._versions(key)
        return [one["VersionId"] for one in found if one["Key"] == self.prefix + key]

    def empty(self, keep: str = "") -> None:
        """Abort every upload, and delete every object, version and marker, save below `keep`."""
        keep = self.prefix + keep if keep else "\0"  # no key begins so
        plain = "Status" not in self.client.get_bucket_versioning(Bucket=self.bucket)
        for _ in range(TRIES):
            found = [one for one in self._all() if not one["Key"].startswith(keep)]
            for one in found:
                at: Any = {"Bucket": self.bucket, "Key": one["Key"]}
                if "UploadId" in one:
                    self.client.abort_multipart_upload(**at, UploadId=one["UploadId"])
                else:
                    chosen: Any = {} if plain else {"VersionId": one["VersionId"]}
                    self.client.delete_object(**at, **chosen)
            if not found:
                return

    def left(self) -> list[str]:
        """What is there, the first of it, one line each."""
        return [
            f"{'upload ' if 'UploadId' in one else ''}s3://{self.bucket}/{one['Key']}"
            for one in self._all()[:SHOWN]
        ]

    def _all(self) -> list[dict[str, Any]]:
        """Every open upload, object, version and marker."""
        return self.listed_uploads() + self._versions()

    def _versions(self, below: str = "") -> list[dict[str, Any]]:
        return self._found("list_object_versions", below, "Versions", "DeleteMarkers")

    def _found(self, operation: Any, below: str, *kinds: str) -> list[dict[str, Any]]:
        pages: Any = self.client.get_paginator(operation).paginate(
            Bucket=self.bucket, Prefix=self.prefix + below
        )
        return [one for page in pages for kind in kinds for one in page.get(kind, ())]

    def _at(self, key: str) -> Any:
        return {"Bucket": self.bucket, "Key": self.prefix + key}

    def _of(self, upload: Upload) -> Any:
        return {**self._at(upload.key), "UploadId": upload.upload_id}
