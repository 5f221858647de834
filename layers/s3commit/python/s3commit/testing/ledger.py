"""A ledger in memory with the conditions of the real one."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from s3commit.core.model.job import Failure
from s3commit.core.model.locks import Claim, Claimed
from s3commit.core.model.record import (
    AttemptRecord,
    JobRecord,
    PlanFacts,
    ReplacedFacts,
    Stage,
    Turn,
)
from s3commit.core.model.states import ENDED, IllegalTransitionError, JobState, check_transition
from s3commit.core.ports.ledger import LostRaceError, SweepNote
from s3commit.testing.item_limits import (
    attempt_item,
    check_item,
    claim_item,
    job_item,
)


class MemoryLedger:
    """Implements `s3commit.core.ports.objects.Ledger`; linearizable and thread-safe.

    What DynamoDB would refuse by its size is refused: `s3commit.testing.item_limits`.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, JobRecord] = {}
        self._attempts: dict[str, dict[tuple[str, str, str], AttemptRecord]] = {}
        self._claims: dict[tuple[str, Claim], Claimed] = {}
        self._units: set[tuple[str, int, str]] = set()  # with the plan: ended; without: begun
        self._sweep_note = SweepNote()
        self._lock = threading.RLock()

    def job(self, ref: str) -> JobRecord | None:
        """See `Ledger.job`."""
        with self._lock:
            return self._jobs.get(ref)

    def jobs_with_id(self, job_id: str) -> list[JobRecord]:
        """See `Ledger.jobs_with_id`."""
        with self._lock:
            return [record for record in self._jobs.values() if record.job_id == job_id]

    def open_job(self, record: JobRecord) -> JobRecord:
        """See `Ledger.open_job`."""
        check_item(job_item(record))
        with self._lock:
            return self._jobs.setdefault(record.ref, record)

    def take_over(self, ref: str, *, generation: int, execution: str, now: str) -> JobRecord:
        """See `Ledger.take_over`."""
        with self._lock:
            record = self._expect(ref, None, generation)
            return self._store(
                replace(record, generation=generation + 1, execution=execution, updated_at=now)
            )

    def advance(
        self,
        ref: str,
        *,
        source: JobState,
        target: JobState,
        generation: int,
        now: str,
        plan: PlanFacts | None = None,
        failure: Failure | None = None,
    ) -> JobRecord:
        """See `Ledger.advance`."""
        check_transition(source, target)
        if target is JobState.COMMITTING:
            raise IllegalTransitionError("a job enters COMMITTING by decide() alone")
        with self._lock:
            record = self._expect(ref, source, generation)
            return self._store(
                replace(
                    record,
                    state=target,
                    updated_at=now,
                    plan=plan or record.plan,
                    failure=failure or record.failure,
                    finished_at=now if target in ENDED else record.finished_at,
                )
            )

    def decide(
        self,
        ref: str,
        *,
        generation: int,
        plan: PlanFacts,
        replaced: ReplacedFacts | None,
        epoch: int,
        now: str,
    ) -> JobRecord:
        """See `Ledger.decide`."""
        with self._lock:
            record = self._expect(ref, JobState.SEALED, generation)
            if record.plan is None or record.plan.sha256 != plan.sha256:
                raise LostRaceError(f"job {ref}: its plan is another one by now", record)
            if (record.replaced and record.replaced.sha256) != (replaced and replaced.sha256):
                raise LostRaceError(f"job {ref}: its replace list is another by now", record)
            if (record.turn.stage, record.turn.epoch) != (Stage.HELD, epoch):
                raise LostRaceError(f"job {ref} does not hold what it claims", record)
            after = replace(record, state=JobState.COMMITTING, decided_at=now, updated_at=now)
            return self._store(after)

    def note(
        self,
        ref: str,
        *,
        generation: int,
        now: str,
        plan: PlanFacts | None = None,
        replaced: ReplacedFacts | None = None,
    ) -> JobRecord:
        """See `Ledger.note`."""
        with self._lock:
            record = self._expect(ref, JobState.SEALED, generation)
            return self._store(
                replace(
                    record,
                    updated_at=now,
                    plan=plan or record.plan,
                    replaced=replaced or record.replaced,
                )
            )

    def take_turn(
        self,
        ref: str,
        *,
        generation: int,
        before: Turn,
        after: Turn,
        now: str,
        locks: Sequence[str] | None = None,
    ) -> JobRecord:
        """See `Ledger.take_turn`."""
        with self._lock:
            record = self._expect(ref, JobState.SEALED, generation)
            stands = record.turn
            if (stands.stage, stands.epoch) != (before.stage, before.epoch):
                raise LostRaceError(f"job {ref}: its turn is {stands.stage} by now", record)
            nodes = record.locks if locks is None else tuple(locks)
            return self._store(replace(record, turn=after, locks=nodes, updated_at=now))

    def begin_unit(self, ref: str, unit: int) -> bool:
        """See `Ledger.begin_unit`."""
        with self._lock:
            first = (ref, unit, "") not in self._units
            self._units.add((ref, unit, ""))
            return first

    def end_unit(self, ref: str, unit: int, plan: str) -> None:
        """See `Ledger.end_unit`."""
        with self._lock:
            self._units |= {(ref, unit, ""), (ref, unit, plan)}

    def unit_ended(self, ref: str, unit: int, plan: str) -> bool:
        """See `Ledger.unit_ended`."""
        with self._lock:
            return (ref, unit, plan) in self._units

    def record_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """See `Ledger.record_attempts`."""
        attempts = list(attempts)
        for attempt in attempts:
            check_item(attempt_item(attempt))
        with self._lock:
            for attempt in attempts:
                noted = self._attempts.setdefault(attempt.ref, {})
                noted.setdefault((attempt.task_id, attempt.attempt_id, attempt.location), attempt)

    def attempts(self, ref: str) -> Iterator[AttemptRecord]:
        """See `Ledger.attempts`."""
        with self._lock:
            return iter(list(self._attempts.get(ref, {}).values()))

    def put_claim(self, claim: Claimed) -> None:
        """See `Ledger.put_claim`."""
        check_item(claim_item(claim))
        with self._lock:
            stands = self._claims.get((claim.ref, claim.claim))
            is_its_own = stands is not None and stands.epoch == claim.epoch
            is_none_of_a_later_epoch = stands is None or stands.epoch <= claim.epoch
            if is_its_own if claim.waits else is_none_of_a_later_epoch:
                self._claims[claim.ref, claim.claim] = claim

    def drop_claim(self, ref: str, claim: Claim) -> None:
        """See `Ledger.drop_claim`."""
        with self._lock:
            self._claims.pop((ref, claim), None)

    def claims(self, claim: Claim, *, below: bool, asked: str = "") -> Iterator[Claimed]:
        """See `Ledger.claims`."""
        with self._lock:
            found = [
                one
                for one in self._claims.values()
                if one.claim.mode is claim.mode
                and (one.claim.node == claim.node or below)
                and one.claim.node.startswith(claim.node)
                and not (asked and one.waits and one.asked > asked)
            ]
        return iter(sorted(found))

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        """See `Ledger.jobs_in`."""
        with self._lock:
            found = [
                record
                for record in self._jobs.values()
                if record.state is state and since <= record.updated_at < before
            ]
        return iter(sorted(found, key=lambda record: record.updated_at))

    def sweep_note(self) -> SweepNote:
        """See `Ledger.sweep_note`."""
        with self._lock:
            return self._sweep_note

    def put_sweep_note(self, note: SweepNote) -> bool:
        """See `Ledger.put_sweep_note`."""
        with self._lock:
            if self._sweep_note.version != note.version:
                return False
            self._sweep_note = replace(note, version=note.version + 1)
            return True

    def forget(self, ref: str, *, generation: int) -> bool:
        """See `Ledger.forget`."""
        with self._lock:
            record = self._jobs.get(ref)
            if record is None or (record.state, record.generation) != (JobState.OPEN, generation):
                return False
            del self._jobs[ref]
            return True

    def _expect(self, ref: str, state: JobState | None, generation: int) -> JobRecord:
        record = self._jobs.get(ref)
        same_state = record is not None and state in {None, record.state}
        if record is None or not same_state or record.generation != generation:
            raise LostRaceError.over(ref, state, generation, record)
        return record

    def _store(self, record: JobRecord) -> JobRecord:
        check_item(job_item(record))
        self._jobs[record.ref] = record
        return record
