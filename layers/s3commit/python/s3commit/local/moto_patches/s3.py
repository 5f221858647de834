"""S3: conditions hold when the write happens; multipart uploads end, page and are checked."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import threading
from typing import Any
from xml.dom import minidom
from xml.sax.saxutils import escape

from s3commit.local.moto_patches.registry import Patcher, patch

_PAGE = 1000


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


@patch
def s3_unknown_upload(patcher: Patcher) -> None:
    """An upload that was aborted, completed, never made, or made for another key is NoSuchUpload.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html (errors),
    API_UploadPart.html, API_ListParts.html. moto: an unknown upload is a 500 (KeyError), and
    completing with another key completes under the upload's own.
    """
    from moto.s3.exceptions import NoSuchUpload
    from moto.s3.responses import S3Response

    def check(response: Any, upload_id: str, key: str) -> None:
        upload = response.backend.get_bucket(response.bucket_name).multiparts.get(upload_id)
        if upload is None or upload.key_name != key:
            raise NoSuchUpload(upload_id=upload_id)

    def guarded(original: Any) -> Any:
        def call(self: Any) -> Any:
            check(self, self._get_param("uploadId"), self.parse_key_name())
            return original(self)

        return call

    def make_post(original: Any) -> Any:
        def post(self: Any, *call: Any) -> Any:
            _request, _body, _bucket, query, key = call
            upload_id = query.get("uploadId", [None])[0]
            if upload_id and not _completed_before(self, key, upload_id):
                check(self, upload_id, key)
            return original(self, *call)

        return post

    for name in ("upload_part", "upload_part_copy", "list_parts", "abort_multipart_upload"):
        patcher.replace(S3Response, name, guarded)
    patcher.replace(S3Response, "_key_response_post", make_post)


@patch
def s3_complete_size(patcher: Patcher) -> None:
    """CompleteMultipartUpload with x-amz-mp-object-size refuses parts that add up to another size.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
    (MpuObjectSize: 400 InvalidRequest). moto: ignores the header.
    """
    from moto.s3.exceptions import S3ClientError
    from moto.s3.responses import S3Response

    def make(original: Any) -> Any:
        def post(self: Any, *call: Any) -> Any:
            _request, body, bucket, query, _key = call
            wanted = self.headers.get("x-amz-mp-object-size")
            upload = self.backend.get_bucket(bucket).multiparts.get(
                query.get("uploadId", [None])[0]
            )
            if wanted is not None and upload is not None:
                parts = [upload.parts.get(number) for number in _part_numbers(body)]
                # A part that is missing is InvalidPart, which the original says.
                if None not in parts and sum(part.contentsize for part in parts) != int(wanted):
                    raise S3ClientError(
                        "InvalidRequest",
                        "The provided 'x-amz-mp-object-size' header does not match what was "
                        "computed.",
                    )
            return original(self, *call)

        return post

    patcher.replace(S3Response, "_key_response_post", make)


@patch
def s3_complete_sends_one_event(patcher: Patcher) -> None:
    """A completed upload is announced once, as ObjectCreated:CompleteMultipartUpload.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/userguide/
    notification-how-to-event-types-and-destinations.html. moto: sends ObjectCreated:Put as well,
    before the object has its metadata.
    """
    from moto.s3 import notifications
    from moto.s3.models import S3Backend

    state = threading.local()

    def make_complete(original: Any) -> Any:
        def complete_multipart_upload(self: Any, *args: Any, **kwargs: Any) -> Any:
            state.completing = True
            try:
                return original(self, *args, **kwargs)
            finally:
                state.completing = False

        return complete_multipart_upload

    def make_send(original: Any) -> Any:
        put = notifications.S3NotificationEvent.OBJECT_CREATED_PUT_EVENT

        def send_event(account_id: str, event_name: Any, bucket: Any, key: Any) -> None:
            if event_name != put or not getattr(state, "completing", False):
                original(account_id, event_name, bucket, key)

        return send_event

    patcher.replace(S3Backend, "complete_multipart_upload", make_complete)
    patcher.replace(notifications, "send_event", make_send)


@patch
def s3_says_event_bridge(patcher: Patcher) -> None:
    """GetBucketNotificationConfiguration says whether the bucket sends its events to EventBridge.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html
    (EventBridgeConfiguration, an empty element). moto: leaves it out, though it sends them.
    """
    from moto.s3.responses import S3Response

    def make(original: Any) -> Any:
        def get_bucket_notification(self: Any) -> Any:
            configuration = self.backend.get_bucket_notification_configuration(self.bucket_name)
            if configuration is None or configuration.event_bridge is None:
                return original(self)

            def serialized(answer: Any) -> Any:
                answer.result["EventBridgeConfiguration"] = {}
                return S3Response.serialized(self, answer)

            self.serialized = serialized
            return original(self)

        return get_bucket_notification

    patcher.replace(S3Response, "get_bucket_notification", make)


@patch
def s3_list_uploads(patcher: Patcher) -> None:
    """ListMultipartUploads pages in key order and tells when each upload was initiated.

    AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html. moto: one
    page whatever is asked for, in no order, and every upload is from 2010.
    """
    from moto.core.responses import ActionResult
    from moto.core.utils import utcnow
    from moto.s3.models import FakeMultipart
    from moto.s3.responses import S3Response

    def make_init(original: Any) -> Any:
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            self.initiated = utcnow()

        return init

    def place(upload: Any) -> tuple[str, Any, str]:
        return upload.key_name, upload.initiated, upload.id

    def make_list(_original: Any) -> Any:
        def list_multipart_uploads(self: Any) -> Any:
            known = self.backend.list_multipart_uploads(self.bucket_name)
            prefix = self._get_param("prefix") or ""
            key_marker = self._get_param("key-marker") or ""
            id_marker = self._get_param("upload-id-marker") or ""
            limit = min(self._get_int_param("max-uploads", _PAGE), _PAGE)
            uploads = sorted(
                (u for u in known.values() if u.key_name.startswith(prefix)), key=place
            )
            if id_marker in known:
                uploads = [u for u in uploads if place(u) > place(known[id_marker])]
            elif id_marker:
                uploads = [u for u in uploads if (u.key_name, u.id) > (key_marker, id_marker)]
            elif key_marker:
                uploads = [u for u in uploads if u.key_name > key_marker]
            page = uploads[:limit]
            result = {
                "Bucket": self.bucket_name,
                "Prefix": prefix,
                "KeyMarker": key_marker,
                "UploadIdMarker": id_marker,
                "MaxUploads": limit,
                "IsTruncated": len(uploads) > len(page),
                "Uploads": [_described(upload) for upload in page],
            }
            if len(uploads) > len(page) and page:
                result["NextKeyMarker"] = page[-1].key_name
                result["NextUploadIdMarker"] = page[-1].id
            self.data["Action"] = "ListMultipartUploads"
            return self.serialized(ActionResult(result))

        return list_multipart_uploads

    patcher.replace(FakeMultipart, "__init__", make_init)
    patcher.replace(S3Response, "list_multipart_uploads", make_list)


def _described(upload: Any) -> dict[str, Any]:
    return {
        "Key": upload.key_name,
        "UploadId": upload.id,
        "StorageClass": upload.storage or "STANDARD",
        "Initiated": upload.initiated,
        "Initiator": {"ID": f"arn:aws:iam::{upload.account_id}:root", "DisplayName": "local"},
        "Owner": {"ID": upload.account_id, "DisplayName": "local"},
        "ChecksumAlgorithm": upload.metadata.get("x-amz-checksum-algorithm"),
        "ChecksumType": upload.metadata.get("x-amz-checksum-type"),
    }


def _completed_before(response: Any, key: str, upload_id: str) -> bool:
    existing = response.backend.get_object(response.bucket_name, key)
    multipart = getattr(existing, "multipart", None)
    return multipart is not None and multipart.id == upload_id


def _part_numbers(body: bytes) -> list[int]:
    numbers = minidom.parseString(body).getElementsByTagName("PartNumber")
    return [int(element.firstChild.wholeText) for element in numbers]  # type: ignore[union-attr]
