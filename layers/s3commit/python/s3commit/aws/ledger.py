"""The ledger on DynamoDB.

Each transition is one conditional write; each part of its condition is a variable whose name says
when it is true. The loser reads, consistently, the record that beat it.

A request whose answer is lost is repeated by botocore, and then meets its own first write. So each
write leaves a ``token`` of its own in the item: a loser that finds its token has won.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import reduce
from heapq import merge
from operator import and_
from typing import Any

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from s3commit.aws import settings
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger_items import (
    SHELVES,
    JobItem,
    bind,
    connect,
    id_key,
    job_key,
    shelf,
    shelf_of,
    translated,
)
from s3commit.aws.ledger_notes import DynamoNotes
from s3commit.aws.ledger_records import (
    failure_map,
    job_item,
    job_record,
    plan_map,
    replaced_map,
    turn_map,
)
from s3commit.aws.ledger_table import days_after, new_token
from s3commit.aws.locks import DynamoLocks
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.job import Failure
from s3commit.core.model.record import JobRecord, PlanFacts, ReplacedFacts, Stage, Turn
from s3commit.core.model.states import ENDED, IllegalTransitionError, JobState, check_transition
from s3commit.core.ports.clock import Clock
from s3commit.core.ports.ledger import LostRaceError

JOB_DAYS = 30  # how long an ended job stays in the ledger, unless the deployment says else


class DynamoLedger(DynamoLocks, DynamoNotes):
    """Implements `s3commit.core.ports.objects.Ledger` on one table; thread-safe.

    ``region`` and ``host`` (an endpoint's URL) None mean the standard AWS configuration. ``clock``
    is read for times to live alone; an ended job lives for ``job_days``. Raises `AccessError`
    (``NO_CREDENTIALS``) if there are no credentials.
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
        where = region or settings.region(os.environ)
        items = bind(table, region=where, host=host)
        connect(items, where)
        super().__init__(items, clock or SystemClock(), page)
        self._job_days = job_days

    def job(self, ref: str) -> JobRecord | None:
        """See `Ledger.job`."""
        item = self._job_item(ref)
        return job_record(item) if item else None

    def jobs_with_id(self, job_id: str) -> list[JobRecord]:
        """See `Ledger.jobs_with_id`."""
        with translated(f"reading the jobs with id {job_id} in the ledger"):
            found = self._items.job.query(id_key(job_id), consistent_read=True)
            return [job_record(item) for item in found]

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
            standing = self.job(record.ref)
            if standing is None:  # it was there a moment ago, and nothing but TTL deletes
                raise
            return standing
        return record

    def take_over(self, ref: str, *, generation: int, execution: str, now: str) -> JobRecord:
        """See `Ledger.take_over`."""
        actions = [JobItem.generation.set(generation + 1), JobItem.execution.set(execution)]
        return self._update(ref, None, generation, actions=actions, now=now)

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
        actions = _into(ref, target)
        if plan is not None:
            actions.append(JobItem.plan.set(plan_map(plan)))
        if failure is not None:
            actions.append(JobItem.failure.set(failure_map(failure)))
        if target in ENDED:
            actions.append(JobItem.finished_at.set(now))
            actions.append(JobItem.expires_at.set(days_after(now, self._job_days)))
        return self._update(ref, source, generation, actions=actions, now=now)

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
        plan_is_the_verified_one = JobItem.plan.sha256 == plan.sha256
        list_is_the_verified_one = (
            JobItem.replaced.does_not_exist()
            if replaced is None
            else JobItem.replaced.sha256 == replaced.sha256
        )
        still_held = _is_at(Turn(Stage.HELD, epoch=epoch))
        try:
            return self._update(
                ref,
                JobState.SEALED,
                generation,
                condition=plan_is_the_verified_one & list_is_the_verified_one & still_held,
                actions=[*_into(ref, JobState.COMMITTING), JobItem.decided_at.set(now)],
                now=now,
            )
        except LostRaceError as error:
            raise _lost_decision(ref, generation, plan, replaced, error) from error

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
        actions: list[Action] = []
        if plan is not None:
            actions.append(JobItem.plan.set(plan_map(plan)))
        if replaced is not None:
            actions.append(JobItem.replaced.set(replaced_map(replaced)))
        return self._update(ref, JobState.SEALED, generation, actions=actions, now=now)

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
        actions: list[Action] = [JobItem.turn.set(turn_map(after))]
        if locks is not None:
            actions.append(JobItem.locks.set(list(locks)))
        return self._update(
            ref,
            JobState.SEALED,
            generation,
            condition=_is_at(before),
            actions=actions,
            now=now,
        )

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        """See `Ledger.jobs_in`."""
        updated = JobItem.updated_at
        in_between = updated.between(since, before) if since else updated < before
        shelves = [
            self._items.job.by_state.query(
                shelf(state, number), in_between, scan_index_forward=True, page_size=self._page
            )
            for number in range(SHELVES)
        ]
        with translated(f"listing the jobs in {state}"):
            for item in merge(*shelves, key=lambda item: item.updated_at):
                if item.updated_at < before:  # a key's BETWEEN includes both ends
                    yield job_record(item)

    def forget(self, ref: str, *, generation: int) -> bool:
        """See `Ledger.forget`."""
        still_open = JobItem.state == JobState.OPEN.value
        nobody_took_over_since = JobItem.generation == generation
        try:
            with translated(f"forgetting job {ref}"):
                self._items.job(*job_key(ref)).delete(still_open & nobody_took_over_since)
        except PreconditionError:
            return False
        return True

    def _job_item(self, ref: str) -> JobItem | None:
        with translated(f"reading job {ref} in the ledger"):
            try:
                return self._items.job.get(*job_key(ref), consistent_read=True)
            except self._items.job.DoesNotExist:
                return None

    def _update(
        self,
        ref: str,
        state: JobState | None,
        generation: int,
        *,
        actions: Sequence[Action],
        now: str,
        condition: Condition | None = None,
    ) -> JobRecord:
        """One UpdateItem on condition of ``state`` (None: any), ``generation`` and the rest."""
        token = new_token()
        item = self._items.job(*job_key(ref))
        stamps = [JobItem.updated_at.set(now), JobItem.token.set(token)]
        nobody_took_over_since = JobItem.generation == generation
        still_in_state = None if state is None else JobItem.state == state.value
        conditions = [nobody_took_over_since, still_in_state, condition]
        together = reduce(and_, [one for one in conditions if one is not None])
        try:
            with translated(f"writing job {ref} in the ledger"):
                item.update([*actions, *stamps], together)
        except PreconditionError as error:
            found = self._job_item(ref)
            if found is None or found.token != token:
                record = job_record(found) if found else None
                raise LostRaceError.over(ref, state, generation, record) from error
            return job_record(found)
        return job_record(item)


def _into(ref: str, state: JobState) -> list[Action]:
    """The actions that bring a job into a state, and to its place in the index."""
    return [JobItem.state.set(state.value), JobItem.shelf.set(shelf_of(ref, state))]


def _is_at(turn: Turn) -> Condition:
    same_stage: Any = JobItem.turn.stage == turn.stage.value
    same_epoch: Any = JobItem.turn.epoch == turn.epoch
    condition: Condition = same_stage & same_epoch
    return condition


def _lost_decision(
    ref: str,
    generation: int,
    plan: PlanFacts,
    replaced: ReplacedFacts | None,
    error: LostRaceError,
) -> LostRaceError:
    """The same with a message that says which condition did not hold."""
    found = error.found
    if found is None or (found.state, found.generation) != (JobState.SEALED, generation):
        return error
    if found.plan is None or found.plan.sha256 != plan.sha256:
        return LostRaceError(f"job {ref}: its plan is another one by now", found)
    if (found.replaced and found.replaced.sha256) != (replaced and replaced.sha256):
        return LostRaceError(f"job {ref}: its replace list is another one by now", found)
    return LostRaceError(f"job {ref} does not hold what it claims", found)
