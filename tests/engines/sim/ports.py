"""What the processes see of the fakes: each port of the code under test, behind the door."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from s3commit.core.model.locks import Append, Lock, Turn
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.executions import Executions
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ListedObject, ObjectStore, OpenUpload
from tests.engines.sim.door import Door

STORE_VERBS = (
    "get", "first_bytes", "head", "upload_is_open", "put", "delete",
    "list_versions", "delete_seen", "create_upload", "upload_part", "copy_part",
    "abort_upload", "complete_upload",
)  # fmt: skip
LEDGER_VERBS = (
    "job", "open_job", "take_over", "advance", "decide", "note",
    "record_attempt", "attempts", "jobs_with_id", "lock", "locks", "unlock", "release", "give_up",
    "key_holder", "free_key",
    "unlist", "healing", "note_healing",
)  # fmt: skip
STALE = 0.2  # the share of listings of jobs that are answered from the past


def as_store(door: Door) -> ObjectStore:
    return cast("ObjectStore", _Store(door))


def as_ledger(door: Door) -> Ledger:
    return cast("Ledger", _Ledger(door))


def as_executions(door: Door, machine: Executions) -> Executions:
    """Step Functions, for the sweep."""
    return cast("Executions", _Verbs(door, machine, ("describe", "start")))


class _Verbs:
    def __init__(self, door: Door, target: object, verbs: tuple[str, ...]) -> None:
        self._door = door
        for verb in verbs:
            if hasattr(target, verb):
                setattr(self, verb, partial(door.call, verb, getattr(target, verb)))

    def _pages(
        self, verb: str, read: Callable[..., Any], mark: Callable[[Any], Any], first: Any
    ) -> Iterator[Any]:
        """Page by page: others may change what the next page shows."""
        last = first
        while True:
            found = self._door.call(verb, read, last)
            yield from found[: self._door.page]
            if len(found) <= self._door.page:
                return
            last = mark(found[self._door.page - 1])


class _Store(_Verbs):
    def __init__(self, door: Door) -> None:
        super().__init__(door, door.store, STORE_VERBS)

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        def read(last: str) -> Any:
            return list(self._door.store.list(bucket, prefix, after=last))

        return self._pages(f"list {prefix}", read, lambda one: one.key, after)

    def list_uploads(self, bucket: str, prefix: str, **after: str) -> Iterator[OpenUpload]:
        def read(last: tuple[str, str, str]) -> Any:
            found = self._door.store.list_uploads(bucket, prefix, **after)
            shown = (one for one in found if not self._door.is_late(one.upload_id))
            return sorted((one for one in shown if _mark(one) > last), key=_mark)

        return self._pages(f"list_uploads {prefix}", read, _mark, ("", "", ""))


def _place(one: Turn) -> str:
    return f"{one.requested_at}#{one.ref}"


def _mark(one: OpenUpload) -> tuple[str, str, str]:
    return one.key, one.initiated, one.upload_id


class _Ledger(_Verbs):
    def __init__(self, door: Door) -> None:
        super().__init__(door, door.ledger, LEDGER_VERBS)
        self._past: list[JobRecord] = []

    def jobs_in(
        self, state: JobState, *, before: str, since: str = "", latest_first: bool = False
    ) -> Iterator[JobRecord]:
        """From an index that may lag behind the table."""

        def read(state: JobState, since: str, before: str) -> list[JobRecord]:
            if self._door.faults.rate == 0 or self._door.rng.random() >= STALE:
                self._past = self._door.ledger.records
            found = [
                record
                for record in self._past
                if record.state is state and since <= record.updated_at < before
            ]
            return sorted(found, key=lambda one: one.updated_at, reverse=latest_first)

        yield from self._door.call("jobs_in", read, state, since, before)

    def locks_below(self, node: str) -> Iterator[Lock]:
        return self._consistently("locks_below", node, lambda one: one.node)

    def turns_asked(self, node: str, **when: str) -> Iterator[Turn]:
        self._door.decisions.looks()
        return self._consistently("turns_asked", node, _place, **when)

    def turns_done(self, node: str, **when: str) -> Iterator[Turn]:
        return self._consistently("turns_done", node, _place, **when)

    def appends(self, node: str, **where: bool) -> Iterator[Append]:
        def mark(one: Append) -> tuple[str, str]:
            return one.node, one.ref

        return self._consistently("appends", node, mark, first=("", ""), **where)

    def _consistently(
        self, verb: str, node: str, mark: Callable[[Any], Any], *, first: Any = "", **how: Any
    ) -> Iterator[Any]:
        def read(after: Any) -> list[Any]:
            found = getattr(self._door.ledger, verb)(node, **how)
            return [one for one in found if mark(one) > after]

        return self._pages(f"{verb} {node}", read, mark, first)
