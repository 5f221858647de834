"""S3: conditions that hold when the write happens."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import threading
from typing import Any
from xml.sax.saxutils import escape

from s3commit.local.moto_patches.registry import Patcher, patch


@patch
def s3_one_at_a_time(patcher: Patcher) -> None:
    """A conditional write tests and writes as one step, and no reader sees half of a write.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel. moto:
    threads run between the check and the write (two winners of one If-None-Match were measured),
    a completed object is visible before it has its metadata, and a read of an object that is
    replaced meanwhile is a 500. Parts are taken in without the lock: they are most of the bytes.
    """
    from moto.s3.responses import S3Response

    lock = threading.RLock()

    def make(original: Any) -> Any:
        def respond(self: Any, request: Any, full_url: str) -> Any:
            if request.method == "PUT" and "partNumber=" in full_url:
                return original(self, request, full_url)
            with lock:
                return original(self, request, full_url)

        return respond

    patcher.replace(S3Response, "_key_response", make)
    patcher.replace(S3Response, "_bucket_response", make)


@patch
def s3_delete_objects_etag(patcher: Patcher) -> None:
    """DeleteObjects with an ETag deletes that object only if it still has it.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html (ETag in the object
    identifier; PreconditionFailed in the Errors of the answer). moto: ignores it and deletes.
    """
    from moto.s3 import responses as module
    from moto.s3.responses import S3Response

    xmltodict: Any = vars(module)["xmltodict"]

    def refused(response: Any, bucket: str, entry: dict[str, Any]) -> bool:
        wanted = entry.get("ETag")
        if wanted is None:
            return False
        existing = response.backend.get_object(bucket, entry["Key"])
        if existing is None:
            return True
        return bool(wanted.strip('"') != existing.etag.strip('"'))

    def make(original: Any) -> Any:
        def delete_keys(self: Any, bucket_name: str, authenticated: bool = True) -> Any:
            document = xmltodict.parse(self.body, strip_whitespace=False, force_list=("Object",))
            entries = document["Delete"].get("Object", [])
            losers = [entry for entry in entries if refused(self, bucket_name, entry)]
            if not losers:
                return original(self, bucket_name, authenticated)
            document["Delete"]["Object"] = [entry for entry in entries if entry not in losers]
            answer: Any = (200, {}, "<DeleteResult></DeleteResult>")
            if document["Delete"]["Object"]:
                self.body = xmltodict.unparse(document)
                answer = original(self, bucket_name, authenticated)
            status, headers, body = answer
            text = body.decode() if isinstance(body, bytes) else body
            errors = "".join(_error(entry["Key"]) for entry in losers)
            text = text.replace("</DeleteResult>", errors + "</DeleteResult>")
            if "</DeleteResult>" not in text:  # an empty result is one closed tag
                text = text.replace("/>", ">" + errors + "</DeleteResult>")
            headers.pop("content-length", None)
            return status, headers, text

        return delete_keys

    patcher.replace(S3Response, "_bucket_response_delete_keys", make)


def _error(key: str) -> str:
    return (
        f"<Error><Key>{escape(key)}</Key><Code>PreconditionFailed</Code>"
        "<Message>At least one of the pre-conditions you specified did not hold</Message></Error>"
    )
