"""A ledger in memory with the conditions of the real one."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from s3commit.core.model.locks import Claim, Claimed
from s3commit.core.model.record import AttemptRecord, Healing, JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Expected, Ledger
from tests.fakes.item_limits import (
    attempt_item,
    check_item,
    claim_item,
    job_item,
)

OPEN = JobState.OPEN


class MemoryLedger(Ledger):
    """Implements `s3commit.core.ports.objects.Ledger`; linearizable and thread-safe.

    What DynamoDB would refuse by its size is refused: `tests.fakes.item_limits`.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, JobRecord] = {}
        self._attempts: dict[str, dict[tuple[str, str], AttemptRecord]] = {}
        self._claims: dict[tuple[str, Claim], Claimed] = {}
        self._unlisted: set[str] = set()
        self._healing: dict[str, Healing] = {}
        self._tables = count(1)
        self._table = f"table-{next(self._tables)}"
        self._lock = threading.RLock()

    def lose(self) -> None:
        """An empty table in its place, under everybody who uses it."""
        with self._lock:
            kept: list[Any] = [
                *(self._jobs, self._attempts, self._claims, self._healing, self._unlisted)
            ]
            for one in kept:
                one.clear()
            self._table = f"table-{next(self._tables)}"

    def restore(self, earlier: MemoryLedger) -> None:
        """What the table had earlier, in a new one, under everybody who uses it."""
        with self._lock:
            self.lose()
            self._jobs.update(earlier._jobs)
            self._claims.update(earlier._claims)
            self._healing.update(earlier._healing)

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
            standing = self._jobs.get(record.ref)
            if standing is None or (record.state is not OPEN and standing.state is OPEN):
                self._unlisted.discard(record.ref)
                self._jobs[record.ref] = record
            return self._jobs[record.ref]

    def healing(self, bucket: str, *, now: str) -> Healing:
        """See `Ledger.healing`."""
        with self._lock:
            return self._healing.setdefault(bucket, Healing(self._table, now)).of(self._table)

    def note_healing(self, bucket: str, healing: Healing) -> None:
        """See `Ledger.note_healing`."""
        with self._lock:
            stands = self._healing.get(bucket)
            if stands is not None and stands.table == healing.table and not stands.whole:
                self._healing[bucket] = healing

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
