"""S3: conditions hold when the write happens; multipart uploads end, page and are checked."""

import sys
import threading
from collections.abc import Callable
from typing import Any

from moto.core.utils import utcnow
from moto.s3.exceptions import NoSuchUpload, S3ClientError
from moto.s3.models import FakeMultipart, S3Backend
from moto.s3.responses import S3Response

from s3commit.local.moto_patches.registry import Patcher, one_at_a_time, patch

_PAGE = 1000


@patch
def s3_one_at_a_time(patcher: Patcher) -> None:
    """A conditional write tests and writes as one step, and no reader sees half of a write.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel. moto:
    threads run between the check and the write (two winners of one If-None-Match were measured), a
    completed object is visible before it has its metadata, and a read of an object while it is
    replaced is a 500. Parts are read without the lock: they are most of the bytes.
    """
    locked = one_at_a_time(threading.RLock())

    def respond(original: Any, self: Any, request: Any, full_url: str) -> Any:
        if request.method == "PUT" and "partNumber=" in full_url:
            return original(self, request, full_url)
        return locked(original, self, request, full_url)

    patcher.wrap(S3Response, "_key_response", respond)
    patcher.wrap(S3Response, "_bucket_response", respond)


@patch
def s3_delete_objects_etag(patcher: Patcher) -> None:
    """DeleteObjects with an ETag deletes that object only if it still has it.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html (ETag in the object
    identifier; PreconditionFailed in the Errors of the answer). moto: ignores it and deletes.
    """
    state = threading.local()

    def is_refused(backend: Any, bucket: str, entry: dict[str, Any]) -> bool:
        existing = backend.get_object(bucket, entry["Key"])
        etag = None if existing is None else existing.etag.strip('"')
        return "ETag" in entry and entry["ETag"].strip('"') != etag

    def delete_objects(original: Any, self: Any, bucket: str, entries: Any, *more: Any) -> Any:
        state.refused = [entry for entry in entries if is_refused(self, bucket, entry)]
        kept = [entry for entry in entries if entry not in state.refused]
        return original(self, bucket, kept, *more)

    def delete_keys(original: Any, self: Any, *call: Any) -> Any:
        def tell(result: dict[str, Any]) -> None:
            failed = {"Code": "PreconditionFailed", "Message": "a precondition did not hold"}
            result["Errors"] += [{"Key": entry["Key"], **failed} for entry in state.refused]

        return _amended(original, self, tell, *call)

    patcher.wrap(S3Backend, "delete_objects", delete_objects)
    patcher.wrap(S3Response, "_bucket_response_delete_keys", delete_keys)


def _amended(answer: Any, response: Any, amend: Callable[[Any], None], *call: Any) -> Any:
    """The answer of moto's method, its result changed by ``amend`` unless it is an error."""

    def serialized(action: Any) -> Any:
        if isinstance(action.result, dict):
            amend(action.result)
        return type(response).serialized(response, action)

    response.serialized = serialized
    return answer(response, *call)


@patch
def s3_unknown_upload(patcher: Patcher) -> None:
    """An upload that was aborted, completed, never made, or made for another key is NoSuchUpload.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html (errors),
    API_UploadPart.html, API_ListParts.html. moto: an unknown upload is a 500 (KeyError), and
    completing with another key completes under the upload's own.
    """

    def check(response: Any, upload_id: str, key: str) -> None:
        upload = response.backend.get_bucket(response.bucket_name).multiparts.get(upload_id)
        if upload is None or upload.key_name != key:
            raise NoSuchUpload(upload_id=upload_id)

    def guarded(original: Any, self: Any) -> Any:
        check(self, self._get_param("uploadId"), self.parse_key_name())
        return original(self)

    def post(original: Any, self: Any, *call: Any) -> Any:
        *_, query, key = call
        upload_id = query.get("uploadId", [None])[0]
        if upload_id and not _completed_before(self, key, upload_id):
            check(self, upload_id, key)
        return original(self, *call)

    for name in ("upload_part", "upload_part_copy", "list_parts", "abort_multipart_upload"):
        patcher.wrap(S3Response, name, guarded)
    patcher.wrap(S3Response, "_key_response_post", post)


@patch
def s3_checks_length(patcher: Patcher) -> None:
    """An upload whose parts have another length than the request says is not completed.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
    (x-amz-mp-object-size; InvalidRequest). moto: ignores it.
    """
    asked = threading.local()

    def post(original: Any, self: Any, *call: Any) -> Any:
        asked.length = self.headers.get("x-amz-mp-object-size")
        return original(self, *call)

    def complete(original: Any, self: Any, body: Any) -> Any:
        value, *rest = original(self, body)
        if asked.length is not None and len(value) != int(asked.length):
            raise S3ClientError("InvalidRequest", "The parts have another length than the request")
        return value, *rest

    patcher.wrap(S3Response, "_key_response_post", post)
    patcher.wrap(FakeMultipart, "complete", complete)


@patch
def s3_says_event_bridge(patcher: Patcher) -> None:
    """GetBucketNotificationConfiguration says whether the bucket sends its events to EventBridge.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html
    (EventBridgeConfiguration, an empty element). moto: leaves it out, though it sends them.
    """

    def get_bucket_notification(original: Any, self: Any) -> Any:
        configuration = self.backend.get_bucket_notification_configuration(self.bucket_name)
        if configuration is None or configuration.event_bridge is None:
            return original(self)
        return _amended(original, self, lambda result: result.update(EventBridgeConfiguration={}))

    patcher.wrap(S3Response, "get_bucket_notification", get_bucket_notification)


@patch
def s3_list_uploads(patcher: Patcher) -> None:
    """ListMultipartUploads pages in key order and says when each upload was initiated.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html. moto: always
    one page, in no order, and every upload is from 2010.
    """

    def init(original: Any, self: Any, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        self.initiated = utcnow()

    def place(upload: dict[str, Any]) -> tuple[str, str]:
        return upload["Key"], upload["UploadId"]

    def list_multipart_uploads(original: Any, self: Any) -> Any:
        known = self.backend.list_multipart_uploads(self.bucket_name)
        # A key without an upload's id means all uploads of that key.
        after = (
            self._get_param("key-marker") or "",
            self._get_param("upload-id-marker") or chr(sys.maxunicode),
        )
        limit = min(self._get_int_param("max-uploads", _PAGE), _PAGE)

        def page(result: dict[str, Any]) -> None:
            for upload in result["Uploads"]:
                upload["Initiated"] = known[upload["UploadId"]].initiated
            found = sorted((one for one in result["Uploads"] if place(one) > after), key=place)
            result["Uploads"] = shown = found[:limit]
            result["IsTruncated"] = len(found) > limit
            if shown and result["IsTruncated"]:
                result["NextKeyMarker"] = shown[-1]["Key"]
                result["NextUploadIdMarker"] = shown[-1]["UploadId"]

        return _amended(original, self, page)

    patcher.wrap(FakeMultipart, "__init__", init)
    patcher.wrap(S3Response, "list_multipart_uploads", list_multipart_uploads)


@patch
def s3_dates_by_start(patcher: Patcher) -> None:
    """An object that was uploaded in parts has the time at which its upload was started.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html (Last-Modified).
    moto: the time of the completion.
    """

    def complete_multipart_upload(original: Any, self: Any, *call: Any) -> Any:
        made = original(self, *call)
        if made is not None:
            made.last_modified = made.multipart.initiated
        return made

    patcher.wrap(S3Backend, "complete_multipart_upload", complete_multipart_upload)


@patch
def s3_one_event_of_an_upload(patcher: Patcher) -> None:
    """The completion of an upload is ``ObjectCreated:CompleteMultipartUpload``, and no other event.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/userguide/
    notification-how-to-event-types-and-destinations.html. moto: sends ``ObjectCreated:Put`` too.
    """

    def put_object(original: Any, self: Any, *call: Any, **named: Any) -> Any:
        if named.get("multipart"):
            named["disable_notification"] = True
        return original(self, *call, **named)

    patcher.wrap(S3Backend, "put_object", put_object)


def _completed_before(response: Any, key: str, upload_id: str) -> bool:
    existing = response.backend.get_object(response.bucket_name, key)
    multipart = getattr(existing, "multipart", None)
    return multipart is not None and multipart.id == upload_id
