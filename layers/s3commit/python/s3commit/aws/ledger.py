"""The ledger on DynamoDB.

Each transition is one conditional write; each part of its condition is a variable whose name says
when it is true. The loser reads, consistently, the record that beat it.

A request whose answer is lost is repeated by botocore, and then meets its own first write. So each
write leaves a ``token`` of its own in the item: a loser that finds its token has won.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from heapq import merge
from operator import and_

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from s3commit.aws.clients import make_session
from s3commit.aws.clock import SystemClock
from s3commit.aws.failures import translated
from s3commit.aws.ledger_items import (
    SHELVES,
    JobItem,
    KeyItem,
    LedgerItem,
    LockItem,
    append_key,
    bind,
    ended_key,
    id_key,
    idempotency_item_key,
    job_item,
    job_key,
    job_record,
    lock_key,
    shelf,
    shelf_of,
    stored,
    turn_key,
)
from s3commit.aws.ledger_notes import DAY, DynamoNotes, new_token, refused_items, seconds_after
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.limits import FORGOTTEN_DAYS
from s3commit.core.model.locks import (
    ENDED_SECONDS,
    Item,
    ItemKind,
    changed_items,
    destination_node,
    holder_of,
    opened_items,
    turn_of,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.clock import Clock
from s3commit.core.ports.ledger import Change, HeldError, Ledger

_MOVES_ITEMS = {"state", "locks"}  # items beside a record change with these alone
JOB_DAYS = 30  # how long an ended job stays in the ledger, unless the deployment says else


class DynamoLedger(DynamoNotes, Ledger):
    """Implements `s3commit.core.ports.ledger.Ledger` on one table; thread-safe.

    Region, endpoint and credentials are those of the standard AWS configuration. ``clock`` is read
    for times to live alone; an ended job lives for ``job_days``. Raises `AccessError`
    (``NO_CREDENTIALS``) if there are no credentials.
    """

    def __init__(
        self,
        table: str,
        *,
        clock: Clock | None = None,
        page: int | None = None,
        job_days: int = JOB_DAYS,
    ) -> None:
        super().__init__(bind(table), clock or SystemClock(), page)
        self._job_days = job_days
        # With our session and not pynamodb's own, and now: else the first request made the client,
        # after a function's start.
        self._table.connection._local.session = make_session()
        with translated("connecting to DynamoDB"):
            _ = self._table.connection.client

    def job(self, ref: str) -> JobRecord | None:
        item = self._job_item(ref)
        return job_record(item) if item else None

    def jobs_with_id(self, job_id: str) -> list[JobRecord]:
        with translated(f"reading the jobs with id {job_id} in the ledger"):
            found = self._items.job.query(id_key(job_id), consistent_read=True)
            return [job_record(item) for item in found]

    def open_job(self, record: JobRecord) -> JobRecord:
        is_free = JobItem.pk.does_not_exist()
        if record.state is not JobState.OPEN:
            is_free |= JobItem.state == JobState.OPEN.value
        item = job_item(self._items.job, record, new_token())
        if record.state in ENDED:  # forgotten here and remembered in S3: to be forgotten again
            item.expires_at = self._expiry(self._job_days)
        beside = opened_items(record)
        try:
            with translated(f"opening job {record.job_id} in the ledger"):
                if not beside:
                    item.save(is_free)
                else:
                    with self._transaction() as transaction:
                        transaction.save(item, is_free)
                        for one in beside:
                            transaction.save(self._beside(record, one))
        except PreconditionError:
            standing = self.job(record.ref)
            if standing is None:  # it was there a moment ago, and nothing but TTL deletes
                raise
            return standing
        return record

    def update(self, change: Change) -> JobRecord:
        ref, token = change.before.ref, new_token()
        if change.unlocked or change.fields.keys() & _MOVES_ITEMS:
            before = self.job(ref)
            after = change.made(before)
            if before and (change.unlocked or any(changed_items(before, after))):
                return self._write_together(before, after, change)
        item = self._items.job(*job_key(ref))
        try:
            with translated(f"writing job {ref} in the ledger"):
                item.update(self._actions(change, token), _condition(change))
        except PreconditionError as error:
            return self._as_written(change, token, error)
        return job_record(item)

    def _as_written(self, change: Change, token: str, error: PreconditionError) -> JobRecord:
        """The record, if the refused write has met itself. Raises `LostRaceError` otherwise."""
        found = self._job_item(change.before.ref)
        record = job_record(found) if found else None
        if found is None or record is None or found.token != token:
            change.made(record)
            raise change.lost(record) from error
        return record

    def _write_together(self, before: JobRecord, after: JobRecord, change: Change) -> JobRecord:
        """Write the record and the items beside it: all, or nothing.

        The items beside it follow from the record as it was read. So its locks have to be the same
        still.
        """
        ref, token = before.ref, new_token()
        same_locks = JobItem.locks == list(before.locks)
        put, drop = changed_items(before, after)
        try:
            with translated(f"writing job {ref} in the ledger"), self._transaction() as transaction:
                item = self._items.job(*job_key(ref))
                condition = _condition(change) & same_locks
                transaction.update(item, self._actions(change, token), condition)
                for one in put:
                    transaction.save(self._beside(after, one), _is_free(after, one))
                for one in drop:
                    transaction.delete(self._beside(before, one))
                nobody_has_it = LockItem.pk.does_not_exist()
                for node in sorted(change.unlocked):
                    transaction.condition_check(self._items.lock, *lock_key(node), nobody_has_it)
        except PreconditionError as error:
            if refused_items(error)[-1]:  # pynamodb sends what is updated last
                return self._as_written(change, token, error)
            raise HeldError(f"job {ref}: another job holds what it needs") from error
        return after

    def _beside(self, record: JobRecord, one: Item) -> LedgerItem:
        """An item beside the record."""
        node = destination_node(record.destination)
        match one.kind:
            case ItemKind.LOCK:
                return self._items.lock(*lock_key(one.name), ref=record.ref)
            case ItemKind.KEY:
                holder = holder_of(record)
                return self._items.key(
                    *idempotency_item_key(node, one.name),
                    job_id=holder.job_id,
                    files=holder.files,
                    rows=holder.rows,
                    directories=holder.directories,
                )
            case ItemKind.APPEND:
                return self._items.append(*append_key(one.name, record.ref))
            case ItemKind.ENDED:
                ended = record.finished_at or record.updated_at
                return self._items.append(
                    *ended_key(one.name, record.ref, ended),
                    expires_at=seconds_after(ended, ENDED_SECONDS),
                )
            case ItemKind.ASKED | ItemKind.DONE:
                turn = turn_of(record)
                life = seconds_after(turn.requested_at, FORGOTTEN_DAYS * DAY)
                keys = turn_key(one.kind, turn)
                return self._items.turn(*keys, node=node, expires_at=life)

    def jobs_in(
        self, state: JobState, *, before: str, since: str = "", latest_first: bool = False
    ) -> Iterator[JobRecord]:
        in_between = JobItem.updated_at.between(since or "0", before)  # no key is empty
        shelves = [
            self._items.job.by_state.query(
                shelf(state, number),
                in_between,
                scan_index_forward=not latest_first,
                page_size=self._page,
            )
            for number in range(SHELVES)
        ]
        with translated(f"listing the jobs in {state}"):
            for item in merge(*shelves, key=lambda item: item.updated_at, reverse=latest_first):
                if item.updated_at < before:  # a key's BETWEEN includes both ends
                    yield job_record(item)

    def all_jobs(self, *, most: int) -> list[JobRecord] | None:
        # It ends at 1 MB: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
        with translated("listing the jobs"):
            pages = self._items.job.by_state.scan(page_size=most).page_iter
            found = [job_record(self._items.job.from_raw_data(one)) for one in next(pages)["Items"]]
        return None if pages.last_evaluated_key else found

    def count_in(self, state: JobState, *, since: str, most: int) -> int:
        found, recent = 0, JobItem.updated_at >= since
        with translated(f"counting the jobs in {state}"):
            for number in range(SHELVES):
                if found < most:
                    found += self._items.job.by_state.count(shelf(state, number), recent)
        return found

    def unlist(self, ref: str) -> None:
        is_there = JobItem.pk.exists()
        # Otherwise its time to live was over.
        with suppress(PreconditionError), translated(f"taking job {ref} out of the index"):
            self._items.job(*job_key(ref)).update([JobItem.shelf.remove()], is_there)

    def _job_item(self, ref: str) -> JobItem | None:
        return self._get(self._items.job, job_key(ref), f"reading job {ref} in the ledger")

    def _actions(self, change: Change, token: str) -> list[Action]:
        before, after = change.before, change.after
        actions: list[Action] = [JobItem.token.set(token)]
        for name, value in change.fields.items():
            attribute = getattr(JobItem, name)
            actions.append(attribute.remove() if value is None else attribute.set(stored(value)))
        if after.state is not before.state:
            actions.append(JobItem.shelf.set(shelf_of(after.ref, after.state)))
        if after.finished_at and after.finished_at != before.finished_at:
            life = seconds_after(after.finished_at, self._job_days * DAY)
            actions.append(JobItem.expires_at.set(life))
        return actions


def _condition(change: Change) -> Condition:
    before = change.before
    nobody_took_over_since = JobItem.generation == before.generation
    conditions: list[Condition] = [nobody_took_over_since]
    if not change.is_forced:
        still_in_state = JobItem.state == before.state.value
        conditions.append(still_in_state)
    if change.same_lists:
        plan_is_the_verified_one = JobItem.plan["sha256"] == before.planned.sha256
        list_is_the_verified_one = (
            JobItem.replaced.does_not_exist()
            if before.replaced is None
            else JobItem.replaced["sha256"] == before.replaced.sha256
        )
        conditions += [plan_is_the_verified_one, list_is_the_verified_one]
    return reduce(and_, conditions)


def _is_free(record: JobRecord, one: Item) -> Condition | None:
    """That no other job has the item; the keys of an append are the job's own."""
    free: dict[ItemKind, Condition] = {
        ItemKind.LOCK: LockItem.pk.does_not_exist() | (LockItem.ref == record.ref),
        ItemKind.KEY: KeyItem.pk.does_not_exist() | (KeyItem.job_id == record.job_id),
    }
    return free.get(one.kind)
