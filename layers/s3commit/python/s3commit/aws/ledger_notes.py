"""The ledger's smaller items: locks, keys, appends, attempts and healing."""

import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from pynamodb.exceptions import TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.transactions import TransactWrite

from s3commit.aws.failures import translated
from s3commit.aws.ledger_items import (
    HEALING,
    SHARDS,
    AnyItem,
    AttemptItem,
    HealingItem,
    Items,
    KeyItem,
    LedgerItem,
    LockItem,
    TurnItem,
    append_key,
    attempt_key,
    ended_key,
    idempotency_item_key,
    lock_key,
    record_of,
    shard_key,
    stored,
    turn_key,
)
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.locks import (
    Append,
    ItemKind,
    KeyHolder,
    Lock,
    Turn,
    days_of_turns,
    destination_node,
    where_ended,
)
from s3commit.core.model.record import AttemptRecord, Healing
from s3commit.core.ports.clock import Clock

DAY: Final = 86_400  # seconds
NOTE_DAYS = 30  # how long a note stays, which S3 can always replace
# No table is restored within a minute, so its id is not read more often.
REMEMBERED: Final = 60.0  # seconds


class DynamoNotes:
    """The part of `s3commit.core.ports.ledger.Ledger` beside its jobs; thread-safe.

    ``page`` bounds a page of a query.
    """

    _known: tuple[str, float] = "", 0.0  # the table's id, and when it was read

    def __init__(self, items: Items, clock: Clock, page: int | None) -> None:
        self._items = items
        self._table = items.connection
        self._clock = clock
        self._page = page

    def _transaction(self) -> TransactWrite:
        """A transaction of its own: a repetition by botocore of one that succeeded succeeds."""
        connection = self._table.connection
        return TransactWrite(connection=connection, client_request_token=new_token())

    def _get(self, kind: type[AnyItem], keys: tuple[str, str], what: str) -> AnyItem | None:
        """One item, read consistently."""
        with translated(what):
            try:
                return kind.get(*keys, consistent_read=True)
            except kind.DoesNotExist:
                return None

    def _query(
        self, kind: type[AnyItem], pk: str, condition: Condition | None = None
    ) -> Iterator[AnyItem]:
        """The items of a partition, read consistently."""
        return kind.query(pk, condition, consistent_read=True, page_size=self._page)

    def _expiry(self, days: int) -> int:
        """The time to live of what is written now."""
        return seconds_after(self._clock.now(), days * DAY)

    def locks(self, nodes: Collection[str]) -> list[Lock]:
        with translated("reading locks"):
            found = self._items.lock.batch_get(map(lock_key, nodes), consistent_read=True)
            return [Lock(item.sk, item.ref) for item in found]

    def locks_below(self, node: str) -> Iterator[Lock]:
        pk, own = lock_key(node)
        with translated(f"reading the locks below {node}"):
            for item in self._query(self._items.lock, pk, LockItem.sk.startswith(own)):
                if item.sk != own:
                    yield Lock(item.sk, item.ref)

    def unlock(self, lock: Lock) -> None:
        still_has_it = LockItem.ref == lock.ref
        with suppress(PreconditionError), translated(f"removing the lock of {lock.node}"):
            self._items.lock(*lock_key(lock.node)).delete(still_has_it)

    def key_holder(self, destination: Destination, digest: str) -> KeyHolder | None:
        keys = idempotency_item_key(destination_node(destination), digest)
        what = f"reading an idempotency key of {destination.uri}"
        found = self._get(self._items.key, keys, what)
        return record_of(KeyHolder, found) if found else None

    def free_key(self, destination: Destination, digest: str, job_id: str) -> None:
        keys = idempotency_item_key(destination_node(destination), digest)
        still_has_it = KeyItem.job_id == job_id
        what = f"freeing an idempotency key of {destination.uri}"
        with suppress(PreconditionError), translated(what):
            self._items.key(*keys).delete(still_has_it)

    def appends(self, node: str, *, below: bool) -> Iterator[Append]:
        under_way, own = append_key(node, "")
        under = LedgerItem.sk.startswith(node if below else own)
        ended = [ended_key(node, "", each)[0] for each in where_ended(self._clock.now())]
        with translated(f"reading the appends at {node}"):
            for pk in (under_way, *ended):
                for item in self._query(self._items.append, pk, under):
                    at, _, ref = item.sk.rpartition("/")
                    yield Append(at, ref, ended=pk != under_way)

    def turns_asked(self, node: str, *, before: str) -> Iterator[Turn]:
        keys = turn_key(ItemKind.ASKED, Turn(before, "", node))
        with translated(f"reading the turns at {node}"):
            yield from self._turns(keys[0], TurnItem.sk < before)

    def turns_done(self, node: str, *, since: str) -> Iterator[Turn]:
        with translated(f"reading the turns at {node}"):
            for day in days_of_turns(since, self._clock.now()):
                keys = turn_key(ItemKind.DONE, Turn(day, "", node))
                yield from self._turns(keys[0], TurnItem.sk > f"{since}$")  # behind "#"

    def _turns(self, pk: str, condition: Condition) -> Iterator[Turn]:
        for item in self._query(self._items.turn, pk, condition):
            requested_at, _, ref = item.sk.partition("#")
            yield Turn(requested_at, ref, item.node)

    def record_attempt(self, attempt: AttemptRecord) -> None:
        nobody_noted_it = AttemptItem.pk.does_not_exist()
        keys, life = attempt_key(attempt), self._expiry(NOTE_DAYS)
        item = self._items.attempt(*keys, expires_at=life, **stored(attempt))
        with suppress(PreconditionError), translated(f"noting an attempt of job {attempt.ref}"):
            item.save(nobody_noted_it)

    def attempts(self, ref: str) -> Iterator[AttemptRecord]:
        with translated(f"reading the attempts of job {ref}"):
            for shard in range(SHARDS):
                for item in self._query(self._items.attempt, shard_key(ref, shard)):
                    yield record_of(AttemptRecord, item)

    def healing(self, bucket: str, *, now: str) -> Healing:
        found = self._healing(bucket)
        if found is None:
            first = Healing(self._table_id(), now)
            nobody_looked = HealingItem.pk.does_not_exist()
            with suppress(PreconditionError), translated(f"noting the first look at {bucket}"):
                self._items.healing(HEALING, bucket, **stored(first)).save(nobody_looked)
            found = self._healing(bucket) or first
        known, asked = self._known
        if found.table == known and time.monotonic() < asked + REMEMBERED:
            return found
        return found.of(self._table_id())

    def peek_healing(self) -> dict[str, Healing]:
        with translated("reading what the ledger knows"):
            found = list(self._query(self._items.healing, HEALING))
        return {one.sk: record_of(Healing, one).of(self._table_id()) for one in found}

    def note_healing(self, bucket: str, healing: Healing) -> None:
        same_table = HealingItem.table == healing.table
        is_not_whole = HealingItem.whole == False  # noqa: E712
        with suppress(PreconditionError), translated(f"noting what is known of {bucket}"):
            item = self._items.healing(HEALING, bucket, **stored(healing))
            item.save(same_table & is_not_whole & (HealingItem.until <= healing.until))

    def _healing(self, bucket: str) -> Healing | None:
        what = f"reading the ledger's notes on {bucket}"
        found = self._get(self._items.healing, (HEALING, bucket), what)
        return record_of(Healing, found) if found else None

    def _table_id(self) -> str:
        """DynamoDB's id of the table, which no other table ever has.

        https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html
        """
        client: Any = self._table.connection.client
        with translated("asking for the id of the ledger's table"):
            found = client.describe_table(TableName=self._table.table_name)
        self._known = found["Table"]["TableId"], time.monotonic()
        return self._known[0]


def refused_items(error: PreconditionError) -> list[bool]:
    """For each item of a cancelled transaction: whether its own condition refused it."""
    cancelled: Any = error.__cause__
    if not isinstance(cancelled, TransactWriteError):
        raise error
    return [
        reason is not None and reason.code == "ConditionalCheckFailed"
        for reason in cancelled.cancellation_reasons
    ]


def new_token() -> str:
    """A token that no other call writes."""
    return uuid.uuid4().hex


def seconds_after(moment: str, seconds: int) -> int:
    """A time to live, in seconds since 1970; ``moment`` is RFC 3339."""
    return int(datetime.fromisoformat(moment).timestamp()) + seconds
