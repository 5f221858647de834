"""The ledger that the protocol needs: the state of each job, its attempts and its locks.

`s3commit.aws` implements it on DynamoDB, `s3commit.testing` in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, Self

from s3commit.core.errors import S3CommitError
from s3commit.core.locks import LockRecord
from s3commit.core.model import AttemptRecord, Failure, JobRecord, PlanFacts, ReplacedFacts
from s3commit.core.states import JobState


class LostRaceError(S3CommitError):
    """A conditional write of the ledger lost; ``found`` is the record that beat it (None: none).

    The write changed nothing.
    """

    code = "LOST_RACE"

    def __init__(self, message: str, found: JobRecord | None) -> None:
        super().__init__(message)
        self.found = found

    @classmethod
    def over(
        cls, job_id: str, state: JobState | None, generation: int, found: JobRecord | None
    ) -> Self:
        """The error of a write that expected ``state`` (None: any) at ``generation``."""
        stands = f"{found.state} at generation {found.generation}" if found else "no record"
        return cls(
            f"job {job_id}: expected {state or 'any state'} at generation {generation},"
            f" found {stands}",
            found,
        )


class Ledger(Protocol):
    """The state of each job, its attempts and its locks; every write is conditional."""

    def job(self, job_id: str) -> JobRecord | None:
        """The record, read consistently."""
        ...

    def open_job(self, record: JobRecord) -> JobRecord:
        """Create the record if there is none; return the one that stands."""
        ...

    def take_over(self, job_id: str, *, generation: int, execution: str, now: str) -> JobRecord:
        """Raise the generation by one, for an execution that goes on with the job.

        Conditional on ``generation`` being the present one. Raises `LostRaceError`.
        """
        ...

    def advance(
        self,
        job_id: str,
        *,
        source: JobState,
        target: JobState,
        generation: int,
        now: str,
        plan: PlanFacts | None = None,
        failure: Failure | None = None,
    ) -> JobRecord:
        """One transition of the table, conditional on state and generation.

        ``plan`` and ``failure`` are stored if given. A transition into an ended state stores
        ``now`` as ``finished_at`` and sets the record's time to live. Raises `LostRaceError`,
        `IllegalTransitionError`. Entering COMMITTING is `decide`'s alone.
        """
        ...

    def decide(
        self,
        job_id: str,
        *,
        generation: int,
        plan: PlanFacts,
        replaced: ReplacedFacts | None,
        locks: Sequence[str],
        now: str,
    ) -> JobRecord:
        """SEALED→COMMITTING, the decision: one transaction over the job and its locks.

        Conditional on state, generation, the digests of plan and replace list, and on each node of
        ``locks`` (at most 98) being held by the job. Raises `LostRaceError`.
        """
        ...

    def note(
        self,
        job_id: str,
        *,
        generation: int,
        now: str,
        plan: PlanFacts | None = None,
        locks: Sequence[str] | None = None,
        replaced: ReplacedFacts | None = None,
    ) -> JobRecord:
        """Store what was found out about a SEALED job; None leaves a fact as it is.

        Raises `LostRaceError`.
        """
        ...

    def begin_unit(self, job_id: str, unit: int) -> bool:
        """Note that a worker begins the unit; True for the first one ever to say so.

        A worker that gets False repeats work of another, and looks at each object it completes.
        """
        ...

    def record_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """Note arrived manifests; repeated notes of the same attempt change nothing.

        An attempt noted before with another digest keeps its first note.
        """
        ...

    def attempts(self, job_id: str) -> Iterator[AttemptRecord]:
        """Every noted attempt of the job, in no order."""
        ...

    def lock(self, node: str) -> LockRecord:
        """The node's lock, read consistently; an empty one with version 0 if there is none."""
        ...

    def put_lock(self, record: LockRecord) -> bool:
        """Store the record, on condition that the stored one still has ``record.version``.

        The stored version then is one more. An empty record may be kept or dropped, but a version
        that was seen never comes back with other contents. False if the condition does not hold;
        then nothing was changed.
        """
        ...

    def put_locks(self, records: Sequence[LockRecord]) -> bool:
        """Store all of the records (at most 98, of different nodes) or none of them.

        Each on the condition of `put_lock`; in one transaction.
        """
        ...

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        """Jobs in ``state`` not updated since ``before``, oldest first (eventually consistent).

        ``since`` leaves out those not updated since then: from there a listing is gone on with.
        """
        ...

    def forget(self, job_id: str, *, generation: int) -> bool:
        """Remove the record of a job in OPEN, conditional on state and generation.

        False if the condition does not hold; then nothing was changed.
        """
        ...
