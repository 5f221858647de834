"""The small documents that client and pipeline exchange: job, request and result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

from s3commit.core.formats.layout import JobDirectory, check_id, parse_destination
from s3commit.core.formats.manifest import digest
from s3commit.core.formats.strict_json import (
    MAX_VALUES,
    Fields,
    bounded,
    dump,
    members,
    parse,
)
from s3commit.core.model.conditions import (
    Conditions,
    decode_conditions,
    encode_conditions,
)
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import (
    AbortRequest,
    CommitRequest,
    Conflict,
    CountedAttempt,
    Failure,
    JobResult,
    JobSpec,
    Outcome,
    Scope,
)
from s3commit.core.model.states import JobState

VERSION = 1
MAX_JOB_BYTES = 256 * 1024
MAX_RESULT_BYTES = 256 * 1024

# 1.4 million values of 200,000 tasks. The worst of this size takes 1.1 GB to read.
MAX_ATTEMPTS = 200_000
MAX_REQUEST_BYTES = 64 * 1024 * 1024
MAX_REQUEST_VALUES = 1_800_000
MAX_TEXT = 1024
MAX_KEY_CHARACTERS = 1024  # of an idempotency key
MAX_COLUMNS = 100  # of partitionBy
MAX_COLUMN_NAME = 255  # characters
Choice = TypeVar("Choice", Conflict, Scope, Outcome, JobState)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_JOB_FIELDS = (
    *("version", "jobId", "destination", "conflict", "scope", "partitionBy", "idempotencyKey"),
    *("createdAt", "client", "conditions"),
)


def encode_job(spec: JobSpec) -> bytes:
    """``job.json``."""
    document = {
        "version": VERSION,
        "jobId": spec.job_id,
        "destination": spec.destination.uri,
        "conflict": spec.conflict,
        "scope": spec.scope,
        "partitionBy": list(spec.partition_by),
        "idempotencyKey": spec.idempotency_key,
        "createdAt": spec.created_at,
        "client": spec.client,
        "conditions": encode_conditions(spec.conditions),
    }
    return dump(document)


def decode_job(body: bytes, directory: JobDirectory) -> JobSpec:
    """Read the ``job.json`` of ``directory``. Raises `InvalidInputError`.

    A job that names another id or destination than the place where it lies is refused
    (``WRONG_JOB``): the place is what S3 permissions are given for. So is one with a field that is
    not known (``BAD_FIELD``): to ignore it could break what the client asked for.
    """
    fields = _versioned(body, "job.json", MAX_JOB_BYTES)
    fields.only(*_JOB_FIELDS)
    destination = parse_destination(fields.text("destination"))
    spec = JobSpec(
        job_id=fields.text("jobId", longest=80),
        destination=destination,
        conflict=choice(Conflict, fields.text("conflict", Conflict.APPEND), "conflict"),
        scope=choice(Scope, fields.text("scope", Scope.DIRECTORY), "scope"),
        partition_by=_columns(fields.texts("partitionBy", most=MAX_COLUMNS, default=[])),
        idempotency_key=_key(fields),
        created_at=fields.text("createdAt", "", longest=64),
        client=fields.text("client", "", longest=MAX_TEXT),
        conditions=_conditions(fields),
        sha256=digest(body),
    )
    if (spec.job_id, spec.destination) != (directory.job_id, directory.destination):
        raise InvalidInputError(
            f"job.json of {spec.job_id!r} at {destination.uri} lies in {directory.prefix}",
            code="WRONG_JOB",
        )
    return spec


def _columns(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if len(name) > MAX_COLUMN_NAME or not name.isprintable():
            raise InvalidInputError(
                f"partitionBy has {name[:80]!r}, which is no name of a column", code="BAD_FIELD"
            )
    if len(set(names)) != len(names):
        raise InvalidInputError("partitionBy has a column twice", code="BAD_FIELD")
    return names


def _key(fields: Fields) -> str | None:
    key = fields.optional_text("idempotencyKey", longest=MAX_KEY_CHARACTERS)
    if key == "":
        raise InvalidInputError("idempotencyKey is empty: give one, or none", code="BAD_FIELD")
    return key


def _conditions(fields: Fields) -> Conditions:
    return decode_conditions(fields.mapping("conditions"))


def encode_request(request: CommitRequest | AbortRequest) -> bytes:
    """``request.json``. Raises `InvalidInputError` (``TOO_LARGE``) if nobody would read it."""
    head: dict[str, Any] = {"version": VERSION, "jobId": request.job_id}
    if isinstance(request, AbortRequest):
        abandoned = {"abandoned": True} if request.abandoned else {}
        return dump({**head, "action": "abort", "reason": request.reason[:MAX_TEXT], **abandoned})
    head["action"] = "commit"
    if request.job_sha256:
        head["jobDigest"] = request.job_sha256
    document = {**head, "attempts": [members(attempt) for attempt in request.attempts]}
    return bounded(
        dump(document),
        what="request.json",
        max_bytes=MAX_REQUEST_BYTES,
        most=MAX_REQUEST_VALUES,
    )


def decode_request(body: bytes, directory: JobDirectory) -> CommitRequest | AbortRequest:
    """Read the ``request.json`` of ``directory``. Raises `InvalidInputError`.

    Two counted attempts of one task are refused (``TWO_ATTEMPTS``, I3), and a manifest that is
    not at the place which its ids give.
    """
    fields = _versioned(body, "request.json", MAX_REQUEST_BYTES, MAX_REQUEST_VALUES)
    if fields.text("jobId", longest=80) != directory.job_id:
        raise InvalidInputError("request.json is of another job", code="WRONG_JOB")
    action = fields.text("action", longest=80)
    if action == "abort":
        reason = fields.text("reason", "", longest=4 * MAX_TEXT)
        return AbortRequest(directory.job_id, reason, fields.value.get("abandoned") is True)
    if action != "commit":
        raise InvalidInputError(f"request.json asks for {action!r}", code="BAD_FIELD")
    listed = fields.objects("attempts", most=MAX_ATTEMPTS)
    attempts = tuple(_attempt(attempt, directory) for attempt in listed)
    refuse_two_attempts(attempts)
    return CommitRequest(directory.job_id, attempts, job_sha256=_job_digest(fields))


def _job_digest(fields: Fields) -> str:
    said = fields.text("jobDigest", "")
    if said and not _SHA256.fullmatch(said):
        raise InvalidInputError("request.json: jobDigest is no SHA-256", code="BAD_FIELD")
    return said


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


def _attempt(fields: Fields, directory: JobDirectory) -> CountedAttempt:
    attempt = CountedAttempt(
        task_id=check_id(fields.text("taskId"), "task id"),
        attempt_id=check_id(fields.text("attemptId"), "attempt id"),
        manifest=fields.text("manifest"),
        sha256=fields.text("sha256"),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
    )
    if attempt.manifest != directory.manifest_name(attempt.task_id, attempt.attempt_id):
        raise InvalidInputError(
            f"{fields.path}.manifest {attempt.manifest[:200]!r} is not where its ids put it",
            code="BAD_FIELD",
        )
    if not _SHA256.fullmatch(attempt.sha256):
        raise InvalidInputError(f"{fields.path}.sha256 is no SHA-256", code="BAD_FIELD")
    return attempt


def encode_result(result: JobResult) -> bytes:
    """``result.json``."""
    document = {"version": VERSION, **members(result)}
    return dump(document | {"error": result.error and members(result.error)})


def decode_result(body: bytes, directory: JobDirectory | None = None) -> JobResult:
    """Read a ``result.json``. Raises `InvalidInputError`.

    One that lies in ``directory`` and is of another job is refused (``WRONG_JOB``).
    """
    fields = _versioned(body, "result.json", MAX_RESULT_BYTES)
    if directory is not None and fields.text("jobId", longest=80) != directory.job_id:
        raise InvalidInputError(
            f"result.json in {directory.uri} is of another job", code="WRONG_JOB"
        )
    failure = None
    if fields.has("error"):
        error = Fields(fields.mapping("error"), "$.error")
        failure = Failure(error.text("code"), error.text("message", longest=16 * MAX_TEXT))
    return JobResult(
        job_id=fields.text("jobId", longest=80),
        outcome=choice(Outcome, fields.text("outcome"), "outcome"),
        error=failure,
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
        rows=fields.optional_integer("rows"),
        decided_at=fields.optional_text("decidedAt"),
        finished_at=fields.text("finishedAt"),
        execution=fields.text("execution", ""),
        replaced=fields.integer("replaced", 0),
    )


def _versioned(body: bytes, what: str, max_bytes: int, most: int = MAX_VALUES) -> Fields:
    fields = Fields(parse(body, what=what, max_bytes=max_bytes, most=most), "$")
    fields.version(VERSION)
    return fields


def choice(kind: type[Choice], value: str, what: str) -> Choice:
    """The member of that value. Raises `InvalidInputError`."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise InvalidInputError(
            f"{what} {value[:80]!r} is none of {known}", code="BAD_FIELD"
        ) from None
