"""A ledger in memory with the conditions of the real one."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from s3commit.core.model.locks import Claim, Claimed
from s3commit.core.model.record import AttemptRecord, JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Expected, Ledger
from tests.fakes.item_limits import (
    attempt_item,
    check_item,
    claim_item,
    job_item,
)


class MemoryLedger(Ledger):
    """Implements `s3commit.core.ports.objects.Ledger`; linearizable and thread-safe.

    What DynamoDB would refuse by its size is refused: `tests.fakes.item_limits`.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, JobRecord] = {}
        self._attempts: dict[str, dict[tuple[str, str], AttemptRecord]] = {}
        self._claims: dict[tuple[str, Claim], Claimed] = {}
        self._unlisted: set[str] = set()
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
            if record.ref not in self._jobs:
                self._unlisted.discard(record.ref)
            return self._jobs.setdefault(record.ref, record)

    def update(self, ref: str, expected: Expected, changes: Mapping[str, Any]) -> JobRecord:
        """See `Ledger.update`."""
        with self._lock:
            record = replace(expected.check(ref, self._jobs.get(ref)), **changes)
            check_item(job_item(record))
            self._jobs[ref] = record
            return record

    def record_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """See `Ledger.record_attempts`."""
        attempts = list(attempts)
        for attempt in attempts:
            check_item(attempt_item(attempt))
        with self._lock:
            for attempt in attempts:
                noted = self._attempts.setdefault(attempt.ref, {})
                noted.setdefault((attempt.task_id, attempt.attempt_id), attempt)

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
                if record.state is state
                and since <= record.updated_at < before
                and record.ref not in self._unlisted
            ]
        return iter(sorted(found, key=lambda record: record.updated_at))

    def unlist(self, ref: str) -> None:
        """See `Ledger.unlist`."""
        with self._lock:
            self._unlisted.add(ref)

    def forget(self, ref: str, *, generation: int) -> bool:
        """See `Ledger.forget`."""
        with self._lock:
            record = self._jobs.get(ref)
            if record is None or (record.state, record.generation) != (JobState.OPEN, generation):
                return False
            del self._jobs[ref]
            return True
