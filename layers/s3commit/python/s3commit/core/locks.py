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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from s3commit.core.layout import JobDirectory
from s3commit.core.model import Conflict, Scope
from s3commit.core.policy import MAX_PARTITION_LOCKS, WAITER_SECONDS

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
) -> tuple[Claim, ...]:
    """Everything that a job has to hold before its decision, from the top down.

    ``partitions`` are relative to the destination and end with ``/``; the root's is empty. Too
    many of them are escalated to the whole destination.
    """
    node = f"{place.bucket}/{place.destination.prefix}"
    if conflict is Conflict.APPEND:
        wanted = {node: _S}
    elif scope is Scope.DIRECTORY:
        wanted = {node: _X}
    else:
        wanted = _partition_nodes(node, partitions)
    if key is not None:
        wanted[f"{node}?once={key_digest(key)}"] = _X
    above = _IS if conflict is Conflict.APPEND else _IX
    bucket, *elements = node.removesuffix("/").split("/")
    intentions = ["/".join([bucket, *elements[:depth]]) + "/" for depth in range(1, len(elements))]
    everything = {**dict.fromkeys(intentions, above), **wanted}
    return tuple(Claim(name, mode) for name, mode in sorted(everything.items()))


def _partition_nodes(node: str, partitions: Iterable[str]) -> dict[str, LockMode]:
    """The partitions' nodes and those between them and the destination.

    The root as a partition means the files directly in it: a node of its own, below it.
    """
    exclusive = {f"{node}{name or '.'}" for name in partitions}
    between = {node}
    for name in exclusive:
        elements = name[len(node) :].split("/")[:-2]
        between |= {node + "/".join(elements[: depth + 1]) + "/" for depth in range(len(elements))}
    if len(exclusive | between) > MAX_PARTITION_LOCKS:
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
    such a mode longer (``since``, then the id) and have asked lately.
    """
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
    others_waiting = _without(record.waiting, job_id)
    if blockers or first:
        queue = {**others_waiting, job_id: Waiting(mode, since, now)}
        # One that held it in a weaker mode keeps what it has while it waits for more.
        return replace(record, waiting=queue), frozenset(blockers | first)
    holders = {**record.holders, job_id: mode}
    return replace(record, holders=holders, waiting=others_waiting), frozenset()


def step_back(record: LockRecord, job_id: str, *, since: str, now: str) -> LockRecord:
    """The record after the job gave the node back and queues for it in the same mode.

    A job holds all of its nodes or none, so nobody waits for one that waits itself; in the queue
    it keeps its turn.
    """
    if job_id not in record.holders:
        return record
    queue = {**record.waiting, job_id: Waiting(record.holders[job_id], since, now)}
    return replace(record, holders=_without(record.holders, job_id), waiting=queue)


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
