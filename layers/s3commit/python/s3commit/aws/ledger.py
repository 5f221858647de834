"""The ledger on DynamoDB.

Each transition is one conditional write; each part of its condition is a variable whose name says
when it is true. The loser reads, consistently, the record that beat it.

A request whose answer is lost is repeated by botocore, and then meets its own first write. So each
write leaves a ``token`` of its own in the item: a loser that finds its token has won.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pynamodb.exceptions import TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.transactions import TransactWrite

from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger_items import (
    SHARDS,
    AttemptItem,
    JobItem,
    LockItem,
    UnitItem,
    attempt_key,
    bind,
    job_key,
    lock_key,
    shard_key,
    translated,
    unit_key,
)
from s3commit.aws.ledger_records import (
    attempt_item,
    attempt_record,
    failure_map,
    job_item,
    job_record,
    plan_map,
)
from s3commit.aws.locks import DynamoLocks
from s3commit.core.errors import PreconditionError
from s3commit.core.model import AttemptRecord, Failure, JobRecord, PlanFacts
from s3commit.core.ports import Clock, LostRaceError
from s3commit.core.states import ENDED, IllegalTransitionError, JobState, check_transition

JOB_DAYS = 30  # how long an ended job stays in the ledger, unless the deployment says else
NOTE_DAYS = 30  # how long the note of an attempt or a unit does, which S3 can always replace
TRANSACTION = 100  # items: DynamoDB's limit


class DynamoLedger(DynamoLocks):
    """Implements `s3commit.core.ports.Ledger` on one table; thread-safe.

    ``region`` and ``host`` (an endpoint's URL) None mean the standard AWS configuration. ``clock``
    is read for the time to live of notes alone; an ended job lives for ``job_days``.
    """

    def __init__(
        self,
        table: str,
        *,
        region: str | None = None,
        host: str | None = None,
        clock: Clock | None = None,
        page: int | None = None,
        job_days: int = JOB_DAYS,
    ) -> None:
        super().__init__(bind(table, region=region, host=host))
        self._job_days = job_days
        self._clock = clock or SystemClock()
        self._page = page

    def job(self, job_id: str) -> JobRecord | None:
        """See `Ledger.job`."""
        item = self._job_item(job_id)
        return job_record(item) if item else None

    def open_job(self, record: JobRecord) -> JobRecord:
        """See `Ledger.open_job`."""
        nobody_was_here = JobItem.pk.does_not_exist()
        item = job_item(self._items.job, record, _token())
        if record.state in ENDED:  # forgotten here and remembered in S3: to be forgotten again
            item.expires_at = _days_after(self._clock.now(), self._job_days)
        try:
            with translated(f"opening job {record.job_id} in the ledger"):
                item.save(nobody_was_here)
        except PreconditionError:
            standing = self.job(record.job_id)
            if standing is None:  # it was there a moment ago, and nothing but TTL deletes
                raise
            return standing
        return record

    def take_over(self, job_id: str, *, generation: int, execution: str, now: str) -> JobRecord:
        """See `Ledger.take_over`."""
        nobody_took_over_since = JobItem.generation == generation
        actions = [JobItem.generation.set(generation + 1), JobItem.execution.set(execution)]
        return self._update(
            job_id, None, generation, condition=nobody_took_over_since, actions=actions, now=now
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
        still_in_source = JobItem.state == source.value
        nobody_took_over_since = JobItem.generation == generation
        actions: list[Action] = [JobItem.state.set(target.value)]
        if plan is not None:
            actions.append(JobItem.plan.set(plan_map(plan)))
        if failure is not None:
            actions.append(JobItem.failure.set(failure_map(failure)))
        if target in ENDED:
            actions.append(JobItem.finished_at.set(now))
            actions.append(JobItem.expires_at.set(_days_after(now, self._job_days)))
        condition = still_in_source & nobody_took_over_since
        return self._update(
            job_id, source, generation, condition=condition, actions=actions, now=now
        )

    def decide(
        self, job_id: str, *, generation: int, plan: PlanFacts, lock_node: str, now: str
    ) -> JobRecord:
        """See `Ledger.decide`."""
        # Read first: what a transaction leaves is not returned, but follows from what it met.
        before = self.job(job_id)
        if before is None or (before.state, before.generation) != (JobState.SEALED, generation):
            raise LostRaceError.over(job_id, JobState.SEALED, generation, before)
        token = _token()
        still_sealed = JobItem.state == JobState.SEALED.value
        nobody_took_over_since = JobItem.generation == generation
        plan_is_the_verified_one = JobItem.plan.sha256 == plan.sha256
        lock_is_still_held = LockItem.holders.contains(job_id)
        actions: list[Action] = [
            JobItem.state.set(JobState.COMMITTING.value),
            JobItem.decided_at.set(now),
            JobItem.updated_at.set(now),
            JobItem.token.set(token),
        ]
        try:
            with translated(f"deciding job {job_id}"), self._transaction(token) as transaction:
                transaction.condition_check(
                    self._items.lock, *lock_key(lock_node), condition=lock_is_still_held
                )
                transaction.update(
                    self._items.job(*job_key(job_id)),
                    actions,
                    still_sealed & nobody_took_over_since & plan_is_the_verified_one,
                )
        except PreconditionError as error:
            found = self._job_item(job_id)
            if found is None or found.token != token:
                raise _lost_decision(job_id, generation, plan, lock_node, found) from error
        return replace(before, state=JobState.COMMITTING, decided_at=now, updated_at=now)

    def note_plan(self, job_id: str, *, generation: int, plan: PlanFacts, now: str) -> JobRecord:
        """See `Ledger.note_plan`."""
        still_sealed = JobItem.state == JobState.SEALED.value
        nobody_took_over_since = JobItem.generation == generation
        condition = still_sealed & nobody_took_over_since
        actions = [JobItem.plan.set(plan_map(plan))]
        return self._update(
            job_id, JobState.SEALED, generation, condition=condition, actions=actions, now=now
        )

    def begin_unit(self, job_id: str, unit: int) -> bool:
        """See `Ledger.begin_unit`."""
        nobody_began_it = UnitItem.pk.does_not_exist()
        expires_at = _days_after(self._clock.now(), NOTE_DAYS)
        item = self._items.unit(*unit_key(job_id, unit), expires_at=expires_at)
        try:
            with translated(f"beginning unit {unit} of job {job_id}"):
                item.save(nobody_began_it)
        except PreconditionError:
            return False  # or our own, with the answer lost: then the worker looks in vain
        return True

    def record_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """See `Ledger.record_attempts`.

        One transaction for up to 100 attempts: twice the write units of single puts, and one
        request for a whole batch of events, where single puts would take a thread each. A batch
        with repeated attempts is cancelled as a whole, names them, and is sent again without.
        """
        first_notes: dict[tuple[str, str], AttemptRecord] = {}
        for attempt in attempts:
            first_notes.setdefault(attempt_key(attempt), attempt)
        waiting = list(first_notes.values())
        while waiting:
            group, waiting = waiting[:TRANSACTION], waiting[TRANSACTION:]
            while group:
                group = self._note_together(group)

    def attempts(self, job_id: str) -> Iterator[AttemptRecord]:
        """See `Ledger.attempts`."""
        with translated(f"reading the attempts of job {job_id}"):
            for shard in range(SHARDS):
                for item in self._items.attempt.query(
                    shard_key(job_id, shard), consistent_read=True, page_size=self._page
                ):
                    yield attempt_record(item)

    def jobs_in(self, state: JobState, *, before: str) -> Iterator[JobRecord]:
        """See `Ledger.jobs_in`."""
        not_updated_since = JobItem.updated_at < before
        with translated(f"listing the jobs in {state}"):
            for item in self._items.job.by_state.query(
                state.value, not_updated_since, scan_index_forward=True, page_size=self._page
            ):
                yield job_record(item)

    def _job_item(self, job_id: str) -> JobItem | None:
        with translated(f"reading job {job_id} in the ledger"):
            try:
                return self._items.job.get(*job_key(job_id), consistent_read=True)
            except self._items.job.DoesNotExist:
                return None

    def _update(
        self,
        job_id: str,
        state: JobState | None,
        generation: int,
        *,
        condition: Condition,
        actions: Sequence[Action],
        now: str,
    ) -> JobRecord:
        """One conditional UpdateItem; ``state`` and ``generation`` are for the loser's message."""
        token = _token()
        item = self._items.job(*job_key(job_id))
        stamps = [JobItem.updated_at.set(now), JobItem.token.set(token)]
        try:
            with translated(f"writing job {job_id} in the ledger"):
                item.update([*actions, *stamps], condition)
        except PreconditionError as error:
            found = self._job_item(job_id)
            if found is None or found.token != token:
                record = job_record(found) if found else None
                raise LostRaceError.over(job_id, state, generation, record) from error
            return job_record(found)
        return job_record(item)

    def _note_together(self, group: list[AttemptRecord]) -> list[AttemptRecord]:
        """Note all of ``group`` in one transaction; return those to try again."""
        nobody_noted_it = AttemptItem.pk.does_not_exist()
        expires_at = _days_after(self._clock.now(), NOTE_DAYS)
        try:
            with (
                translated(f"noting {len(group)} attempts of job {group[0].job_id}"),
                self._transaction(_token()) as transaction,
            ):
                for attempt in group:
                    item = attempt_item(self._items.attempt, attempt, expires_at)
                    transaction.save(item, nobody_noted_it)
        except PreconditionError as error:
            return [
                attempt
                for attempt, noted in zip(group, _refused_items(error), strict=True)
                if not noted
            ]
        return []

    def _transaction(self, token: str) -> TransactWrite:
        connection = self._items.job._get_connection().connection
        return TransactWrite(connection=connection, client_request_token=token)


def _lost_decision(
    job_id: str, generation: int, plan: PlanFacts, lock_node: str, item: JobItem | None
) -> LostRaceError:
    found = job_record(item) if item else None
    if found is None or (found.state, found.generation) != (JobState.SEALED, generation):
        return LostRaceError.over(job_id, JobState.SEALED, generation, found)
    if found.plan is None or found.plan.sha256 != plan.sha256:
        return LostRaceError(f"job {job_id}: its plan is another one by now", found)
    return LostRaceError(f"job {job_id} does not hold the lock {lock_node}", found)


def _refused_items(error: PreconditionError) -> list[bool]:
    """For each item of a cancelled transaction: whether its own condition refused it."""
    cancelled: Any = error.__cause__
    if not isinstance(cancelled, TransactWriteError):
        raise error
    return [
        reason is not None and reason.code == "ConditionalCheckFailed"
        for reason in cancelled.cancellation_reasons
    ]


def _token() -> str:
    return uuid.uuid4().hex


def _days_after(moment: str, days: int) -> int:
    return int((datetime.fromisoformat(moment) + timedelta(days=days)).timestamp())
