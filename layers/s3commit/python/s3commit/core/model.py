"""The values that the protocol speaks of: immutable, typed, free of I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from s3commit.core.conditions import Conditions
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


class Names(StrEnum):
    """Whether a job's file names carry its id, or are the program's own."""

    UNIQUE = "unique"
    EXACT = "exact"


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
    return f"{job_id}-{hashlib.sha256(destination.uri.encode()).hexdigest()[:16]}"


def job_id_of(ref: str) -> str:
    """The job's id, out of its ref."""
    return ref.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class PendingFile:
    """One pending upload: Hadoop's SinglePendingCommit, version 2.

    ``etags[i]`` is the etag of part i+1, as S3 returned it. ``length`` is in bytes, ``created``
    and ``saved`` in milliseconds since 1970. ``rows`` is None where the writer did not count;
    ``nulls`` has the count of nulls of each column that a condition of the job names.
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
    nulls: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PendingSet:
    """The manifest of one task attempt: Hadoop's PendingSet, version 3.

    ``task_count`` is how many tasks of the job have files; None if the writer did not know.
    """

    job_id: str
    files: tuple[PendingFile, ...]
    task_id: str = ""
    attempt_id: str = ""
    task_count: int | None = None

    @property
    def bytes(self) -> int:
        """The bytes of all files together."""
        return sum(file.length for file in self.files)

    @property
    def rows(self) -> int | None:
        """The rows of all files together, or None if one of them was not counted."""
        counts = [file.rows for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def nulls(self) -> dict[str, int | None]:
        """The nulls of all files together, for each column that one of them counted."""
        return add_nulls(file.nulls for file in self.files)


def add_nulls(counts: Iterable[Mapping[str, int | None]]) -> dict[str, int | None]:
    """Add counts of nulls by column; None for a column that not all of them have."""
    total: dict[str, int | None] = {}
    for number, one in enumerate(counts):
        for column in total.keys() | one.keys():
            before = total.get(column, None if number else 0)
            more = one.get(column)
            total[column] = None if before is None or more is None else before + more
    return total


@dataclass(frozen=True, slots=True)
class JobSpec:
    """``job.json``: what the client said at job setup. Times are RFC 3339, UTC.

    ``locations`` maps partitions (``dt=1/``) that lie outside the destination to the key prefixes
    where they lie, in the destination's bucket. ``sha256`` is the digest of the document that was
    read, ``put_at`` when S3 has got it; both are empty where there is none.
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
    names: Names = Names.UNIQUE
    locations: Mapping[str, str] = field(default_factory=dict)
    sha256: str = field(default="", compare=False)
    put_at: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """One attempt that the driver counts: its manifest (relative to the job directory) and digest.

    ``sha256`` is the hex digest of the manifest's bytes. ``location`` is the key prefix of the
    location in whose job directory the manifest lies; empty for the destination. ``elsewhere`` has
    the same attempt's manifests at other places: a request lists them one by one.
    """

    task_id: str
    attempt_id: str
    manifest: str
    sha256: str
    files: int
    bytes: int
    location: str = ""
    elsewhere: tuple[CountedAttempt, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """``request.json`` with the action commit.

    ``attempts`` None means that every manifest of the job directory counts (stock S3A); unless
    ``partial``, there must be as many as they say that the job has tasks. ``job_sha256`` is the
    digest of the ``job.json`` that the client means; empty: it does not say.
    """

    job_id: str
    attempts: tuple[CountedAttempt, ...] | None
    job_sha256: str = ""
    partial: bool = False


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


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the ledger keeps of a plan: its digest and counts (the plan itself lies in S3).

    ``partitions`` is the digest of the document that lists them, where the policy asks for it.
    ``nulls`` has, for each column that a condition names, its nulls (None: not counted).
    ``locations`` are those of `JobSpec`, of which each was seen to be the job's.
    ``visible_before`` counts files that S3A's own committer had made visible before the decision.
    """

    sha256: str
    units: int
    files: int
    bytes: int
    rows: int | None
    partitions: str = ""
    nulls: dict[str, int | None] = field(default_factory=dict)
    locations: dict[str, str] = field(default_factory=dict)
    visible_before: int = 0


@dataclass(frozen=True, slots=True)
class ReplacedFacts:
    """What the ledger keeps of a replace list: the digest of its index, and counts.

    ``overwrites`` says that files of exact names cover ones that are there, which is allowed on a
    versioned bucket alone.
    """

    sha256: str
    files: int
    bytes: int
    overwrites: bool = False


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """The ledger's note of a task attempt whose manifest arrived; ``manifest`` is its full key.

    An attempt has a note for each place where it has files; ``location`` as in `CountedAttempt`.
    ``ref`` is the job's (`job_ref`).
    """

    ref: str
    task_id: str
    attempt_id: str
    manifest: str
    sha256: str
    files: int
    bytes: int
    rows: int | None
    location: str = ""


class Stage(StrEnum):
    """How far a job has come on its way to what it claims."""

    NONE = "NONE"
    WAITING = "WAITING"  # for others that hold what it claims, or go before it
    ENTERING = "ENTERING"  # it looks whether others are there
    HELD = "HELD"


@dataclass(frozen=True, slots=True)
class Turn:
    """A job's turn among those that claim the same, as its record has it.

    ``since`` is when it first asked (RFC 3339, UTC; empty: not yet): who asked first goes first.
    ``epoch`` grows by one with every ENTERING, so that what was seen in an earlier one counts no
    more.
    """

    stage: Stage = Stage.NONE
    since: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The ledger's record of a job.

    ``generation`` grows by one whenever an execution takes the job over; every later write of
    that execution is conditional on it. ``locks`` are the nodes that the job may claim, noted
    before the first claim is put, and ``turn`` says whether it holds them. ``job_sha256`` is the
    digest of ``job.json`` as it was when the job was first heard of; empty if there was none that
    could be read, None if nobody noted it. ``opened_at`` is when S3 has got that ``job.json``: no
    object that is older is the job's. Times are RFC 3339, UTC.
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
    names: Names = Names.UNIQUE
    job_sha256: str | None = None
    plan: PlanFacts | None = None
    replaced: ReplacedFacts | None = None
    locks: tuple[str, ...] = ()
    turn: Turn = field(default_factory=Turn)
    failure: Failure | None = None
    decided_at: str | None = None
    finished_at: str | None = None
    execution: str = ""
    opened_at: str = ""

    @property
    def ref(self) -> str:
        """See `job_ref`."""
        return job_ref(self.job_id, self.destination)
