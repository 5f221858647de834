"""The small documents that client and pipeline exchange: job, request and result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from s3commit.core.formats.codec import Codec, Form, RefusedError, text
from s3commit.core.formats.layout import JobDirectory, check_id, parse_destination
from s3commit.core.formats.manifest import digest
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import Text
from s3commit.core.model.job import (
    MAX_TEXT,
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    JobId,
    JobResult,
    JobSpec,
    decode_conditions,
    encode_conditions,
)

VERSION = 1
MAX_JOB_BYTES = 256 * 1024
MAX_RESULT_BYTES = 256 * 1024
MAX_REQUEST_BYTES = 64 * 1024 * 1024
MAX_REQUEST_VALUES = 1_800_000


class _Action(StrEnum):
    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class _Head:
    """What every request says: by the action it is known what else."""

    job_id: JobId
    action: _Action


def _conditions(value: Any) -> Any:
    if not isinstance(value, dict):
        raise RefusedError("must be an object")
    return decode_conditions(value)


_URI = text(Text())
DESTINATION: Final = Form(lambda value: parse_destination(_URI.read(value)), lambda one: one.uri)
_JOB: Final = Codec(
    JobSpec,
    "job.json",
    VERSION,
    max_bytes=MAX_JOB_BYTES,
    closed=True,
    forms={"destination": DESTINATION, "conditions": Form(_conditions, encode_conditions)},
)
_REQUEST: Final[Any] = {
    "what": "request.json",
    "version": VERSION,
    "max_bytes": MAX_REQUEST_BYTES,
    "most": MAX_REQUEST_VALUES,
}
_HEAD: Final = Codec(_Head, **_REQUEST)
_COMMIT: Final = Codec(CommitRequest, constants={"action": _Action.COMMIT}, **_REQUEST)
_ABORT: Final = Codec(AbortRequest, constants={"action": _Action.ABORT}, **_REQUEST)
_RESULT: Final = Codec(JobResult, "result.json", VERSION, max_bytes=MAX_RESULT_BYTES)


def encode_job(spec: JobSpec) -> bytes:
    """``job.json``."""
    return _JOB.encode(spec)


def decode_job(body: bytes, directory: JobDirectory) -> JobSpec:
    """Read the ``job.json`` of ``directory``. Raises `InvalidInputError`.

    A job that names another id or destination than the place where it lies is refused
    (``WRONG_JOB``): the place is what S3 permissions are given for. So is one with a field that is
    not known (``BAD_FIELD``): to ignore it could break what the client asked for.
    """
    spec = _JOB.decode(body)
    names = spec.partition_by
    if not "".join(names).isprintable():
        raise InvalidInputError(
            "partitionBy has a control character, which no column has", code="BAD_FIELD"
        )
    if len(set(names)) != len(names):
        raise InvalidInputError("partitionBy has a column twice", code="BAD_FIELD")
    if (spec.job_id, spec.destination) != (directory.job_id, directory.destination):
        raise InvalidInputError(
            f"job.json of {spec.job_id!r} at {spec.destination.uri} lies in {directory.prefix}",
            code="WRONG_JOB",
        )
    return replace(spec, sha256=digest(body))


def encode_request(request: CommitRequest | AbortRequest) -> bytes:
    """``request.json``. Raises `InvalidInputError` (``TOO_LARGE``) if no reader would take it."""
    if isinstance(request, CommitRequest):
        return _COMMIT.encode(request)
    return _ABORT.encode(replace(request, reason=request.reason[:MAX_TEXT]))


def decode_request(body: bytes, directory: JobDirectory) -> CommitRequest | AbortRequest:
    """Read the ``request.json`` of ``directory``. Raises `InvalidInputError`.

    Two counted attempts of one task are refused (``TWO_ATTEMPTS``, I3), and a manifest that is
    not at the place which its ids give.
    """
    document = _HEAD.parse(body)
    head = _HEAD.read(document)
    if head.job_id != directory.job_id:
        raise InvalidInputError("request.json is of another job", code="WRONG_JOB")
    if head.action is _Action.ABORT:
        return _ABORT.read(document)
    request = _COMMIT.read(document)
    for attempt in request.attempts:
        task_id = check_id(attempt.task_id, "task id")
        attempt_id = check_id(attempt.attempt_id, "attempt id")
        if attempt.manifest != directory.manifest_name(task_id, attempt_id):
            raise InvalidInputError(
                f"manifest {attempt.manifest[:200]!r} is not where its ids put it", code="BAD_FIELD"
            )
    refuse_two_attempts(request.attempts)
    return request


def refuse_two_attempts(attempts: Iterable[CountedAttempt]) -> None:
    """Raise `InvalidInputError` (``TWO_ATTEMPTS``) if a task is counted twice (I3)."""
    seen: set[str] = set()
    for one in attempts:
        if one.task_id in seen:
            raise InvalidInputError(
                f"two attempts of one task are counted, of {one.task_id}: commit one of them",
                code="TWO_ATTEMPTS",
            )
        seen.add(one.task_id)


def encode_result(result: JobResult) -> bytes:
    """``result.json``."""
    return _RESULT.encode(result)


def decode_result(body: bytes, directory: JobDirectory | None = None) -> JobResult:
    """Read a ``result.json``. Raises `InvalidInputError`.

    One that lies in ``directory`` and is of another job is refused (``WRONG_JOB``).
    """
    result = _RESULT.decode(body)
    if directory is not None and result.job_id != directory.job_id:
        raise InvalidInputError(
            f"result.json in {directory.uri} is of another job", code="WRONG_JOB"
        )
    return result
