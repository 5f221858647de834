"""A ledger in memory with the conditions of the real one."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from s3commit.core.ledger import LostRaceError
from s3commit.core.locks import LockRecord
from s3commit.core.model import AttemptRecord, Failure, JobRecord, PlanFacts, ReplacedFacts
from s3commit.core.states import ENDED, IllegalTransitionError, JobState, check_transition


class MemoryLedger:
    """Implements `s3commit.core.ports.Ledger`; linearizable and thread-safe."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobRecord] = {}
        self._attempts: dict[str, dict[tuple[str, str, str], AttemptRecord]] = {}
        self._locks: dict[str, LockRecord] = {}
        self._units: set[tuple[str, int]] = set()
        self._lock = threading.RLock()

    def job(self, job_id: str) -> JobRecord | None:
        """See `Ledger.job`."""
        with self._lock:
            return self._jobs.get(job_id)

    def open_job(self, record: JobRecord) -> JobRecord:
        """See `Ledger.open_job`."""
        with self._lock:
            return self._jobs.setdefault(record.job_id, record)

    def take_over(self, job_id: str, *, generation: int, execution: str, now: str) -> JobRecord:
        """See `Ledger.take_over`."""
        with self._lock:
            record = self._expect(job_id, None, generation)
            return self._store(
                replace(record, generation=generation + 1, execution=execution, updated_at=now)
            )

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
        """See `Ledger.advance`."""
        check_transition(source, target)
        if target is JobState.COMMITTING:
            raise IllegalTransitionError("a job enters COMMITTING by decide() alone")
        with self._lock:
            record = self._expect(job_id, source, generation)
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
        job_id: str,
        *,
        generation: int,
        plan: PlanFacts,
        replaced: ReplacedFacts | None,
        locks: Sequence[str],
        now: str,
    ) -> JobRecord:
        """See `Ledger.decide`."""
        with self._lock:
            record = self._expect(job_id, JobState.SEALED, generation)
            if record.plan is None or record.plan.sha256 != plan.sha256:
                raise LostRaceError(f"job {job_id}: its plan is another one by now", record)
            if (record.replaced and record.replaced.sha256) != (replaced and replaced.sha256):
                raise LostRaceError(f"job {job_id}: its replace list is another by now", record)
            for node in locks:
                if job_id not in self.lock(node).holders:
                    raise LostRaceError(f"job {job_id} does not hold the lock {node}", record)
            return self._store(
                replace(record, state=JobState.COMMITTING, decided_at=now, updated_at=now)
            )

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
        """See `Ledger.note`."""
        with self._lock:
            record = self._expect(job_id, JobState.SEALED, generation)
            return self._store(
                replace(
                    record,
                    updated_at=now,
                    plan=plan or record.plan,
                    locks=record.locks if locks is None else tuple(locks),
                    replaced=replaced or record.replaced,
                )
            )

    def begin_unit(self, job_id: str, unit: int) -> bool:
        """See `Ledger.begin_unit`."""
        with self._lock:
            first = (job_id, unit) not in self._units
            self._units.add((job_id, unit))
            return first

    def record_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """See `Ledger.record_attempts`."""
        with self._lock:
            for attempt in attempts:
                noted = self._attempts.setdefault(attempt.job_id, {})
                noted.setdefault((attempt.task_id, attempt.attempt_id, attempt.location), attempt)

    def attempts(self, job_id: str) -> Iterator[AttemptRecord]:
        """See `Ledger.attempts`."""
        with self._lock:
            return iter(list(self._attempts.get(job_id, {}).values()))

    def lock(self, node: str) -> LockRecord:
        """See `Ledger.lock`."""
        with self._lock:
            return self._locks.get(node, LockRecord(node))

    def put_lock(self, record: LockRecord) -> bool:
        """See `Ledger.put_lock`."""
        return self.put_locks([record])

    def put_locks(self, records: Sequence[LockRecord]) -> bool:
        """See `Ledger.put_locks`."""
        with self._lock:
            if any(self.lock(record.node).version != record.version for record in records):
                return False
            for record in records:
                self._locks[record.node] = replace(record, version=record.version + 1)
            return True

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        """See `Ledger.jobs_in`."""
        with self._lock:
            found = [
                record
                for record in self._jobs.values()
                if record.state is state and since <= record.updated_at < before
            ]
        return iter(sorted(found, key=lambda record: record.updated_at))

    def forget(self, job_id: str, *, generation: int) -> bool:
        """See `Ledger.forget`."""
        with self._lock:
            record = self._jobs.get(job_id)
            if record is None or (record.state, record.generation) != (JobState.OPEN, generation):
                return False
            del self._jobs[job_id]
            return True

    def _expect(self, job_id: str, state: JobState | None, generation: int) -> JobRecord:
        record = self._jobs.get(job_id)
        same_state = record is not None and state in {None, record.state}
        if record is None or not same_state or record.generation != generation:
            raise LostRaceError.over(job_id, state, generation, record)
        return record

    def _store(self, record: JobRecord) -> JobRecord:
        self._jobs[record.job_id] = record
        return record
