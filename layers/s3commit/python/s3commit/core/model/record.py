"""The ledger's records of a job and of its task attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from s3commit.core.model.destination import Conflict, Destination, Scope, job_ref
from s3commit.core.model.errors import InvalidInputError, NeedsOperatorError
from s3commit.core.model.fields import SPARSE, Several, Text
from s3commit.core.model.outcome import Failure
from s3commit.core.model.states import JobState

Digest = Annotated[str, Text(64)]

# The ledger's data was judged before it was put there, and an item has at most 400 KB.
Texts = Annotated[tuple[Annotated[str, Text(400_000)], ...], Several(400_000)]


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The ledger's facts of a plan: its digest and counts (the plan itself is in S3).

    ``partitions`` is the digest of the document that lists them, where the policy needs it;
    ``directories`` that of the names of all directories in which the job has files.
    ``failed_check`` says which check of a column the job does not meet; empty: it meets all.
    """

    sha256: str
    units: int
    files: int
    bytes: int
    rows: int | None
    partitions: str = ""
    directories: Annotated[str, SPARSE] = ""
    failed_check: Annotated[str, SPARSE] = ""


@dataclass(frozen=True, slots=True)
class ReplacedFacts:
    """The ledger's facts of a replace list: the digest of its index, and counts.

    ``frees`` is the idempotency key of the job that is undone; empty: there is none. An undo
    ``restores_all`` if it leaves nothing removed of what that job had replaced; by the pipeline's
    own look.
    """

    sha256: Digest
    files: int
    bytes: int
    frees: Annotated[str, SPARSE] = ""
    restores_all: Annotated[bool, SPARSE] = False


@dataclass(frozen=True, slots=True)
class Healing:
    """How far a ledger's table knows the jobs that were decided in a bucket.

    ``table`` is the id of the table, ``since`` when it was first looked at (RFC 3339, UTC). Keys up
    to ``until`` have been walked; of these ``unread`` are the decision records that can't be read.
    ``whole`` says that all have been, and stays.
    """

    table: str
    since: str
    until: str = ""
    whole: bool = False
    unread: Annotated[Texts, SPARSE] = ()

    def of(self, table: str) -> Healing:
        """The same, if the table's id is that one.

        Raises `NeedsOperatorError` (``LEDGER_RESTORED``) for a table that was restored:
        DynamoDB restores a backup into a new one.
        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Restore.Tutorial.html
        """
        if table != self.table:
            raise NeedsOperatorError(
                "the ledger's table was restored from a backup, so S3 knows more than it does, and"
                " nothing is decided by it; deploy with an empty table, which heals itself from S3",
                code="LEDGER_RESTORED",
            )
        return self


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


@dataclass(frozen=True, slots=True)
class Waits:
    """A job waits for its destination since then (RFC 3339, UTC), for those jobs, by their refs."""

    since: str
    behind: Texts = ()


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The ledger's record of a job.

    ``generation`` grows by one whenever an execution takes over the job; every later write of that
    execution is conditional on it. ``locks`` are the nodes that the job has locked until it has
    ended, since ``locked_at``; ``waits`` says for whom it waits, until it is decided.
    ``job_sha256`` is the digest of the first ``_job.json`` that the pipeline read; empty if none
    could be read, None if none was noted. ``opened_at`` is when S3 got that ``_job.json``: no older
    object is the job's. ``requested_at`` is when S3 got the request to commit it; empty until the
    pipeline has read it; ``requested_by`` the principal that put it, by S3's event, if one led to
    the execution. ``undoes`` is the id of the job that this one undoes; ``note`` and
    ``labels`` are its client's words, for people. Times are RFC 3339, UTC.
    """

    job_id: str
    destination: Destination
    state: JobState
    generation: int
    created_at: str
    updated_at: str
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    partition_by: Texts = ()
    idempotency_key: str | None = None
    job_sha256: str | None = None
    plan: PlanFacts | None = None
    replaced: ReplacedFacts | None = None
    locks: Texts = ()
    locked_at: str = ""
    waits: Waits | None = None
    failure: Failure | None = None
    decided_at: str | None = None
    finished_at: str | None = None
    execution: str = ""
    opened_at: str = ""
    requested_at: str = ""
    requested_by: Annotated[str, SPARSE] = ""
    undoes: Annotated[str, SPARSE] = ""
    note: Annotated[str, SPARSE] = ""
    labels: Annotated[Texts, SPARSE] = ()

    @property
    def ref(self) -> str:
        """See `job_ref`."""
        return job_ref(self.job_id, self.destination)

    @property
    def planned(self) -> PlanFacts:
        """The plan of a job that has one. Raises `InvalidInputError`."""
        if self.plan is None:
            raise InvalidInputError(f"job {self.job_id} has no plan", code="NOT_PLANNED")
        return self.plan


def first_generation(created_at: str) -> int:
    """The generation of a record that is made at a moment: its seconds since 1970.

    If each record began at 0, a number from the lost ledger could match the job's next record, and
    a worker that still holds it would be let in. No job is taken over once a second.
    """
    return int(datetime.fromisoformat(created_at).timestamp())
