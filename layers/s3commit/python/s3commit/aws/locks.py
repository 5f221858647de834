"""The ledger's locks on DynamoDB: one item a node, changed by compare and set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pynamodb.expressions.condition import Condition

from s3commit.aws.ledger_items import LockItem, lock_key, translated
from s3commit.aws.ledger_records import lock_item, lock_record
from s3commit.aws.ledger_table import LedgerTable, new_token
from s3commit.core.errors import PreconditionError
from s3commit.core.locks import LockRecord

FREE_DAYS = 1  # how long the item of a node stays that nobody holds


class DynamoLocks(LedgerTable):
    """The locks of `s3commit.core.ports.Ledger`; thread-safe.

    A node that nobody holds keeps its item, and so its version, for a day: far longer than anybody
    works with a record once read, so that a version never stands for two different contents. One
    that is held does not expire.
    """

    def lock(self, node: str) -> LockRecord:
        """See `Ledger.lock`."""
        item = self._lock_item(node)
        return lock_record(node, item) if item else LockRecord(node)

    def put_lock(self, record: LockRecord) -> bool:
        """See `Ledger.put_lock`."""
        token = new_token()

        def attempt() -> None:
            with translated(f"writing the lock of {record.node}"):
                self._changed(record, token).save(_nobody_changed(record))

        return self._put(attempt, record.node, token)

    def put_locks(self, records: Sequence[LockRecord]) -> bool:
        """See `Ledger.put_locks`."""
        if len(records) == 1:
            return self.put_lock(records[0])
        token = new_token()
        nodes = ", ".join(record.node for record in records)[:500]

        def attempt() -> None:
            with translated(f"writing the locks of {nodes}"), self._transaction() as transaction:
                for record in records:
                    transaction.save(self._changed(record, token), _nobody_changed(record))

        return self._put(attempt, records[0].node, token)

    def _changed(self, record: LockRecord, token: str) -> LockItem:
        item = lock_item(self._items.lock, record, token)
        if not record.holders:
            item.expires_at = self._expiry(FREE_DAYS)
        return item

    def _put(self, attempt: Callable[[], None], node: str, token: str) -> bool:
        try:
            self._settle(attempt)
        except PreconditionError:
            found = self._lock_item(node)
            return found is not None and found.token == token
        return True

    def _lock_item(self, node: str) -> LockItem | None:
        with translated(f"looking at the lock of {node}"):
            try:
                return self._items.lock.get(*lock_key(node), consistent_read=True)
            except self._items.lock.DoesNotExist:
                return None


def _nobody_changed(record: LockRecord) -> Condition:
    condition: Condition = (
        LockItem.version == record.version if record.version else LockItem.pk.does_not_exist()
    )
    return condition
