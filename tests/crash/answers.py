"""What S3 and DynamoDB may answer, as the adapter makes it of them; and who can bring it about."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from botocore.exceptions import ClientError

from s3commit.aws import s3
from s3commit.aws.failures import translate
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.layout import PIPELINE, JobDirectory
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import ObjectStore
from tests.fakes.faults import Call

MOMENT = 3  # times; the machine tries a step ten times
TOO_LARGE = "too large"
STRANGERS = b"a stranger's"  # how each object that others put begins
_SERIAL = count()

# By S3, code and status: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
PASSES = {
    "throttled": ("SlowDown", 503),
    "5xx": ("InternalError", 500),
    "409": ("OperationAborted", 409),
    "403 for a moment": ("AccessDenied", 403),
}
STAYS = {
    "403": ("AccessDenied", 403),
    "400 of SSE-C": ("InvalidRequest", 400),
    "404": ("NoSuchKey", 404),
    "412": ("PreconditionFailed", 412),
    "unknown 4xx": ("Unheard", 418),
    "501": ("NotImplemented", 501),
    TOO_LARGE: ("EntityTooLarge", 400),
    "unreadable": ("InvalidObjectState", 403),
}
ANSWERS = PASSES | STAYS
_OF_UPLOADS = frozenset({"complete_upload", "abort_upload", "upload_is_open", "upload_part"})
_DYNAMODBS = {
    "throttled": ("ProvisionedThroughputExceededException", 400),
    "409": ("TransactionConflictException", 400),
    "403 for a moment": ("AccessDeniedException", 400),
    "403": ("AccessDeniedException", 400),
    "404": ("ResourceNotFoundException", 400),
    "400 of SSE-C": ("ValidationException", 400),
    "unknown 4xx": ("UnheardException", 400),
    TOO_LARGE: ("ValidationException", 400),
}

# S3 says so of the condition of a request alone.
_CONDITIONAL = frozenset({"put", "delete", "delete_seen", "complete_upload"})
READS = frozenset({"get", "first_bytes", "head"})
# What a put with a condition is answered where others put and delete at its key, too.
_CONDITIONS = frozenset({("412", "result"), ("412", "marker"), ("404", "marker")})
# Verbs of which no answer that stays is of anybody's making but an operator's.
RIGHTS = frozenset({"list", "list_uploads", "abort_upload", "create_upload", "upload_part"})
# What no step calls behind the decision.
NEVER = frozenset({"below", "first_bytes", "list_versions", "copy_part", "upload_bytes"})


@dataclass(frozen=True, order=True)
class Cell:
    """A call of a step: what it asks, and of what."""

    step: str
    verb: str
    place: str


def place_of(directory: JobDirectory, call: Call) -> str:
    """What lies at the key of a call."""
    objects = call.arguments.get("objects")
    key = objects[0].key if objects else call.key
    if not key:
        return "ledger"
    own = {
        directory.decision: "decision",
        directory.job: "_job.json",
        directory.request: "_request.json",
        directory.result: "result",
        directory.commits: "list",
        directory.success: "marker",
    }
    if key in own:
        return own[key]
    if key.startswith(PIPELINE):
        return "pipeline's"
    if key.startswith(directory.prefix):
        return "manifest"
    return "hint" if "_commits/_once/" in key else "data"


def operators(cell: Cell, answer: str) -> bool:
    """Whether none but who has rights to pipeline, table or bucket can bring this answer about.

    Who may put and delete below the destination chooses what lies there, and how it is encrypted;
    who makes an upload chooses what its completion and ListParts are answered. Everything else that
    stays is a missing right, a table or bucket that is gone, or an object of the pipeline's.
    """
    if answer in PASSES:
        return False
    if cell.place in {"ledger", "pipeline's", "decision"} or cell.verb in RIGHTS:
        return True
    if cell.verb in READS:
        return False
    if cell.verb == "put":
        return (answer, cell.place) not in _CONDITIONS
    if cell.verb in {"delete", "delete_seen"}:
        return answer not in {"404", "412"}
    if cell.verb in {"complete_upload", "upload_is_open"}:
        return cell.place == "list"
    raise AssertionError(f"who can bring about what {cell.verb} is answered?")


def is_possible(cell: Cell, answer: str) -> bool:
    """Whether the call can be answered so."""
    return answer != "412" or cell.place == "ledger" or cell.verb in _CONDITIONAL


def bring_about(store: ObjectStore, answer: str, call: Call) -> bool:
    """Do what a stranger does, so that an object is gone (404) or another one (412); if it can."""
    keys = [one.key for one in call.arguments.get("objects", ())] or [call.key]
    is_deed = answer in {"404", "412"} and call.verb in {*READS, "put", "delete", "delete_seen"}
    for key in keys if is_deed else ():
        if answer == "412":
            store.put(call.arguments["bucket"], key, STRANGERS + str(next(_SERIAL)).encode())
        else:
            store.delete(call.arguments["bucket"], key)
    return is_deed


class _Client:
    """Boto's, to whatever it is asked: one answer."""

    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None))

    def __init__(self, code: str, status: int) -> None:
        self.code, self.status = code, status

    def error(self) -> ClientError:
        answer: Any = {
            "Error": {"Code": self.code, "Message": "in words"},
            "ResponseMetadata": {"HTTPStatusCode": self.status},
        }
        return ClientError(answer, "any")

    def get_paginator(self, operation: str) -> Any:
        return self

    def paginate(self, **_: Any) -> Iterator[Any]:
        """Refused with its first page."""
        return map(self.next_page, [1])

    def delete_objects(self, *, Delete: Any, **_: Any) -> Any:  # noqa: N803
        """S3 answers for each key by itself."""
        return {"Errors": [{"Key": one["Key"], "Code": self.code} for one in Delete["Objects"]]}

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def refuse(*_: Any, **__: Any) -> Any:
            raise self.error()

        return refuse


class _Huge(_Client):
    """An object of a terabyte lies at each key."""

    def get_object(self, **_: Any) -> Any:
        return {"ContentLength": 1024**4, "Body": self}

    def close(self) -> None:
        """Nothing was read."""


class _Adapter(S3ObjectStore):
    """The adapter of one answer; the look that it takes after a 412 is the store's."""

    looks: ObjectStore
    refused = ""

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Any:
        if self.refused == "list":
            return super().list(bucket, prefix, after=after)
        return self.looks.list(bucket, prefix, after=after)


def answer_of(store: ObjectStore, name: str, call: Call) -> Any:
    """What the port gives or raises for a call that is answered so."""
    code, status = ANSWERS[name]
    if call.verb in _OF_UPLOADS and name == "404":
        code = "NoSuchUpload"
    if not call.key and "objects" not in call.arguments:
        if name == "412":
            raise LostRaceError("another execution has it", None)
        raise translate(_Client(*_DYNAMODBS.get(name, (code, status))).error(), call.verb)
    client = (_Huge if name == TOO_LARGE and call.verb == "get" else _Client)(code, status)
    adapter = _Adapter(cast("Any", client))
    adapter.looks, adapter.refused = store, call.verb
    with patch.object(s3, "CONFLICT_PAUSE", 0):
        given = getattr(adapter, call.verb)(**call.arguments)
    return list(given) if call.verb in {"list", "list_uploads"} else given
