"""Locks on path nodes: who may work side by side, who waits, and who goes first.

A node is ``bucket/prefix/``. The modes are those of multiple granularity locking (Gray et al.,
1975): a job locks what it works on SHARED or EXCLUSIVE, and every node above it by intention, so
that overlapping destinations meet at a node of both. Everything here is pure; a ledger keeps the
records and changes them by compare and set.

A lock is subordinate to its holder's job: it is taken from a job only after that job has ended,
or can no longer be decided. Hence whoever is SEALED under its own generation still holds its locks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from s3commit.core.errors import JobRefusedError
from s3commit.core.layout import JobDirectory
from s3commit.core.model import Conflict, Scope
from s3commit.core.policy import (
    MAX_LOCKS,
    MAX_PARTITION_LOCKS,
    WAITER_REFRESH_SECONDS,
    WAITER_SECONDS,
)

Value = TypeVar("Value")


class LockMode(StrEnum):
    """How a node is held."""

    INTENT_SHARED = "IS"  # something below is appended to
    INTENT_EXCLUSIVE = "IX"  # something below is replaced, or must be empty
    SHARED = "S"  # appended to, anywhere below
    EXCLUSIVE = "X"  # replaced, or must be empty, as a whole


_IS, _IX, _S, _X = LockMode

# Which modes may stand beside which; docs/protocol.md shows it as a table, a test compares them.
COMPATIBLE: dict[LockMode, frozenset[LockMode]] = {
    _IS: frozenset({_IS, _IX, _S}),
    _IX: frozenset({_IS, _IX}),
    _S: frozenset({_IS, _S}),
    _X: frozenset(),
}

# What a job that holds a node in one mode need not ask for any more.
COVERS: dict[LockMode, frozenset[LockMode]] = {
    _IS: frozenset({_IS}),
    _IX: frozenset({_IS, _IX}),
    _S: frozenset({_IS, _S}),
    _X: frozenset(LockMode),
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits for a node: since when, and when it asked last. Times are RFC 3339, UTC."""

    mode: LockMode
    since: str
    seen: str


@dataclass(frozen=True, slots=True)
class LockRecord:
    """Who holds a node and who waits for it. ``version`` is 0 where nothing is stored yet."""

    node: str
    version: int = 0
    holders: Mapping[str, LockMode] = field(default_factory=dict)
    waiting: Mapping[str, Waiting] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nobody holds it or waits for it."""
        return not self.holders and not self.waiting


@dataclass(frozen=True, slots=True)
class Claim:
    """What a job asks of one node."""

    node: str
    mode: LockMode

    @property
    def intention(self) -> bool:
        """Whether it is about something below the node only."""
        return self.mode in {_IS, _IX}


def claims(
    place: JobDirectory,
    conflict: Conflict,
    scope: Scope,
    partitions: Iterable[str],
    key: str | None,
    *,
    locations: Mapping[str, str] | None = None,
    exact: bool = False,
) -> tuple[Claim, ...]:
    """Everything that a job has to hold before its decision, from the top down.

    ``partitions`` are relative to the destination and end with ``/``; the root's is empty. Too
    many of them are escalated to the whole destination. ``locations`` maps partitions to the
    prefixes where they lie: each is locked as a destination, in scope partition if it is among
    ``partitions``. Nobody locks a whole bucket, so the bucket is no node. ``exact`` names may meet
    those of another job, so that nobody appends beside it: else it could take the other's file,
    of the same bytes, for its own, and a roll back would delete it (I5). Raises `JobRefusedError`
    (``TOO_DEEP``) if the nodes above are too many.
    """
    node = f"{place.bucket}/{place.destination.prefix}"
    outside = {name: f"{place.bucket}/{prefix}" for name, prefix in (locations or {}).items()}
    above, room = _above_all(node, outside.values())
    room = min(MAX_PARTITION_LOCKS, room)
    if room < 1:
        raise JobRefusedError(
            f"{place.destination.uri} lies in {len(above)} directories, and a job locks all of"
            f" them: at most {MAX_LOCKS - 2 - len(outside)}",
            code="TOO_DEEP",
        )
    shared = conflict is Conflict.APPEND and not exact
    if conflict is Conflict.APPEND:
        wanted = dict.fromkeys([node, *outside.values()], _S if shared else _X)
    elif scope is Scope.DIRECTORY:
        wanted = dict.fromkeys([node, *outside.values()], _X)
    else:
        written = set(partitions)
        wanted = _partition_nodes(node, written - outside.keys(), room)
        wanted |= dict.fromkeys((outside[name] for name in written & outside.keys()), _X)
    if key is not None:
        wanted[f"{node}?once={key_digest(key)}"] = _X
    intention = _IS if shared else _IX
    everything = {**dict.fromkeys(above, intention), **wanted}
    return tuple(Claim(name, mode) for name, mode in sorted(everything.items()))


def fits(place: JobDirectory, locations: Mapping[str, str]) -> bool:
    """Whether a job can hold the locks of so many locations, so deep, all at once."""
    outside = [f"{place.bucket}/{prefix}" for prefix in locations.values()]
    return _above_all(f"{place.bucket}/{place.destination.prefix}", outside)[1] >= 1


def _above_all(node: str, outside: Collection[str]) -> tuple[list[str], int]:
    """The nodes above all of them, and how many more a job may hold: its own, and partitions'."""
    above = {name for one in (node, *outside) for name in _nodes_above(one)}
    return sorted(above), MAX_LOCKS - len(above) - len(outside) - 1  # one for the key


def _nodes_above(node: str) -> list[str]:
    bucket, *elements = node.removesuffix("/").split("/")
    return ["/".join([bucket, *elements[:depth]]) + "/" for depth in range(1, len(elements))]


def _partition_nodes(node: str, partitions: Iterable[str], room: int) -> dict[str, LockMode]:
    """The partitions' nodes and those between them and the destination.

    The root as a partition means the files directly in it: a node of its own, below it. More than
    ``room`` nodes are escalated to the destination.
    """
    exclusive = {f"{node}{name or '.'}" for name in partitions}
    between = {node}
    for name in exclusive:
        elements = name[len(node) :].split("/")[:-2]
        between |= {node + "/".join(elements[: depth + 1]) + "/" for depth in range(len(elements))}
    if len(exclusive | between) > room:
        return {node: _X}
    return {**dict.fromkeys(between, _IX), **dict.fromkeys(exclusive, _X)}


def key_digest(key: str) -> str:
    """The hex digest by which an idempotency key is named in S3 and in the ledger."""
    return hashlib.sha256(key.encode()).hexdigest()


def ask(
    record: LockRecord, job_id: str, mode: LockMode, *, since: str, now: str
) -> tuple[LockRecord, frozenset[str]]:
    """The record after the job asked, and who stands in its way: nobody if it holds the node now.

    In the way are others that hold it in a mode that is not compatible, and those that wait for
    such a mode longer (``since``, then the id) and have asked lately. What a job holds already it
    is never asked to wait for, nor does asking take it away.
    """
    held = record.holders.get(job_id)
    if held is not None and mode in COVERS[held]:
        return record, frozenset()
    since = _turn([record], job_id, since)
    blockers = {
        other
        for other, held in record.holders.items()
        if other != job_id and held not in COMPATIBLE[mode]
    }
    first = {
        other
        for other, waiting in record.waiting.items()
        if other != job_id
        and waiting.mode not in COMPATIBLE[mode]
        and (waiting.since, other) < (since, job_id)
        and _seconds(waiting.seen, now) <= WAITER_SECONDS
    }
    if blockers or first:
        return _queue(record, job_id, mode, since, now), frozenset(blockers | first)
    holders = {**record.holders, job_id: mode}
    return replace(record, holders=holders, waiting=_without(record.waiting, job_id)), frozenset()


def ask_all(
    records: Iterable[LockRecord], wanted: Iterable[Claim], job_id: str, *, since: str, now: str
) -> tuple[dict[str, LockRecord], frozenset[str]]:
    """The records after the job asked for all of its nodes at once, by node, and who is in its way.

    It gets all of them or none: if one is not free, it queues at every one. Hence nobody holds a
    node while waiting for another (no deadlock), and whoever comes later waits behind it wherever
    they would meet (nobody starves).
    """
    before = {record.node: record for record in records}
    since = _turn(before.values(), job_id, since)
    claims = tuple(wanted)
    blockers: set[str] = set()
    after = {}
    for claim in claims:
        after[claim.node], in_the_way = ask(
            before[claim.node], job_id, claim.mode, since=since, now=now
        )
        blockers |= in_the_way
    if blockers:
        for claim in claims:
            held = before[claim.node].holders.get(job_id)
            if held is None or claim.mode not in COVERS[held]:
                after[claim.node] = _queue(before[claim.node], job_id, claim.mode, since, now)
    return after, frozenset(blockers)


def _turn(records: Iterable[LockRecord], job_id: str, since: str) -> str:
    """Since when the job waits: its queue remembers it when another execution asks."""
    places = [record.waiting[job_id].since for record in records if job_id in record.waiting]
    return min([since, *places])


def _queue(record: LockRecord, job_id: str, mode: LockMode, since: str, now: str) -> LockRecord:
    """The record with the job in its queue; as it is if the job was seen there just now."""
    place = record.waiting.get(job_id)
    stands = place is not None and (place.mode, place.since) == (mode, since)
    if place and stands and _seconds(place.seen, now) < WAITER_REFRESH_SECONDS:
        return record
    return replace(record, waiting={**record.waiting, job_id: Waiting(mode, since, now)})


def let_go(record: LockRecord, job_id: str) -> LockRecord:
    """The record without the job."""
    return replace(
        record,
        holders=_without(record.holders, job_id),
        waiting=_without(record.waiting, job_id),
    )


def _without(values: Mapping[str, Value], job_id: str) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name != job_id}


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
