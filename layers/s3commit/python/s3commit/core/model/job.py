"""A client's description of its job and files, and the job's end: immutable, free of I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Final

from s3commit.core.model.amounts import many
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import SPARSE, Name, Several, Sha256, Text, Whole

MAX_KEY_CHARACTERS: Final = 1024  # of an idempotency key
MAX_COLUMNS: Final = 100  # of partitionBy
MAX_COLUMN_NAME: Final = 255  # characters
MAX_TEXT: Final = 1024  # characters of the client's name, and of the reason of an abort
MAX_ATTEMPTS: Final = 200_000  # 1.4 million values; the worst of this size takes 1.1 GB to read

ALREADY_COMMITTED = "ALREADY_COMMITTED"  # code of a job whose idempotency key another job has

MAX_PARTS: Final = 10_000  # https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
MAX_OBJECT_BYTES: Final = 50 * 1024**4  # S3's own limit of an object, same page
MAX_ETAG: Final = 256  # characters; S3's have 34; a file of 10,000 parts is held while it completes

# Rows of one file. What a job's million files add up to has to be a number that every reader takes:
# below 2**63 (`s3commit.core.model.fields.Whole`).
MAX_ROWS: Final = 10**12

# What one task attempt may have. A worker reads the manifest whole for each of its units, so more
# files would take longer to read than to complete. Of one part each they are 720,000 values and,
# with keys of 250 characters, 22 MiB. The worst of this size takes 600 MB to read.
MAX_FILES: Final = 20_000

# An id becomes a part of keys, of an execution's name and of ledger keys: 80 characters is Step
# Functions' limit for a name, and a recovery appends a suffix to it.
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_SHA256_OR_NONE = re.compile("(?:[0-9a-f]{64})?")
JobId = Annotated[str, Text(80)]
Moment = Annotated[str, Text(64)]  # RFC 3339, UTC
Column = Annotated[str, Text(MAX_COLUMN_NAME, least=1)]
Columns = Annotated[tuple[Column, ...], Several(MAX_COLUMNS)]
Key = Annotated[str, Text(MAX_KEY_CHARACTERS, least=1)]
Etag = Annotated[str, Text(MAX_ETAG, least=1)]
Given = Annotated[str, Text(least=1)]
MAX_WHO: Final = 256  # characters of each text that says who writes
Said = Annotated[str, Text(MAX_WHO), SPARSE]


class Conflict(StrEnum):
    """The policy for files that are at the destination already."""

    APPEND = "append"
    FAIL = "fail"
    REPLACE = "replace"


class Scope(StrEnum):
    """How far a conflict policy reaches."""

    DIRECTORY = "directory"
    PARTITION = "partition"


class Outcome(StrEnum):
    """How a job ended, as its client reads it."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    ROLLED_BACK = "ROLLED_BACK"


@dataclass(frozen=True, slots=True)
class Destination:
    """``s3://bucket/prefix/``; ``prefix`` is not empty and ends with ``/``."""

    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        """The destination as people write it."""
        return f"s3://{self.bucket}/{self.prefix}"


def job_ref(job_id: str, destination: Destination) -> str:
    """The ledger's name of a job: its id, and 128 bits that say where it is (docs/adr/0004).

    Everyone with the right to list the bucket sees ids. The same id at another destination is
    another job, so it can't take this job's record, execution or lock. 69 of the 80 characters that
    Step Functions gives a name.
    """
    return f"{job_id}-{_digits(destination)}"


@lru_cache(maxsize=1024)
def _digits(destination: Destination) -> str:
    return hashlib.sha256(destination.uri.encode()).hexdigest()[:32]


_COUNTS = {"minRows": "min_rows", "maxRows": "max_rows", "minFiles": "min_files"}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Bounds, each None where the job sets none; both ends of a range are allowed."""

    min_rows: int | None = None
    max_rows: int | None = None
    min_files: int | None = None

    def __post_init__(self) -> None:
        for name, attribute in _COUNTS.items():
            value = getattr(self, attribute)
            if value is not None and (type(value) is not int or value < 0):
                _refuse(f"{name} {value!r} is invalid: give a whole number from 0")
        most = float("inf") if self.max_rows is None else self.max_rows
        if (self.min_rows or 0) > most:
            _refuse(f"minRows {self.min_rows} is more than maxRows {self.max_rows}")

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in _COUNTS.values())

    def failed(self, files: int, rows: int | None) -> str | None:
        """The first condition that the counts do not meet, with the figure; None if all are met.

        ``rows`` None means that the writer did not count.
        """
        if self.min_files is not None and files < self.min_files:
            return f"the job has {many(files, 'file')}; minFiles is {self.min_files}"
        if self.min_rows is None and self.max_rows is None:
            return None
        if rows is None:
            return "the rows were not counted: pass each file's rows to the writer"
        if self.min_rows is not None and rows < self.min_rows:
            return f"the job has {many(rows, 'row')}; minRows is {self.min_rows}"
        if self.max_rows is not None and rows > self.max_rows:
            return f"the job has {many(rows, 'row')}; maxRows is {self.max_rows}"
        return None


def encode_conditions(conditions: Conditions) -> dict[str, Any]:
    """The conditions as ``_job.json`` has them."""
    return {
        name: getattr(conditions, attribute)
        for name, attribute in _COUNTS.items()
        if getattr(conditions, attribute) is not None
    }


def decode_conditions(value: Any) -> Conditions:
    """Read them. A condition that is not known is refused: ignoring it would break a promise.

    Raises `InvalidInputError` (``BAD_CONDITION``).
    """
    if not isinstance(value, Mapping):
        _refuse("must be an object")
    unknown = sorted(set(value) - set(_COUNTS))
    if unknown:
        _refuse(f"condition {unknown[0][:80]!r} is not known; known are {', '.join(_COUNTS)}")
    return Conditions(**{attribute: value.get(name) for name, attribute in _COUNTS.items()})


def _refuse(message: str) -> None:
    raise InvalidInputError(f"conditions: {message}", code="BAD_CONDITION")


@dataclass(frozen=True, slots=True)
class Who:
    """The writer of a job, as its client names it; empty: not named. For people: no rule reads it.

    ``airflow`` is the run: dag, run and task, with the index of a mapped task and the try.
    """

    application_id: Said = ""
    application: Said = ""
    user: Said = ""
    host: Said = ""
    airflow: Said = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """``_job.json``: the client's document of job setup. Times are RFC 3339, UTC.

    ``undoes`` is the id of the job at the same destination that this one undoes; empty: none. With
    ``leave_removed`` it brings back nothing of what that one had replaced. ``sha256`` is the digest
    of the document that was read, ``put_at`` when S3 has got it: neither is part of it.
    """

    job_id: JobId
    destination: Destination
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    partition_by: Columns = ()
    idempotency_key: Key | None = None
    created_at: Moment = ""
    client: Annotated[str, Text(MAX_TEXT)] = ""
    conditions: Conditions = field(default_factory=Conditions)
    who: Annotated[Who | None, SPARSE] = None
    undoes: Annotated[JobId, SPARSE] = ""
    leave_removed: Annotated[bool, SPARSE] = False
    sha256: str = field(default="", compare=False)
    put_at: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """One attempt that the driver counts: its manifest (relative to the job directory) and digest.

    ``sha256`` is the hex digest of the manifest's bytes.
    """

    task_id: Annotated[str, Text(64, pattern=ID)]
    attempt_id: Annotated[str, Text(64, pattern=ID)]
    manifest: str
    sha256: Sha256
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """``_request.json`` with the action commit.

    ``job_sha256`` is the digest of the ``_job.json`` that the client means; empty: it does not say.
    ``put_at`` is when S3 has got it. It is not part of it.
    """

    job_id: JobId
    attempts: Annotated[tuple[CountedAttempt, ...], Several(MAX_ATTEMPTS)]
    job_sha256: Annotated[str, Text(64, pattern=_SHA256_OR_NONE), Name("jobDigest"), SPARSE] = ""
    put_at: str = field(default="", compare=False)

    @property
    def files(self) -> int:
        """How many the counted attempts say that they have, together."""
        return sum(attempt.files for attempt in self.attempts)


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """``_request.json`` with the action abort; ``abandoned`` if the sweep put it for the driver."""

    job_id: JobId
    reason: str = ""
    abandoned: Annotated[bool, SPARSE] = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job was not committed; ``code`` is stable."""

    code: str
    message: Annotated[str, Text(16 * MAX_TEXT)]


@dataclass(frozen=True, slots=True)
class JobResult:
    """``_result.json``: counts of the committed files; ``replaced`` of those that were removed."""

    job_id: JobId
    outcome: Outcome
    error: Failure | None
    files: int
    bytes: int
    rows: int | None
    decided_at: str | None
    finished_at: str
    execution: str = ""
    replaced: int = 0

    @property
    def already_committed(self) -> bool:
        """True if another job with the same idempotency key was committed: nothing was added."""
        return self.error is not None and self.error.code == ALREADY_COMMITTED


@dataclass(frozen=True, slots=True)
class PendingFile:
    """One pending upload: Hadoop's SinglePendingCommit, version 2.

    ``etags[i]`` is the etag of part i+1, as S3 returned it. ``length`` is in bytes, ``created``
    and ``saved`` in milliseconds since 1970. ``rows`` is None where the writer did not count.
    ``origin`` is the key of the file of which an undo brings back a copy.
    """

    bucket: Given
    key: Annotated[Given, Name("destinationKey")]
    upload_id: Given
    etags: Annotated[tuple[Etag, ...], Several(MAX_PARTS, least=1)]
    length: Annotated[int, Whole(most=MAX_OBJECT_BYTES)]
    job_id: str = ""
    task_id: str = ""
    attempt_id: str = ""
    rows: Annotated[int | None, Whole(most=MAX_ROWS)] = None
    created: int = 0
    saved: int = 0
    origin: Annotated[str, SPARSE] = ""


@dataclass(frozen=True, slots=True)
class PendingSet:
    """The manifest of one task attempt: Hadoop's PendingSet, version 3.

    ``task_count`` is how many tasks of the job have files; None if the writer did not know.
    """

    job_id: str
    files: Annotated[tuple[PendingFile, ...], Name("commits"), Several(MAX_FILES)]
    task_id: str = ""
    attempt_id: str = ""
    task_count: Annotated[int | None, SPARSE] = None

    @property
    def bytes(self) -> int:
        """The bytes of all files together."""
        return sum(file.length for file in self.files)

    @property
    def rows(self) -> int | None:
        """The rows of all files together, or None if one of them was not counted."""
        counts = [file.rows for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)
