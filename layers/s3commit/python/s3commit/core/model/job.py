"""What a client says of its job, and how the job ended: immutable, typed, free of I/O."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from s3commit.core.model.conditions import Conditions


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


def job_ref(job_id: str, destination: Destination) -> str:
    """What the ledger knows a job by: its id, and 16 hex digits for where it is (docs/adr/0019).

    Ids are seen by everyone who may list the bucket. One that is used at another destination too
    is another job there, so that nobody can take a job's record, execution or lock from it. At
    most 53 of the 80 characters that Step Functions gives a name.
    """
    return f"{job_id}-{_digits(destination)}"


@lru_cache(maxsize=1024)
def _digits(destination: Destination) -> str:
    return hashlib.sha256(destination.uri.encode()).hexdigest()[:16]


def job_id_of(ref: str) -> str:
    """The job's id, out of its ref."""
    return ref.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """``job.json``: what the client said at job setup. Times are RFC 3339, UTC.

    ``sha256`` is the digest of the document that was read, ``put_at`` when S3 has got it.
    """

    job_id: str
    destination: Destination
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    partition_by: tuple[str, ...] = ()
    idempotency_key: str | None = None
    created_at: str = ""
    client: str = ""
    conditions: Conditions = field(default_factory=Conditions)
    sha256: str = field(default="", compare=False)
    put_at: str = field(default="", compare=False)


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

    ``job_sha256`` is the digest of the ``job.json`` that the client means; empty: it does not say.
    """

    job_id: str
    attempts: tuple[CountedAttempt, ...]
    job_sha256: str = ""


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """``request.json`` with the action abort; ``abandoned`` if the sweep says it for the driver."""

    job_id: str
    reason: str
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job was not committed; ``code`` is stable."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class JobResult:
    """``result.json``: the outcome, for the client. Counts are of the committed files.

    ``replaced`` counts the files of before that the job's policy removed.
    """

    job_id: str
    outcome: Outcome
    error: Failure | None
    files: int
    bytes: int
    rows: int | None
    decided_at: str | None
    finished_at: str
    execution: str
    replaced: int = 0

    @property
    def already_committed(self) -> bool:
        """Whether another job with the same idempotency key was committed: nothing was added."""
        return self.error is not None and self.error.code == ALREADY_COMMITTED


ALREADY_COMMITTED = "ALREADY_COMMITTED"  # code of a job whose idempotency key another job has
