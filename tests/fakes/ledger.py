"""A ledger in memory with the conditions of the real one."""

import threading
from collections.abc import Collection, Iterator
from itertools import count
from typing import Any, Self, cast

from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.limits import FORGOTTEN_DAYS, MAX_ITEMS
from s3commit.core.model.locks import (
    ENDED_SECONDS,
    Append,
    Item,
    ItemKind,
    KeyHolder,
    Lock,
    Turn,
    changed_items,
    days_of_turns,
    destination_node,
    holder_of,
    opened_items,
    ten_minutes,
    turn_of,
    where_ended,
)
from s3commit.core.model.moments import seconds
from s3commit.core.model.record import AttemptRecord, Healing, JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.clock import Clock
from s3commit.core.ports.ledger import Change, HeldError, Ledger
from tests.fakes.item_limits import check_beside, check_record

OPEN = JobState.OPEN
_LONG_AGO = "2000-01-01T00:00:00.000Z"


class MemoryLedger(Ledger):
    """Implements `s3commit.core.ports.ledger.Ledger`; linearizable and thread-safe.

    What DynamoDB would refuse by its size is refused: `tests.fakes.item_limits`. Ended appends lie
    in the partitions of the real one, and are found by the ``clock`` of who asks; without one, as
    if that were asked when the last of them ended.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._jobs: dict[str, JobRecord] = {}
        self._attempts: dict[str, dict[tuple[str, str], AttemptRecord]] = {}
        self._locks: dict[str, Lock] = {}
        self._keys: dict[tuple[str, str], KeyHolder] = {}
        self._appends: dict[str, tuple[Append, str]] = {}  # by ref; and when it has ended
        self._turns: dict[tuple[ItemKind, Turn], None] = {}
        self._unlisted: set[str] = set()
        self._healing: dict[str, Healing] = {}
        self._tables = count(1)
        self._table = f"table-{next(self._tables)}"
        self._lock = threading.RLock()

    def lose(self) -> None:
        """An empty table in its place, under everybody who uses it."""
        with self._lock:
            kept: list[Any] = [*self.parts(), self._attempts, self._unlisted]
            for one in kept:
                one.clear()
            self._table = f"table-{next(self._tables)}"

    @property
    def records(self) -> list[JobRecord]:
        """Those of all jobs."""
        with self._lock:
            return list(self._jobs.values())

    def expire(self, *refs: str) -> None:
        """The time to live of these jobs' items is over, or of all that there are."""
        with self._lock:
            for ref in refs or tuple(self._jobs):
                self._jobs.pop(ref, None)
                self._attempts.pop(ref, None)

    def write(self, ref: str, record: JobRecord) -> None:
        """Have this record at the ref, whatever the protocol says."""
        with self._lock:
            self._jobs[ref] = record

    @property
    def holders(self) -> set[str]:
        """The jobs, by their refs, that have a lock or are listed as appending and under way."""
        with self._lock:
            appends = {ref for ref, (one, _) in self._appends.items() if not one.ended}
            return appends | {lock.ref for lock in self._locks.values()}

    def backup(self) -> Self:
        """The table as it is now."""
        copy = type(self)()
        copy.restore(self)
        return copy

    def restore(self, earlier: Self) -> None:
        """What the table had earlier, in a new one, under everybody who uses it."""
        with self._lock:
            self.lose()
            for mine, theirs in zip(self.parts(), earlier.parts(), strict=True):
                mine.update(theirs)

    def resume(self, other: Self) -> None:
        """All that the other table has, and to be that table."""
        self.restore(other)
        self._table = other._table
        self._unlisted |= other._unlisted
        self._attempts.update({ref: dict(noted) for ref, noted in other._attempts.items()})

    def parts(self) -> list[dict[Any, Any]]:
        """The records; locks, keys, appends, turns; what is known of S3. Not copies."""
        parts = [self._jobs, self._locks, self._keys, self._appends, self._turns, self._healing]
        return cast("list[dict[Any, Any]]", parts)

    def job(self, ref: str) -> JobRecord | None:
        with self._lock:
            return self._jobs.get(ref)

    def jobs_with_id(self, job_id: str) -> list[JobRecord]:
        with self._lock:
            return [record for record in self._jobs.values() if record.job_id == job_id]

    def open_job(self, record: JobRecord) -> JobRecord:
        beside = opened_items(record)
        _check_size(record, beside, len(beside))
        with self._lock:
            standing = self._jobs.get(record.ref)
            if standing is None or (record.state is not OPEN and standing.state is OPEN):
                self._unlisted.discard(record.ref)
                self._jobs[record.ref] = record
                for one in beside:
                    self._put(record, one)
            return self._jobs[record.ref]

    def healing(self, bucket: str, *, now: str) -> Healing:
        with self._lock:
            return self._healing.setdefault(bucket, Healing(self._table, now)).of(self._table)

    def peek_healing(self) -> dict[str, Healing]:
        with self._lock:
            return {bucket: one.of(self._table) for bucket, one in self._healing.items()}

    def note_healing(self, bucket: str, healing: Healing) -> None:
        with self._lock:
            stands = self._healing.get(bucket)
            if stands is None or stands.table != healing.table or stands.whole:
                return
            if stands.until <= healing.until:
                self._healing[bucket] = healing

    def update(self, change: Change) -> JobRecord:
        ref, unlocked = change.before.ref, change.unlocked
        with self._lock:
            before = self._jobs.get(ref)
            after = change.made(before)
            assert before is not None
            put, drop = changed_items(before, after)
            _check_size(after, put, len(put) + len(drop) + len(unlocked))
            held = [one for one in put if not self._is_free(after, one)]
            if held or any(node in self._locks for node in unlocked):
                raise HeldError(f"job {ref}: another job holds what it needs")
            self._jobs[ref] = after
            for one in put:
                self._put(after, one)
            for one in drop:
                self._drop(before, one)
            return after

    def _is_free(self, record: JobRecord, one: Item) -> bool:
        if one.kind is ItemKind.LOCK:
            return one.name not in self._locks or self._locks[one.name].ref == record.ref
        holder = self._keys.get((destination_node(record.destination), one.name))
        return one.kind is not ItemKind.KEY or holder is None or holder.job_id == record.job_id

    def _put(self, record: JobRecord, one: Item) -> None:
        if one.kind is ItemKind.LOCK:
            self._locks[one.name] = Lock(one.name, record.ref)
        elif one.kind is ItemKind.KEY:
            self._keys[destination_node(record.destination), one.name] = holder_of(record)
        elif one.kind in {ItemKind.ASKED, ItemKind.DONE}:
            self._turns[one.kind, turn_of(record)] = None
        else:
            ended = one.kind is ItemKind.ENDED
            append = Append(one.name, record.ref, ended)
            at = (record.finished_at or record.updated_at) if ended else ""
            self._appends[record.ref] = append, at

    def _drop(self, record: JobRecord, one: Item) -> None:
        if one.kind is ItemKind.LOCK:
            self._locks.pop(one.name, None)
        elif one.kind is ItemKind.KEY:
            self._keys.pop((destination_node(record.destination), one.name), None)
        elif one.kind in {ItemKind.ASKED, ItemKind.DONE}:
            self._turns.pop((one.kind, turn_of(record)), None)

    def turns_asked(self, node: str, *, before: str) -> Iterator[Turn]:
        return self._turns_of(ItemKind.ASKED, node, "", before)

    def turns_done(self, node: str, *, since: str) -> Iterator[Turn]:
        with self._lock:
            last = max((one.requested_at for _, one in self._turns), default=since)
            now = self._clock.now() if self._clock else last
            days = days_of_turns(since, now)
            found = self._turns_of(ItemKind.DONE, node, since, "9")
        life = FORGOTTEN_DAYS * 86_400  # DynamoDB may delete one as soon as its time is over
        return (
            one
            for one in found
            if one.requested_at[:10] in days and seconds(one.requested_at, now) <= life
        )

    def _turns_of(self, kind: ItemKind, node: str, after: str, before: str) -> Iterator[Turn]:
        """By name alone, as in the keys: more than what meets the node."""
        top = "/".join(node.split("/", 2)[:2]) + "/"
        with self._lock:
            found = [
                turn
                for its, turn in self._turns
                if its is kind and turn.node.startswith(top) and after < turn.requested_at < before
            ]
        return iter(sorted(found))

    def record_attempt(self, attempt: AttemptRecord) -> None:
        check_record(attempt)
        with self._lock:
            noted = self._attempts.setdefault(attempt.ref, {})
            noted.setdefault((attempt.task_id, attempt.attempt_id), attempt)

    def attempts(self, ref: str) -> Iterator[AttemptRecord]:
        with self._lock:
            return iter(list(self._attempts.get(ref, {}).values()))

    def locks(self, nodes: Collection[str]) -> list[Lock]:
        with self._lock:
            return [self._locks[node] for node in sorted(nodes) if node in self._locks]

    def locks_below(self, node: str) -> Iterator[Lock]:
        with self._lock:
            below = [one for at, one in self._locks.items() if at.startswith(node) and at != node]
        return iter(sorted(below))

    def unlock(self, lock: Lock) -> None:
        with self._lock:
            if self._locks.get(lock.node) == lock:
                del self._locks[lock.node]

    def key_holder(self, destination: Destination, digest: str) -> KeyHolder | None:
        with self._lock:
            return self._keys.get((destination_node(destination), digest))

    def free_key(self, destination: Destination, digest: str, job_id: str) -> None:
        with self._lock:
            held = self._keys.get((destination_node(destination), digest))
            if held is not None and held.job_id == job_id:
                del self._keys[destination_node(destination), digest]

    def appends(self, node: str, *, below: bool) -> Iterator[Append]:
        with self._lock:
            ends = [ended for _, ended in self._appends.values() if ended]
            now = self._clock.now() if self._clock else max(ends, default=_LONG_AGO)
            read = where_ended(now)
            found = [
                one
                for one, ended in self._appends.values()
                if (one.node == node or (below and one.node.startswith(node)))
                and (not one.ended or ten_minutes(ended) in read)
                # DynamoDB may delete one as soon as its time is over.
                and not (one.ended and seconds(ended, now) > ENDED_SECONDS)
            ]
        return iter(sorted(found))

    def jobs_in(
        self, state: JobState, *, before: str, since: str = "", latest_first: bool = False
    ) -> Iterator[JobRecord]:
        with self._lock:
            found = [
                record
                for record in self._jobs.values()
                if record.state is state
                and since <= record.updated_at < before
                and record.ref not in self._unlisted
            ]
        return iter(sorted(found, key=lambda record: record.updated_at, reverse=latest_first))

    def all_jobs(self, *, most: int) -> list[JobRecord] | None:
        with self._lock:
            found = [one for ref, one in self._jobs.items() if ref not in self._unlisted]
        return found if len(found) < most else None

    def count_in(self, state: JobState, *, since: str, most: int) -> int:
        return sum(1 for _ in self.jobs_in(state, before="9", since=since))

    def unlist(self, ref: str) -> None:
        with self._lock:
            self._unlisted.add(ref)


def _check_size(record: JobRecord, put: Collection[Item], others: int) -> None:
    """Raise `InvalidInputError` for a transaction with ``others`` that DynamoDB would refuse."""
    check_record(record)
    for one in put:
        check_beside(record, one)
    if 1 + others > MAX_ITEMS:
        raise InvalidInputError(f"a transaction of more than {MAX_ITEMS} items")
