"""What the ledger keeps of a job and of its task attempts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from s3commit.core.model.job import Conflict, Destination, Failure, Scope, job_ref
from s3commit.core.model.states import JobState


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the ledger keeps of a plan: its digest and counts (the plan itself lies in S3).

    ``partitions`` is the digest of the document that lists them, where the policy asks for it.
    """

    sha256: str
    units: int
    files: int
    bytes: int
    rows: int | None
    partitions: str = ""


@dataclass(frozen=True, slots=True)
class ReplacedFacts:
    """What the ledger keeps of a replace list: the digest of its index, and counts."""

    sha256: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """The ledger's note of a task attempt whose manifest arrived; ``manifest`` is its full key.

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
    ``epoch`` grows with every ENTERING, so that what was seen in an earlier one counts no more; it
    is above the generation that the job had then.
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
    state: JobState
    generation: int
    created_at: str
    updated_at: str
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    partition_by: tuple[str, ...] = ()
    idempotency_key: str | None = None
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
