"""The values that the protocol speaks of: immutable, typed, free of I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from s3commit.core.states import JobState


class Conflict(StrEnum):
    """What to do about files that are at the destination already."""

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


@dataclass(frozen=True, slots=True)
class PendingFile:
    """One pending upload: Hadoop's SinglePendingCommit, version 2.

    ``etags[i]`` is the etag of part i+1, as S3 returned it. ``length`` is in bytes, ``created``
    and ``saved`` in milliseconds since 1970. ``rows`` is None where the writer did not count.
    """

    bucket: str
    key: str
    upload_id: str
    etags: tuple[str, ...]
    length: int
    job_id: str = ""
    task_id: str = ""
    attempt_id: str = ""
    rows: int | None = None
    uri: str = ""
    created: int = 0
    saved: int = 0
    text: str = ""
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PendingSet:
    """The manifest of one task attempt: Hadoop's PendingSet, version 3."""

    job_id: str
    files: tuple[PendingFile, ...]
    task_id: str = ""
    attempt_id: str = ""

    @property
    def bytes(self) -> int:
        """The bytes of all files together."""
        return sum(file.length for file in self.files)

    @property
    def rows(self) -> int | None:
        """The rows of all files together, or None if one of them was not counted."""
        counts = [file.rows for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """``job.json``: what the client said at job setup. Times are RFC 3339, UTC."""

    job_id: str
    destination: Destination
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    partition_by: tuple[str, ...] = ()
    idempotency_key: str | None = None
    created_at: str = ""
    client: str = ""
    conditions: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """One attempt that the driver counts: its manifest (relative to the job directory) and digest.

    ``sha256`` is the hex digest of the manifest's bytes.
    """

    task_id: str
    attempt_id: str
    manifest: str
    sha256: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """``request.json`` with the action commit.

    ``attempts`` None means that every manifest of the job directory counts (stock S3A).
    """

    job_id: str
    attempts: tuple[CountedAttempt, ...] | None


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """``request.json`` with the action abort."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job was not committed; ``code`` is stable."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class JobResult:
    """``result.json``: the outcome, for the client. Counts are of the committed files."""

    job_id: str
    outcome: Outcome
    error: Failure | None
    files: int
    bytes: int
    rows: int | None
    decided_at: str | None
    finished_at: str
    execution: str


@dataclass(frozen=True, slots=True)
class Slice:
    """A range of one manifest's files: ``start`` included, ``stop`` excluded."""

    manifest: str
    sha256: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Unit:
    """What one worker call completes; ``number`` counts from 0 without a gap."""

    number: int
    slices: tuple[Slice, ...]

    @property
    def files(self) -> int:
        """How many files the unit has."""
        return sum(part.stop - part.start for part in self.slices)


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the ledger keeps of a plan: its digest and counts (the plan itself lies in S3)."""

    sha256: str
    units: int
    files: int
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """The ledger's note of a task attempt whose manifest arrived; ``manifest`` is its full key."""

    job_id: str
    task_id: str
    attempt_id: str
    manifest: str
    sha256: str
    files: int
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The ledger's record of a job.

    ``generation`` grows by one whenever an execution takes the job over; every later write of
    that execution is conditional on it. Times are RFC 3339, UTC.
    """

    job_id: str
    destination: Destination
    directory: str
    state: JobState
    generation: int
    created_at: str
    updated_at: str
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    partition_by: tuple[str, ...] = ()
    idempotency_key: str | None = None
    plan: PlanFacts | None = None
    failure: Failure | None = None
    decided_at: str | None = None
    finished_at: str | None = None
    execution: str = ""
