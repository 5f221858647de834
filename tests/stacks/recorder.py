"""Which rights each function needs, by the calls that it makes."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from s3commit.aws.prepared import PreparedRequests

Needed = tuple[str, str]  # an action, and the key, or "" for the bucket and for the ledger

S3_ACTIONS = {
    "GetObject": "GetObject",
    "HeadObject": "GetObject",
    "PutObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "AbortMultipartUpload": "AbortMultipartUpload",
    "ListParts": "ListMultipartUploadParts",
    "DeleteObject": "DeleteObject",
}
S3_BUCKET_ACTIONS = {
    "GetBucketNotificationConfiguration": "GetBucketNotification",
    "ListObjectsV2": "ListBucket",
    "ListMultipartUploads": "ListBucketMultipartUploads",
}
TRANSACTION_ACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


class Recorder:
    """Which rights each function has needed."""

    def __init__(self) -> None:
        self.needed: dict[str, set[Needed]] = defaultdict(set)
        # The function, the action with its service, and the key or the index.
        self.calls: set[tuple[str, str, str]] = set()
        self.listed: dict[str, set[str]] = defaultdict(set)  # the prefixes of listings of objects
        self._function = ""

    @contextmanager
    def as_function(self, name: str) -> Iterator[None]:
        self._function = name
        try:
            yield
        finally:
            self._function = ""

    def note(self, service: str, operation: str, parameters: dict[str, Any]) -> None:
        if self._function:
            if operation == "ListObjectsV2":
                self.listed[self._function].add(parameters.get("Prefix", ""))
            rights = _s3 if service == "s3" else _dynamodb
            needed = set(rights(operation, parameters))
            self.needed[self._function] |= needed
            self.calls |= {
                (self._function, f"{service}:{action}", key or parameters.get("IndexName", ""))
                for action, key in needed
            }

    def note_missing(self, operation: str) -> None:
        # S3 answers 403 instead of 404 to one who may not list the bucket.
        if self._function and operation in {"GetObject", "HeadObject"}:
            self.needed[self._function].add(("ListBucket", ""))
            self.calls.add((self._function, "s3:ListBucket", ""))


def _s3(operation: str, parameters: dict[str, Any]) -> Iterator[Needed]:
    if operation in S3_BUCKET_ACTIONS:
        yield S3_BUCKET_ACTIONS[operation], ""
        return
    if operation == "DeleteObjects":
        for named in parameters["Delete"]["Objects"]:
            yield from _s3("DeleteObject", {"Key": named["Key"], "IfMatch": named["ETag"]})
        return
    action = S3_ACTIONS[operation]
    yield action + ("Version" if "VersionId" in parameters else ""), parameters["Key"]
    if "IfMatch" in parameters:
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-delete-enforce.html
        yield "GetObject", parameters["Key"]


def _dynamodb(operation: str, parameters: dict[str, Any]) -> Iterator[Needed]:
    if operation != "TransactWriteItems":
        yield operation, ""
        return
    for item in parameters["TransactItems"]:
        for kind in item:
            yield TRANSACTION_ACTIONS[kind], ""


@contextmanager
def recording() -> Iterator[Recorder]:
    """Every call of every client of this process is noted."""
    recorder = Recorder()
    call: Any = vars(BaseClient)["_make_api_call"]

    def noting(self: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        recorder.note(self.meta.service_model.service_name, operation, parameters)
        try:
            return call(self, operation, parameters)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                recorder.note_missing(operation)
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", noting)
        patch.setattr(PreparedRequests, "_sent", lambda *_: None)  # botocore sends all
        yield recorder
