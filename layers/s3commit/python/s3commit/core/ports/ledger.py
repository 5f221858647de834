"""The ledger that the protocol needs: the state of each job, its locks and its attempts.

`s3commit.aws` implements it on DynamoDB, the tests' fakes in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import UnchangedError
from s3commit.core.model.locks import Append, KeyHolder, Lock, Turn, nodes_above
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import (
    AttemptRecord,
    Healing,
    JobRecord,
    PlanFacts,
    ReplacedFacts,
    Waits,
)
from s3commit.core.model.states import ENDED, IllegalTransitionError, JobState, check_transition


class LostRaceError(UnchangedError):
    """A conditional write of the ledger lost; ``found`` is the record that beat it (None: none).

    The write changed nothing.
    """

    code = "LOST_RACE"

    def __init__(self, message: str, found: JobRecord | None) -> None:
        super().__init__(message)
        self.found = found


class HeldError(UnchangedError):
    """Another job holds a lock or the idempotency key that a write would take; nothing changed."""

    code = "HELD"


@dataclass(frozen=True, slots=True)
class Change:
    """A write of a job's record, of the fields that ``after`` has otherwise than ``before``.

    It is made if the record is still at the generation of ``before`` and, unless it ``is_forced``,
    in its state; with ``same_lists`` also if plan and replace list are the same, by their digests;
    and only while no job holds a lock of a node in ``unlocked``.
    """

    before: JobRecord
    after: JobRecord
    is_forced: bool = False
    same_lists: bool = False
    unlocked: Collection[str] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that change, by their names."""
        old, new = self.before, self.after
        values = ((one.name, getattr(new, one.name)) for one in fields(new))
        return {name: value for name, value in values if value != getattr(old, name)}

    def lost(self, found: JobRecord | None) -> LostRaceError:
        """The error of a change that found another state or generation, or no record."""
        before = self.before
        stands = f"{found.state} at generation {found.generation}" if found else "no record"
        return LostRaceError(
            f"job {before.ref}: expected {'any state' if self.is_forced else before.state} at"
            f" generation {before.generation}, found {stands}",
            found,
        )

    def made(self, found: JobRecord | None) -> JobRecord:
        """The record with the change. Raises `LostRaceError`, which says why it is not made."""
        before = self.before
        same_state = found is not None and (self.is_forced or found.state is before.state)
        if found is None or not same_state or found.generation != before.generation:
            raise self.lost(found)
        if self.same_lists and _lists(found) != _lists(before):
            raise LostRaceError(f"job {before.ref}: its plan or replace list has changed", found)
        return replace(found, **self.fields)


class Ledger(ABC):
    """The state of each job, its locks and its attempts; every write is conditional.

    A job is named by its ``ref`` (`s3commit.core.model.destination.job_ref`). Here is what each
    write of a job's record expects and changes; an implementation makes it, as one `update`. A
    write is given the record as it was read.
    """

    @abstractmethod
    def update(self, change: Change) -> JobRecord:
        """Change the record in one write, if it is as expected; return the new record.

        The items beside the record change with it, in the same transaction
        (`s3commit.core.model.locks.changed_items`). A record that gets a ``finished_at`` gets its
        time to live. Raises `LostRaceError`, `HeldError`.
        """

    @abstractmethod
    def job(self, ref: str) -> JobRecord | None:
        """The record, read consistently."""

    @abstractmethod
    def healing(self, bucket: str, *, now: str) -> Healing:
        """How far the table knows what was decided in the bucket; noted if this is the first look.

        Raises `NeedsOperatorError` (``LEDGER_RESTORED``) if that was noted in another table.
        """

    @abstractmethod
    def peek_healing(self) -> dict[str, Healing]:
        """The notes of `healing`, by bucket. It reads alone, and raises as `healing`."""

    @abstractmethod
    def note_healing(self, bucket: str, healing: Healing) -> None:
        """Note how far it has got.

        Nothing is noted once it is whole, or in another table than that of ``healing``: what a call
        has walked for a lost table says nothing of this one.
        """

    @abstractmethod
    def jobs_with_id(self, job_id: str) -> list[JobRecord]:
        """The records of all jobs with the id, one for each destination; read consistently."""

    @abstractmethod
    def open_job(self, record: JobRecord) -> JobRecord:
        """Create the record if there is none; return the existing one.

        A record that is decided or has ended takes the place of one in OPEN, which was made without
        knowing of it, and brings along the items beside it.
        """

    def take_over(self, record: JobRecord, *, execution: str, now: str) -> JobRecord:
        """Raise the generation by one, for an execution that takes the job over.

        Conditional on the generation alone. Raises `LostRaceError`.
        """
        generation = record.generation + 1
        after = replace(record, generation=generation, execution=execution, updated_at=now)
        return self.update(Change(record, after, is_forced=True))

    def advance(
        self,
        record: JobRecord,
        target: JobState,
        *,
        now: str,
        failure: Failure | None = None,
        requested_at: str = "",
        requested_by: str = "",
        execution: str | None = None,
    ) -> JobRecord:
        """One transition of the table, conditional on state and generation.

        ``failure``, ``requested_at`` and ``requested_by`` are stored if given. An ``execution``
        takes the job over by the same write, as by `take_over`. A transition into an ended state
        stores ``now`` as ``finished_at`` and sets the record's time to live. Raises
        `LostRaceError`, `IllegalTransitionError`. Entering COMMITTING is `decide`'s alone.
        """
        check_transition(record.state, target)
        if target is JobState.COMMITTING:
            raise IllegalTransitionError("a job enters COMMITTING by decide() alone")
        after = replace(
            record,
            state=target,
            updated_at=now,
            finished_at=now if target in ENDED else record.finished_at,
            failure=failure or record.failure,
            requested_at=requested_at or record.requested_at,
            requested_by=requested_by or record.requested_by,
        )
        if execution is not None:
            after = replace(after, execution=execution, generation=record.generation + 1)
        return self.update(Change(record, after))

    def decide(self, record: JobRecord, *, now: str, plan: PlanFacts | None = None) -> JobRecord:
        """SEALED→COMMITTING, the decision: one transaction, which takes the idempotency key too.

        Conditional on state, generation, and the digests of plan and replace list. A ``plan`` is
        noted by the same write, of a job that replaces nothing. Locks need no condition: a job that
        is SEALED still has those that it had. Raises `LostRaceError`, and `HeldError` if another
        job has the key.
        """
        before = _sealed(record, plan)
        after = replace(before, state=JobState.COMMITTING, decided_at=now, updated_at=now)
        after = replace(after, plan=plan or record.planned, waits=None)
        return self.update(Change(before, after, same_lists=plan is None))

    def note(
        self,
        record: JobRecord,
        *,
        now: str,
        plan: PlanFacts | None = None,
        replaced: ReplacedFacts | None = None,
        waits: Waits | None = None,
    ) -> JobRecord:
        """Store what was found out about a SEALED job; None leaves a fact as it is.

        Conditional on state and generation. Raises `LostRaceError`.
        """
        before = _sealed(record, plan)
        after = replace(before, plan=plan or record.plan, waits=waits or record.waits)
        after = replace(after, replaced=replaced or record.replaced, updated_at=now)
        return self.update(Change(before, after))

    def lock(self, record: JobRecord, nodes: tuple[str, ...], *, now: str) -> JobRecord:
        """Lock all the nodes for a SEALED job, or none.

        Conditional on state and generation, and on no other job having locked one of the nodes or
        a node above. Raises `LostRaceError`, `HeldError`.
        """
        before = _sealed(record)
        after = replace(before, locks=nodes, locked_at=now, updated_at=now)
        return self.update(Change(before, after, unlocked=nodes_above(nodes)))

    def give_up(
        self, record: JobRecord, target: JobState, failure: Failure, *, now: str
    ) -> JobRecord:
        """A decided job whose lists are lost is to be undone, or published without them.

        Conditional on state and generation. Raises `LostRaceError`.
        """
        after = replace(record, state=target, failure=failure, updated_at=now)
        return self.update(Change(record, after))

    def release(self, record: JobRecord) -> JobRecord:
        """Give back the locks of a job in ROLLING_BACK. Raises `LostRaceError`."""
        before = replace(record, state=JobState.ROLLING_BACK)
        return self.update(Change(before, replace(before, locks=())))

    @abstractmethod
    def locks(self, nodes: Collection[str]) -> list[Lock]:
        """The locks of these nodes, read consistently."""

    @abstractmethod
    def locks_below(self, node: str) -> Iterator[Lock]:
        """The locks of the nodes below; each that was there before the call is among them."""

    @abstractmethod
    def unlock(self, lock: Lock) -> None:
        """Remove a lock of a job that can't be decided any more, if the job still has it."""

    @abstractmethod
    def key_holder(self, destination: Destination, digest: str) -> KeyHolder | None:
        """The job that has the idempotency key at the destination, decided or committed."""

    @abstractmethod
    def free_key(self, destination: Destination, digest: str, job_id: str) -> None:
        """Free an idempotency key of a job that is undone, if the job still has it."""

    @abstractmethod
    def appends(self, node: str, *, below: bool) -> Iterator[Append]:
        """The jobs that append to the node or, with ``below``, to one below it too.

        Read consistently: first all that are under way, then those that have ended less than
        `APPEND_SECONDS` ago, or a little longer. One that ends in between is there twice.
        """

    @abstractmethod
    def turns_asked(self, node: str, *, before: str) -> Iterator[Turn]:
        """The turns that were requested before then, of jobs that are not decided, in their order.

        Of all jobs that may meet the node, and of others; read consistently.
        """

    @abstractmethod
    def turns_done(self, node: str, *, since: str) -> Iterator[Turn]:
        """The same, of the committed jobs that were requested since then, `FORGOTTEN_DAYS` ago."""

    @abstractmethod
    def record_attempt(self, attempt: AttemptRecord) -> None:
        """Note an arrived manifest; an attempt that was noted before keeps its first note."""

    @abstractmethod
    def attempts(self, ref: str) -> Iterator[AttemptRecord]:
        """Every noted attempt of the job, in no order."""

    @abstractmethod
    def jobs_in(
        self, state: JobState, *, before: str, since: str = "", latest_first: bool = False
    ) -> Iterator[JobRecord]:
        """Jobs in ``state`` not updated since ``before`` (eventually consistent).

        The oldest come first, or the latest. ``since`` leaves out those not updated since then:
        from there a listing continues.
        """

    @abstractmethod
    def all_jobs(self, *, most: int) -> list[JobRecord] | None:
        """The jobs of all states that `jobs_in` lists, in no order, by one request.

        None if there are, or may be, more than ``most``, or than the request can return.
        """

    @abstractmethod
    def count_in(self, state: JobState, *, since: str, most: int) -> int:
        """How many jobs are in ``state``, updated since then (eventually consistent).

        It stops to count at ``most``, and may return somewhat more.
        """

    @abstractmethod
    def unlist(self, ref: str) -> None:
        """Remove the record of a job from `jobs_in`; `job` still finds it."""


def _lists(record: JobRecord) -> list[str | None]:
    """The digests of the plan and of the replace list; None where there is none."""
    return [one.sha256 if one else None for one in (record.plan, record.replaced)]


def _sealed(record: JobRecord, plan: PlanFacts | None = None) -> JobRecord:
    """The record of a SEALED job, without the plan if the ledger is to get one."""
    return replace(record, state=JobState.SEALED, plan=None if plan else record.plan)
