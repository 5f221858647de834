"""The ledger's locks on DynamoDB: one item a node, one conditional write to take it."""

from __future__ import annotations

from s3commit.aws.ledger_items import Items, LockItem, lock_key, translated
from s3commit.core.errors import PreconditionError
from s3commit.core.ports import LockMode


class DynamoLocks:
    """The locks of `s3commit.core.ports.Ledger`; thread-safe.

    An item says how its node is held and by which jobs; one without holders is free.
    """

    def __init__(self, items: Items) -> None:
        self._items = items

    def acquire(self, node: str, *, job_id: str, mode: LockMode) -> bool:
        """See `Ledger.acquire`."""
        nobody_holds_it = LockItem.holders.does_not_exist()
        only_the_job_holds_it = LockItem.holders == {job_id}
        all_hold_it_shared = LockItem.mode == LockMode.SHARED.value
        free = nobody_holds_it | (
            only_the_job_holds_it if mode is LockMode.EXCLUSIVE else all_hold_it_shared
        )
        lock = self._items.lock(*lock_key(node))
        try:
            with translated(f"locking {node}"):
                lock.update([LockItem.mode.set(mode.value), LockItem.holders.add({job_id})], free)
        except PreconditionError:
            # an exclusive holder that asks for less keeps what it has
            return mode is LockMode.SHARED and job_id in self.lock_holders(node)
        return True

    def release(self, node: str, *, job_id: str) -> None:
        """See `Ledger.release`."""
        lock = self._items.lock(*lock_key(node))
        the_job_holds_it = LockItem.holders.contains(job_id)
        nobody_holds_it = LockItem.holders.does_not_exist()
        try:
            with translated(f"unlocking {node}"):
                lock.update([LockItem.holders.delete({job_id})], the_job_holds_it)
        except PreconditionError:
            return
        try:
            with translated(f"clearing the lock of {node}"):
                lock.delete(nobody_holds_it)
        except PreconditionError:
            return

    def lock_holders(self, node: str) -> frozenset[str]:
        """See `Ledger.lock_holders`."""
        with translated(f"looking at the lock of {node}"):
            try:
                lock = self._items.lock.get(*lock_key(node), consistent_read=True)
            except self._items.lock.DoesNotExist:
                return frozenset()
        return frozenset(lock.holders or ())
