"""The ledger that the protocol needs: the state of each job, its locks and its attempts.

`s3commit.aws` implements it on DynamoDB, the tests' fakes in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
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
class Expected:
    """The condition of a write of a job's record; None: any value.

    ``plan`` and ``replaced`` are meant by their digests; both of them if there is a plan.
    """

    generation: int
    state: JobState | None = None
    plan: PlanFacts | None = None
    replaced: ReplacedFacts | None = None

    def lost(self, ref: str, found: JobRecord | None) -> LostRaceError:
        """The error of a write that expected this and found another state, or no record."""
        stands = f"{found.state} at generation {found.generation}" if found else "no record"
        return LostRaceError(
            f"job {ref}: expected {self.state or 'any state'} at generation {self.generation},"
            f" found {stands}",
            found,
        )

    def check(self, ref: str, found: JobRecord | None) -> JobRecord:
        """The record, if it is as expected. Raises `LostRaceError` that says what is not."""
        same_state = found is not None and self.state in {None, found.state}
        if found is None or not same_state or found.generation != self.generation:
            raise self.lost(ref, found)
        if self.plan is not None:
            if found.plan is None or found.plan.sha256 != self.plan.sha256:
                raise LostRaceError(f"job {ref}: its plan has changed", found)
            stands = found.replaced and found.replaced.sha256
            if stands != (self.replaced and self.replaced.sha256):
                raise LostRaceError(f"job {ref}: its replace list has changed", found)
        return found


class Ledger(ABC):
    """The state of each job, its locks and its attempts; every write is conditional.

    A job is named by its ``ref`` (`s3commit.core.model.destination.job_ref`). Here is what each
    write of a job's record expects and changes; an implementation makes it, as one `update`. A
    write is given the record as it was read.
    """

    @abstractmethod
    def update(
        self,
        ref: str,
        expected: Expected,
        changes: Mapping[str, Any],
        *,
        unlocked: Collection[str] = (),
    ) -> JobRecord:
        """Change fields of the record in one write, if it is as expected; return the new record.

        The items beside the record change with it, in the same transaction
        (`s3commit.core.model.locks.changed_items`); no job may hold a lock of a node in
        ``unlocked``. A record that gets a ``finished_at`` gets its time to live. Raises
        `LostRaceError`, `HeldError`.
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
        changes = {"generation": record.generation + 1, "execution": execution, "updated_at": now}
        return self.update(record.ref, Expected(record.generation), changes)

    def advance(
        self,
        record: JobRecord,
        target: JobState,
        *,
        now: str,
        failure: Failure | None = None,
        requested_at: str | None = None,
        execution: str | None = None,
    ) -> JobRecord:
        """One transition of the table, conditional on state and generation.

        ``failure`` and ``requested_at`` are stored if given. An ``execution`` takes the job over by
        the same write, as by `take_over`. A transition into an ended state
        stores ``now`` as ``finished_at`` and sets the record's time to live. Raises
        `LostRaceError`, `IllegalTransitionError`. Entering COMMITTING is `decide`'s alone.
        """
        check_transition(record.state, target)
        if target is JobState.COMMITTING:
            raise IllegalTransitionError("a job enters COMMITTING by decide() alone")
        ended = now if target in ENDED else None
        found = given(failure=failure, requested_at=requested_at, finished_at=ended)
        if execution is not None:
            found |= {"execution": execution, "generation": record.generation + 1}
        changes = {"state": target, **found, "updated_at": now}
        return self.update(record.ref, Expected(record.generation, record.state), changes)

    def decide(self, record: JobRecord, *, now: str, plan: PlanFacts | None = None) -> JobRecord:
        """SEALED→COMMITTING, the decision: one transaction, which takes the idempotency key too.

        Conditional on state, generation, and the digests of plan and replace list. A ``plan`` is
        noted by the same write, of a job that replaces nothing. Locks need no condition: a job that
        is SEALED still has those that it had. Raises `LostRaceError`, and `HeldError` if another
        job has the key.
        """
        expected = Expected(record.generation, JobState.SEALED)
        if plan is None:
            expected = replace(expected, plan=record.planned, replaced=record.replaced)
        changes = {"state": JobState.COMMITTING, "decided_at": now, "updated_at": now}
        return self.update(record.ref, expected, {**changes, **given(plan=plan), "waits": None})

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
        changes = {**given(plan=plan, replaced=replaced, waits=waits), "updated_at": now}
        return self.update(record.ref, Expected(record.generation, JobState.SEALED), changes)

    def lock(self, record: JobRecord, nodes: tuple[str, ...], *, now: str) -> JobRecord:
        """Lock all the nodes for a SEALED job, or none.

        Conditional on state and generation, and on no other job having locked one of the nodes or
        a node above. Raises `LostRaceError`, `HeldError`.
        """
        changes = {"locks": nodes, "locked_at": now, "updated_at": now}
        expected = Expected(record.generation, JobState.SEALED)
        return self.update(record.ref, expected, changes, unlocked=nodes_above(nodes))

    def give_up(
        self, record: JobRecord, target: JobState, failure: Failure, *, now: str
    ) -> JobRecord:
        """A decided job whose lists are lost is to be undone, or published without them.

        Conditional on state and generation. Raises `LostRaceError`.
        """
        changes = {"state": target, "failure": failure, "updated_at": now}
        return self.update(record.ref, Expected(record.generation, record.state), changes)

    def release(self, record: JobRecord) -> JobRecord:
        """Give back the locks of a job in ROLLING_BACK. Raises `LostRaceError`."""
        expected = Expected(record.generation, JobState.ROLLING_BACK)
        return self.update(record.ref, expected, {"locks": ()})

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
    def count_in(self, state: JobState, *, since: str, most: int) -> int:
        """How many jobs are in ``state``, updated since then (eventually consistent).

        It stops to count at ``most``, and may return somewhat more.
        """

    @abstractmethod
    def unlist(self, ref: str) -> None:
        """Remove the record of a job from `jobs_in`; `job` still finds it."""


def given(**fields: Any) -> dict[str, Any]:
    """Those of the fields that are not None: the others stay as they are."""
    return {name: value for name, value in fields.items() if value is not None}
