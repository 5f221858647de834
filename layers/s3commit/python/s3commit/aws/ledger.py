"""The ledger on DynamoDB.

Each transition is one conditional write; each part of its condition is a variable whose name says
when it is true. The loser reads, consistently, the record that beat it.

A request whose answer is lost is repeated by botocore, and then meets its own first write. So each
write leaves a ``token`` of its own in the item: a loser that finds its token has won.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger_items import JobItem, LockItem, bind, job_key, lock_key, translated
from s3commit.aws.ledger_notes import DynamoNotes
from s3commit.aws.ledger_records import failure_map, job_item, job_record, plan_map, replaced_map
from s3commit.aws.ledger_table import days_after, new_token, refused_items
from s3commit.aws.locks import DynamoLocks
from s3commit.core.errors import PreconditionError
from s3commit.core.ledger import LostRaceError
from s3commit.core.model import Failure, JobRecord, PlanFacts, ReplacedFacts
from s3commit.core.ports import Clock
from s3commit.core.states import ENDED, IllegalTransitionError, JobState, check_transition

JOB_DAYS = 30  # how long an ended job stays in the ledger, unless the deployment says else


class DynamoLedger(DynamoLocks, DynamoNotes):
    """Implements `s3commit.core.ports.Ledger` on one table; thread-safe.

    ``region`` and ``host`` (an endpoint's URL) None mean the standard AWS configuration. ``clock``
    is read for times to live alone; an ended job lives for ``job_days``.
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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        items = bind(table, region=region, host=host)
        super().__init__(items, clock or SystemClock(), page, sleep)
        self._job_days = job_days

    def job(self, job_id: str) -> JobRecord | None:
        """See `Ledger.job`."""
        item = self._job_item(job_id)
        return job_record(item) if item else None

    def open_job(self, record: JobRecord) -> JobRecord:
        """See `Ledger.open_job`."""
        nobody_was_here = JobItem.pk.does_not_exist()
        item = job_item(self._items.job, record, new_token())
        if record.state in ENDED:  # forgotten here and remembered in S3: to be forgotten again
            item.expires_at = self._expiry(self._job_days)
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
            actions.append(JobItem.expires_at.set(days_after(now, self._job_days)))
        condition = still_in_source & nobody_took_over_since
        return self._update(
            job_id, source, generation, condition=condition, actions=actions, now=now
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
        # Read first: what a transaction leaves is not returned, but follows from what it met.
        before = self.job(job_id)
        if before is None or (before.state, before.generation) != (JobState.SEALED, generation):
            raise LostRaceError.over(job_id, JobState.SEALED, generation, before)
        nodes = list(dict.fromkeys(locks))  # DynamoDB refuses one that names an item twice
        condition = _is_to_be_decided(generation, plan, replaced)
        token = new_token()
        try:
            self._settle(lambda: self._decide(job_id, nodes, condition, token, now))
        except PreconditionError as error:
            found = self._job_item(job_id)
            if found is None or found.token != token:
                refused = zip(nodes, refused_items(error), strict=False)
                not_held = [node for node, by_its_lock in refused if by_its_lock]
                raise _lost_decision(
                    job_id, generation, plan, replaced, not_held=not_held, item=found
                ) from error
        return replace(before, state=JobState.COMMITTING, decided_at=now, updated_at=now)

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
        still_sealed = JobItem.state == JobState.SEALED.value
        nobody_took_over_since = JobItem.generation == generation
        actions: list[Action] = []
        if plan is not None:
            actions.append(JobItem.plan.set(plan_map(plan)))
        if locks is not None:
            actions.append(JobItem.locks.set(list(locks)))
        if replaced is not None:
            actions.append(JobItem.replaced.set(replaced_map(replaced)))
        condition = still_sealed & nobody_took_over_since
        return self._update(
            job_id, JobState.SEALED, generation, condition=condition, actions=actions, now=now
        )

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        """See `Ledger.jobs_in`."""
        updated = JobItem.updated_at
        in_between = updated.between(since, before) if since else updated < before
        with translated(f"listing the jobs in {state}"):
            for item in self._items.job.by_state.query(
                state.value, in_between, scan_index_forward=True, page_size=self._page
            ):
                if item.updated_at < before:  # a key's BETWEEN includes both ends
                    yield job_record(item)

    def forget(self, job_id: str, *, generation: int) -> bool:
        """See `Ledger.forget`."""
        still_open = JobItem.state == JobState.OPEN.value
        nobody_took_over_since = JobItem.generation == generation
        try:
            with translated(f"forgetting job {job_id}"):
                self._items.job(*job_key(job_id)).delete(still_open & nobody_took_over_since)
        except PreconditionError:
            return False
        return True

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
        token = new_token()
        item = self._items.job(*job_key(job_id))
        stamps = [JobItem.updated_at.set(now), JobItem.token.set(token)]

        def attempt() -> None:
            with translated(f"writing job {job_id} in the ledger"):
                item.update([*actions, *stamps], condition)

        try:
            self._settle(attempt)
        except PreconditionError as error:
            found = self._job_item(job_id)
            if found is None or found.token != token:
                record = job_record(found) if found else None
                raise LostRaceError.over(job_id, state, generation, record) from error
            return job_record(found)
        return job_record(item)

    def _decide(
        self, job_id: str, nodes: list[str], condition: Condition, token: str, now: str
    ) -> None:
        """The decision's transaction: the locks in the order of ``nodes``, then the job."""
        actions: list[Action] = [
            JobItem.state.set(JobState.COMMITTING.value),
            JobItem.decided_at.set(now),
            JobItem.updated_at.set(now),
            JobItem.token.set(token),
        ]
        with translated(f"deciding job {job_id}"), self._transaction() as transaction:
            for node in nodes:
                still_held = Path([LockItem.holders.attr_name, job_id]).exists()
                transaction.condition_check(self._items.lock, *lock_key(node), condition=still_held)
            transaction.update(self._items.job(*job_key(job_id)), actions, condition)


def _is_to_be_decided(
    generation: int, plan: PlanFacts, replaced: ReplacedFacts | None
) -> Condition:
    still_sealed = JobItem.state == JobState.SEALED.value
    nobody_took_over_since = JobItem.generation == generation
    plan_is_the_verified_one = JobItem.plan.sha256 == plan.sha256
    list_is_the_verified_one = (
        JobItem.replaced.does_not_exist()
        if replaced is None
        else JobItem.replaced.sha256 == replaced.sha256
    )
    condition: Condition = (
        still_sealed & nobody_took_over_since & plan_is_the_verified_one & list_is_the_verified_one
    )
    return condition


def _lost_decision(
    job_id: str,
    generation: int,
    plan: PlanFacts,
    replaced: ReplacedFacts | None,
    *,
    not_held: list[str],
    item: JobItem | None,
) -> LostRaceError:
    found = job_record(item) if item else None
    if found is None or (found.state, found.generation) != (JobState.SEALED, generation):
        return LostRaceError.over(job_id, JobState.SEALED, generation, found)
    if found.plan is None or found.plan.sha256 != plan.sha256:
        return LostRaceError(f"job {job_id}: its plan is another one by now", found)
    if (found.replaced and found.replaced.sha256) != (replaced and replaced.sha256):
        return LostRaceError(f"job {job_id}: its replace list is another one by now", found)
    return LostRaceError(f"job {job_id} does not hold the lock {', '.join(not_held)}", found)
