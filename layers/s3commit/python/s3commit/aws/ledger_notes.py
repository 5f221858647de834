"""The ledger's notes on DynamoDB: attempts that arrived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from s3commit.aws.ledger_items import (
    SHARDS,
    AttemptItem,
    attempt_key,
    shard_key,
    translated,
)
from s3commit.aws.ledger_records import attempt_item, attempt_record
from s3commit.aws.ledger_table import LedgerTable, refused_items
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.record import AttemptRecord

NOTE_DAYS = 30  # how long a note stays, which S3 can always replace
TRANSACTION = 100  # items: DynamoDB's limit


class DynamoNotes(LedgerTable):
    """The attempts of `s3commit.core.ports.objects.Ledger`; thread-safe."""

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
