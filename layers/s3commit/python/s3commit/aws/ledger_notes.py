"""The ledger's smaller items: claims, attempts, healing; and the table that all of it shares."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from pynamodb.exceptions import TransactWriteError
from pynamodb.transactions import TransactWrite

from s3commit.aws import failures
from s3commit.aws.ledger_items import (
    SHARDS,
    AttemptItem,
    ClaimItem,
    HealingItem,
    Items,
    attempt_key,
    claim_key,
    healing_key,
    shard_key,
    translated,
)
from s3commit.aws.ledger_records import (
    attempt_item,
    attempt_record,
    claim_item,
    claim_record,
    healing_item,
    healing_record,
)
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.locks import Claim, Claimed
from s3commit.core.model.record import AttemptRecord, Healing
from s3commit.core.ports.bundle import Clock

# A claim is deleted when its job has ended. What a late try puts after that does no harm and goes
# by itself; no job that is decided stays so for a year.
CLAIM_DAYS = 365
NOTE_DAYS = 30  # how long a note stays, which S3 can always replace
TRANSACTION = 100  # items: DynamoDB's limit
# No table is restored within a minute, so its id is not asked for more often.
REMEMBERED: Final = 60.0  # seconds


class DynamoNotes:
    """Claims, attempts and healing of `s3commit.core.ports.ledger.Ledger`; thread-safe.

    ``page`` bounds a page of a query.
    """

    _known: tuple[str, float] = "", 0.0  # the table's id, and when it was asked for

    def __init__(self, items: Items, clock: Clock, page: int | None) -> None:
        self._items = items
        self._clock = clock
        self._page = page

    def _transaction(self) -> TransactWrite:
        """A transaction of its own: a repetition by botocore of one that succeeded succeeds."""
        connection = self._items.job._get_connection().connection
        return TransactWrite(connection=connection, client_request_token=new_token())

    def _expiry(self, days: int) -> int:
        """The time to live of what is written now."""
        return days_after(self._clock.now(), days)

    def put_claim(self, claim: Claimed) -> None:
        """See `Ledger.put_claim`."""
        item = claim_item(self._items.claim, claim, self._expiry(CLAIM_DAYS))
        is_its_own = ClaimItem.epoch == claim.epoch
        is_none_of_a_later_epoch = ClaimItem.epoch.does_not_exist() | (
            ClaimItem.epoch <= claim.epoch
        )
        with (
            suppress(PreconditionError),
            translated(f"claiming {claim.claim.node} for job {claim.ref}"),
        ):
            item.save(is_its_own if claim.waits else is_none_of_a_later_epoch)

    def drop_claim(self, ref: str, claim: Claim) -> None:
        """See `Ledger.drop_claim`."""
        with translated(f"giving back {claim.node} of job {ref}"):
            self._items.claim(*claim_key(ref, claim)).delete()

    def claims(self, claim: Claim, *, below: bool, asked: str = "") -> Iterator[Claimed]:
        """See `Ledger.claims`.

        A filter saves no read units, and leaves out what would have to be sent and held here:
        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.FilterExpression.html
        """
        pk, own = claim_key("", claim)
        under = ClaimItem.sk.startswith(claim.node if below else own)
        came_before = ClaimItem.asked.does_not_exist() | (ClaimItem.asked <= asked)
        with translated(f"reading the claims of {claim.node}"):
            for item in self._items.claim.query(
                pk,
                under,
                came_before if asked else None,
                consistent_read=True,
                page_size=self._page,
            ):
                yield claim_record(claim.mode, item)

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

    def attempts(self, ref: str) -> Iterator[AttemptRecord]:
        """See `Ledger.attempts`."""
        with translated(f"reading the attempts of job {ref}"):
            for shard in range(SHARDS):
                for item in self._items.attempt.query(
                    shard_key(ref, shard), consistent_read=True, page_size=self._page
                ):
                    yield attempt_record(item)

    def _note_together(self, group: list[AttemptRecord]) -> list[AttemptRecord]:
        """Note all of ``group`` in one transaction; return those to try again."""
        nobody_noted_it = AttemptItem.pk.does_not_exist()
        expires_at = self._expiry(NOTE_DAYS)
        try:
            with (
                translated(f"noting {len(group)} attempts of job {group[0].ref}"),
                self._transaction() as transaction,
            ):
                for attempt in group:
                    item = attempt_item(self._items.attempt, attempt, expires_at)
                    transaction.save(item, nobody_noted_it)
        except PreconditionError as error:
            return [
                attempt
                for attempt, noted in zip(group, refused_items(error), strict=True)
                if not noted
            ]
        return []

    def healing(self, bucket: str, *, now: str) -> Healing:
        """See `Ledger.healing`."""
        found = self._healing(bucket)
        if found is None:
            first = Healing(self._table_id(), now)
            nobody_looked = HealingItem.pk.does_not_exist()
            with suppress(PreconditionError), translated(f"noting the first look at {bucket}"):
                healing_item(self._items.healing, bucket, first).save(nobody_looked)
            found = self._healing(bucket) or first
        known, asked = self._known
        if found.table == known and time.monotonic() < asked + REMEMBERED:
            return found
        return found.of(self._table_id())

    def note_healing(self, bucket: str, healing: Healing) -> None:
        """See `Ledger.note_healing`."""
        same_table = HealingItem.table == healing.table
        is_not_whole = HealingItem.whole == False  # noqa: E712
        with suppress(PreconditionError), translated(f"noting what is known of {bucket}"):
            healing_item(self._items.healing, bucket, healing).save(same_table & is_not_whole)

    def _healing(self, bucket: str) -> Healing | None:
        kind = self._items.healing
        with translated(f"reading what the ledger knows of {bucket}"):
            try:
                return healing_record(kind.get(*healing_key(bucket), consistent_read=True))
            except kind.DoesNotExist:
                return None

    def _table_id(self) -> str:
        """DynamoDB's id of the table, which no other table ever has.

        https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html
        """
        table = self._items.job._get_connection()
        client: Any = table.connection.client
        with failures.translated("asking for the id of the ledger's table"):
            found = client.describe_table(TableName=table.table_name)
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
    """What no other call writes."""
    return uuid.uuid4().hex


def days_after(moment: str, days: int) -> int:
    """A time to live, in seconds since 1970; ``moment`` is RFC 3339."""
    return int((datetime.fromisoformat(moment) + timedelta(days=days)).timestamp())
