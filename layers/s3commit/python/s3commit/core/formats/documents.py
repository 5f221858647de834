"""Job and request of a client, its result, and the list and ``_SUCCESS`` that readers find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from s3commit.core.formats.codec import Codec, Form, read_text
from s3commit.core.formats.layout import JOB_ID, JobDirectory, parse_destination
from s3commit.core.formats.manifest import HADOOPS, check_contained, digest
from s3commit.core.formats.strict_json import dump, parse
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import SPARSE, Text
from s3commit.core.model.job import (
    MAX_OBJECT_BYTES,
    MAX_PARTS,
    MAX_ROWS,
    MAX_TEXT,
    AbortRequest,
    Columns,
    CommitRequest,
    Conflict,
    CountedAttempt,
    JobId,
    JobResult,
    JobSpec,
    Scope,
    decode_conditions,
    encode_conditions,
)
from s3commit.core.model.record import JobRecord, ReplacedFacts

VERSION = 1
MAX_JOB_BYTES = 256 * 1024
MAX_RESULT_BYTES = 256 * 1024
MAX_REQUEST_BYTES = 64 * 1024 * 1024
MAX_REQUEST_VALUES = 1_800_000
SUCCESS_NAME = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
SUCCESS_FILES = 100  # Hadoop's SUCCESS_MARKER_FILE_LIMIT
MAX_LINE_BYTES = MAX_JOB_BYTES  # the first one repeats _job.json's columns and key
MAX_SUCCESS_BYTES = 1024 * 1024
MAX_COMMITS_BYTES = 1024 * 1024 * 1024
MAX_WHOLE_BYTES = 256 * 1024 * 1024  # what a function reads of it: half a million files or more


class _Action(StrEnum):
    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of every request: the action decides which fields follow."""

    job_id: JobId
    action: _Action


DESTINATION: Final = Form(
    lambda value: parse_destination(read_text(Text(), value)), lambda one: one.uri
)
_JOB: Final = Codec(
    JobSpec,
    "_job.json",
    VERSION,
    max_bytes=MAX_JOB_BYTES,
    closed=True,
    forms={"destination": DESTINATION, "conditions": Form(decode_conditions, encode_conditions)},
    unwritten={"sha256": "", "put_at": ""},
)
_REQUEST: Final[Any] = {
    "what": "_request.json",
    "max_bytes": MAX_REQUEST_BYTES,
    "most": MAX_REQUEST_VALUES,
}
_HEAD: Final = Codec(_Head, version=VERSION, **_REQUEST)
_COMMIT: Final = Codec(
    CommitRequest,
    version=VERSION,
    constants={"action": _Action.COMMIT},
    unwritten={"put_at": ""},
    **_REQUEST,
)
_ABORT: Final = Codec(
    AbortRequest, version=VERSION, constants={"action": _Action.ABORT}, **_REQUEST
)
_RESULT: Final = Codec(JobResult, "_result.json", VERSION, max_bytes=MAX_RESULT_BYTES)


def encode_job(spec: JobSpec) -> bytes:
    """``_job.json``."""
    return _JOB.encode(spec)


def decode_job(body: bytes, directory: JobDirectory) -> JobSpec:
    """Read the ``_job.json`` of ``directory``. Raises `InvalidInputError`.

    A job that names another id or destination than its own place is refused (``WRONG_JOB``): the
    place is what S3 permissions are given for. So is one with a field that is not known
    (``BAD_FIELD``): to ignore it could break what the client requested.
    """
    spec = _JOB.decode(body)
    is_undo = spec.conflict is Conflict.REPLACE and spec.scope is Scope.DIRECTORY
    if spec.undoes and not (is_undo and JOB_ID.fullmatch(spec.undoes)):
        raise InvalidInputError(
            "undoes names no job, or conflict and scope are not replace and directory",
            code="BAD_FIELD",
        )
    if spec.leave_removed and not spec.undoes:
        raise InvalidInputError("leaveRemoved is of a job that undoes another", code="BAD_FIELD")
    if len(set(spec.partition_by)) != len(spec.partition_by):
        raise InvalidInputError("partitionBy has a column twice", code="BAD_FIELD")
    if (spec.job_id, spec.destination) != (directory.job_id, directory.destination):
        raise InvalidInputError(
            f"_job.json of {spec.job_id!r} at {spec.destination.uri} is in {directory.prefix}",
            code="WRONG_JOB",
        )
    return replace(spec, sha256=digest(body))


def encode_request(request: CommitRequest | AbortRequest) -> bytes:
    """``_request.json``. Raises `InvalidInputError` (``TOO_LARGE``) if no reader would take it."""
    if isinstance(request, CommitRequest):
        return _COMMIT.encode(request)
    return _ABORT.encode(replace(request, reason=request.reason[:MAX_TEXT]))


def decode_request(body: bytes, directory: JobDirectory) -> CommitRequest | AbortRequest:
    """Read the ``_request.json`` of ``directory``. Raises `InvalidInputError`.

    Two counted attempts of one task are refused (``TWO_ATTEMPTS``, I3), and a manifest that is
    not at the place which its ids give.
    """
    document = parse(body, **_REQUEST)
    head = _HEAD.read(document)
    if head.job_id != directory.job_id:
        raise InvalidInputError("_request.json is of another job", code="WRONG_JOB")
    if head.action is _Action.ABORT:
        return _ABORT.read(document)
    request = _COMMIT.read(document)
    for attempt in request.attempts:
        if attempt.manifest != directory.manifest_name(attempt.task_id, attempt.attempt_id):
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
    """``_result.json``."""
    return _RESULT.encode(result)


def decode_result(body: bytes, directory: JobDirectory) -> JobResult:
    """Read the ``_result.json`` of ``directory``. Raises `InvalidInputError`.

    One that is of another job is refused (``WRONG_JOB``).
    """
    result = _RESULT.decode(body)
    if result.job_id != directory.job_id:
        raise InvalidInputError(
            f"_result.json in {directory.uri} is of another job", code="WRONG_JOB"
        )
    return result


@dataclass(frozen=True, slots=True)
class CommitHeader:
    """The first line of a commit manifest: the job, and what its files add up to.

    ``replaced`` are the files that it has removed: of the whole destination or, by ``scope``, of
    the partitions that its own files are in; of a job that ``undoes`` another, that one's alone.
    """

    job_id: JobId
    destination: str
    decided_at: str
    files: int
    bytes: int
    rows: int | None
    partition_by: Columns = ()
    idempotency_key: str | None = None
    replaced: Annotated[ReplacedFacts | None, SPARSE] = None
    scope: Annotated[Scope, SPARSE] = Scope.DIRECTORY
    undoes: Annotated[JobId, SPARSE] = ""


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A further line: one file. ``etag`` is the one expected of the object (empty: unknown).

    ``origin`` is the key of the file of which an undo has brought back this copy: the first one, if
    it was brought back more than once.
    """

    key: str
    length: int
    etag: str = ""
    rows: int | None = None
    origin: Annotated[str, SPARSE] = ""

    @property
    def first_key(self) -> str:
        """The key that the data had first."""
        return self.origin or self.key


@dataclass(frozen=True, slots=True)
class _Marker:
    """The fields read of a ``_SUCCESS``: Hadoop's is of 0 bytes, or of a job of its own."""

    job_id: Annotated[str, Text(200)] = ""


_HEADER: Final = Codec(CommitHeader, "commit manifest", VERSION, max_bytes=MAX_LINE_BYTES)
_FILE: Final = Codec(CommittedFile, "commit manifest", max_bytes=MAX_LINE_BYTES)
_MARKER: Final = Codec(_Marker, "_SUCCESS", max_bytes=MAX_SUCCESS_BYTES)


# What a line has beside its key, at most.
_BESIDE_KEY: Final = 1 + len(
    dump(_FILE.write(CommittedFile("", MAX_OBJECT_BYTES, f'"{"f" * 32}-{MAX_PARTS}"', MAX_ROWS)))
)
_BESIDE_ORIGIN: Final = len('"origin":"",')


def listed_bytes(key: str, origin: str = "") -> int:
    """The bytes that a file takes in a commit manifest, at most; no key has a control character."""
    if origin:
        return listed_bytes(key) + listed_bytes(origin) - _BESIDE_KEY + _BESIDE_ORIGIN
    return len(key.encode()) + key.count('"') + key.count("\\") + _BESIDE_KEY


def header_of(record: JobRecord) -> CommitHeader:
    """The header for a decided job."""
    plan = record.planned
    return CommitHeader(
        job_id=record.job_id,
        destination=record.destination.uri,
        decided_at=record.decided_at or "",
        files=plan.files,
        bytes=plan.bytes,
        rows=plan.rows,
        partition_by=record.partition_by,
        idempotency_key=record.idempotency_key,
        replaced=record.replaced,
        scope=record.scope,
        undoes=record.undoes,
    )


def commit_lines(header: CommitHeader, files: Iterable[CommittedFile]) -> Iterator[bytes]:
    """The commit manifest, line by line, each with its newline; the same input, the same bytes.

    Raises `InvalidInputError` (``TOO_LARGE``) for a header that no reader would take.
    """
    yield _HEADER.encode(header) + b"\n"
    for file in files:
        yield dump(_FILE.write(file)) + b"\n"


def decode_commit_header(start: bytes, directory: JobDirectory) -> CommitHeader:
    """Read the first line of the first `MAX_LINE_BYTES` or more. Raises `InvalidInputError`.

    The one place where a list is believed: one of another job or destination than those of its
    place is refused (``WRONG_JOB``). A copy of a table brings such lists along.
    """
    header = _HEADER.decode(start.split(b"\n", 1)[0])
    if (header.job_id, header.destination) != (directory.job_id, directory.destination.uri):
        raise InvalidInputError(
            f"commit manifest of {header.job_id!r} at {header.destination[:200]!r} is at"
            f" {directory.commits}",
            code="WRONG_JOB",
        )
    return header


def decode_commit_manifest(
    body: bytes, directory: JobDirectory
) -> tuple[CommitHeader, list[CommittedFile]]:
    """Read a whole commit manifest.

    Raises `InvalidInputError` as `decode_commit_header`; ``TRUNCATED`` if it has fewer or more
    files than it says, ``NOT_CONTAINED`` or ``NAME_NOT_UNIQUE`` if one is not the job's.
    """
    lines = body.splitlines()
    if not lines:
        raise InvalidInputError("commit manifest is empty", code="TRUNCATED")
    header = decode_commit_header(lines[0], directory)
    files = [_FILE.decode(line) for line in lines[1:]]
    if len(files) != header.files:
        raise InvalidInputError(
            f"commit manifest has {len(files)} files and says {header.files}", code="TRUNCATED"
        )
    for file in files:
        check_contained(file.key, directory)
    return header, files


def encode_success(record: JobRecord, keys: Iterable[str], now: str) -> bytes:
    """``_SUCCESS``: Hadoop's SuccessData, put at ``now`` (RFC 3339), with the first keys."""
    header = header_of(record)
    return dump(
        {
            "name": SUCCESS_NAME,
            "success": True,
            "timestamp": round(datetime.fromisoformat(now).timestamp() * 1000),
            "date": header.decided_at,
            "hostname": "s3commit",
            "committer": "s3commit",
            "description": f"{header.files} files, {header.bytes} bytes",
            "jobId": header.job_id,
            "jobIdSource": "s3commit",
            "metrics": {"files": header.files, "bytes": header.bytes},
            "diagnostics": {},
            "filenames": [f"/{key}" for key in keys],
            "iostatistics": {
                **HADOOPS["iostatistics"],
                "counters": {
                    "committer_files_committed": header.files,
                    "committer_bytes_committed": header.bytes,
                },
            },
            "state": None,
            "stage": None,
        }
    )


def success_job_id(body: bytes) -> str:
    """The job whose marker this is; empty for a marker of another kind (Hadoop's is 0 bytes)."""
    try:
        return _MARKER.decode(body).job_id
    except InvalidInputError:
        return ""
