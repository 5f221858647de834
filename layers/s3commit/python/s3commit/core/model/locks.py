"""Locks on directories: which jobs work side by side, and which have to wait.

A node is ``bucket/prefix/``. A job that replaces, or must find nothing, locks its nodes: no other
job may lock one of them, a node above or a node below until it has ended. A job that appends locks
nothing. From its decision on it is listed as under way, so that a job that replaces leaves its
files where they are, as if it had come later (I6). Jobs that lock take turns, in the order of their
requests (docs/adr/0037).

The ledger's other items for a job follow from its record (`items`), and is written in the same
transaction. So a lock, a key or an append is never there without its job.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.fields import SPARSE
from s3commit.core.model.limits import (
    APPEND_SECONDS,
    FUNCTION_CLOCKS,
    MAX_ITEMS,
    MAX_NODE_BYTES,
    MAX_NODES,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState

# In these states a job is not decided and never will be: its locks protect nothing.
CANNOT_COMMIT = ENDED | {JobState.ABORTING}

# Ended appends are found by the ten minutes in which they ended, of the clock of who ended them.
TEN_MINUTES: Final = 600

# Each reader goes so much further than its own clock says, to both sides: once for A7, and once
# more, since another neighbour costs nothing, and an append that is not found is deleted.
_FURTHER: Final = 2 * FUNCTION_CLOCKS
ENDED_SECONDS: Final = APPEND_SECONDS + _FURTHER  # for which one is kept


class ItemKind(StrEnum):
    """The kinds of items that the ledger keeps for a job beside its record."""

    LOCK = "LOCK"  # of a node; one job at a time
    KEY = "KEY"  # an idempotency key at a destination; one job
    APPEND = "APPEND"  # the job is adding files below its destination
    ENDED = "ENDED"  # it did so a while ago
    ASKED = "ASKED"  # the turn of a job that locks, and is not decided yet
    DONE = "DONE"  # the turn of one that is committed


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """One of them: ``name`` is a node, or the digest of a key."""

    kind: ItemKind
    name: str


@dataclass(frozen=True, slots=True, order=True)
class Lock:
    """A lock that the ledger has, and the job that holds it, by its ref."""

    node: str
    ref: str


@dataclass(frozen=True, slots=True, order=True)
class Append:
    """A job that appends below a node: under way, or ``ended`` a while ago."""

    node: str
    ref: str
    ended: bool


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """The place of a job that locks in the order of the requests; ``node`` is its destination's.

    Two of them have an order if they were requested more than `S3_CLOCKS` apart.
    """

    requested_at: str
    ref: str
    node: str


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The job that has an idempotency key, by its id, and what is known of its data.

    ``directories`` is the digest of where it is (`PlanFacts`), empty if that is not known.
    ``undone_by`` is the id of a job that has undone it: then the key is free.
    """

    job_id: str
    files: int
    rows: int | None = None
    directories: Annotated[str, SPARSE] = ""
    undone_by: Annotated[str, SPARSE] = ""


def holder_of(record: JobRecord) -> KeyHolder:
    """The job as the holder of its key."""
    plan = record.plan
    if plan is None:
        return KeyHolder(record.job_id, 0)
    return KeyHolder(record.job_id, plan.files, plan.rows, plan.directories)


def items(record: JobRecord) -> frozenset[Item]:
    """The items beside the record."""
    found = set()
    if record.state not in CANNOT_COMMIT:
        found |= {Item(ItemKind.LOCK, node) for node in record.locks}
    if record.decided_at is not None:
        if record.idempotency_key is not None and record.state is not JobState.ROLLED_BACK:
            found.add(Item(ItemKind.KEY, key_digest(record.idempotency_key)))
        if record.conflict is Conflict.APPEND:
            node = destination_node(record.destination)
            found.add(Item(ItemKind.ENDED if record.state in ENDED else ItemKind.APPEND, node))
    turn = {JobState.SEALED: ItemKind.ASKED, JobState.COMMITTED: ItemKind.DONE}.get(record.state)
    if turn and record.requested_at and record.conflict is not Conflict.APPEND:
        found.add(Item(turn, destination_node(record.destination)))
    return frozenset(found)


def changed_items(before: JobRecord, after: JobRecord) -> tuple[list[Item], list[Item]]:
    """The items to put and the items to delete with a write of the record, each in order."""
    old, new = items(before), items(after)
    return sorted(new - old), sorted(old - new)


def nodes_to_lock(record: JobRecord, partitions: Iterable[str]) -> tuple[str, ...]:
    """The nodes that a job which does not append replaces, and locks before its decision, in order.

    ``partitions`` are relative to the destination and end with ``/``; the root's is empty, and
    means the files directly in it, a node of its own. Too many of them are the whole destination.
    No job locks a whole bucket. Raises `JobRefusedError` (``TOO_DEEP``) if the nodes above are too
    many for one transaction.
    """
    node = destination_node(record.destination)
    if len(nodes_above([node])) + 2 > MAX_ITEMS:
        raise JobRefusedError(
            f"{record.destination.uri} is too deep: at most {MAX_ITEMS - 2} directories may be"
            " above what a job locks",
            code="TOO_DEEP",
        )
    nodes = tuple(sorted({f"{node}{name or './'}" for name in partitions}))
    too_long = any(len(name.encode()) > MAX_NODE_BYTES for name in nodes)
    too_many = len(nodes) > MAX_NODES or len(nodes) + len(nodes_above(nodes)) >= MAX_ITEMS
    is_whole = record.scope is Scope.DIRECTORY or not nodes
    return (node,) if is_whole or too_long or too_many else nodes


def nodes_above(nodes: Collection[str]) -> list[str]:
    """The nodes above these, in order; a bucket is none, and none of ``nodes`` is among them."""
    found = set()
    for node in nodes:
        elements = node.removesuffix("/").split("/")
        found |= {"/".join(elements[:depth]) + "/" for depth in range(2, len(elements))}
    return sorted(found.difference(nodes))


def covers(locked: Collection[str], nodes: Iterable[str]) -> bool:
    """True if each of the nodes is locked, or is below one that is."""
    return all(node.startswith(tuple(locked)) for node in nodes)


def meet(one: Iterable[str], other: Collection[str]) -> bool:
    """True if a node of the one is a node of the other, or is above or below it."""
    return any(mine.startswith(its) or its.startswith(mine) for mine in one for its in other)


def destination_node(destination: Destination) -> str:
    """The node of a destination."""
    return f"{destination.bucket}/{destination.prefix}"


def key_digest(key: str) -> str:
    """The hex digest by which an idempotency key is named in S3 and in the ledger."""
    return hashlib.sha256(key.encode()).hexdigest()


def ten_minutes(moment: str) -> str:
    """The ten minutes that a moment is in (RFC 3339, UTC)."""
    return moment[: len("2026-11-21T22:0")]


def turn_of(record: JobRecord) -> Turn:
    """The job's turn."""
    return Turn(record.requested_at, record.ref, destination_node(record.destination))


def days_of_turns(since: str, now: str) -> list[str]:
    """The days on which jobs were requested since then, by the clock of whoever."""
    first = datetime.fromisoformat(since).date()
    last = (datetime.fromisoformat(now) + timedelta(seconds=FUNCTION_CLOCKS)).date()
    return [str(first + timedelta(days=day)) for day in range((last - first).days + 1)]


def where_ended(now: str) -> list[str]:
    """The `ten_minutes` of the appends that have ended within `APPEND_SECONDS`."""
    present = datetime.fromisoformat(now)
    ago = range(-_FURTHER, ENDED_SECONDS + 1, TEN_MINUTES)
    return [ten_minutes((present - timedelta(seconds=one)).isoformat()) for one in ago]
