"""Claims on path nodes: who may work side by side, who waits, and who goes first.

A node is ``bucket/prefix/``. A job claims what it works on, each node for itself, and nothing above
it: two jobs meet where a node of one is a node of the other, or lies above it. A job's own record
says whether it holds what it claims or waits for it (`Turn`). Everything here is pure; the ledger
keeps the claims, and `s3commit.core.commit.acquire_destination` looks at them.

A claim counts as long as its job's record does: a claim of a job that has ended, or can no longer
be decided, is ignored. Hence a job that is SEALED and HELD under its own generation still holds all
of its claims.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.limits import (
    MAX_LOOKS,
    MAX_NODE_BYTES,
    MAX_PARTITION_LOCKS,
    WAITER_SECONDS,
)
from s3commit.core.model.record import JobRecord, Stage
from s3commit.core.model.states import ENDED, JobState

# In these states a job is not decided and never will be: what it claims protects nothing.
HARMLESS = ENDED | {JobState.ABORTING}
_ONCE = "?once="


class LockMode(StrEnum):
    """How a node is claimed."""

    SHARED = "S"  # appended to, anywhere below
    EXCLUSIVE = "X"  # replaced, or must be empty, as a whole
    KEY = "K"  # an idempotency key, which is a node of its own; its job claims the rest besides


_S, _X, _K = LockMode

# Which modes may stand beside which; docs/protocol.md shows it as a table, a test compares them.
COMPATIBLE: dict[LockMode, frozenset[LockMode]] = {
    _S: frozenset({_S, _K}),
    _X: frozenset({_K}),
    _K: frozenset({_S, _X}),
}


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """What a job asks of one node."""

    node: str
    mode: LockMode

    def meets(self, other: Claim) -> bool:
        """Whether the two may not be held side by side."""
        return other.mode not in COMPATIBLE[self.mode] and (
            _lies_in(self.node, other.node) or _lies_in(other.node, self.node)
        )


@dataclass(frozen=True, slots=True, order=True)
class Claimed:
    """A claim that the ledger has, and whose; its job has put it in ``epoch`` (`Turn`).

    ``waits``: the job has waited since then, and first asked at ``asked`` (RFC 3339; empty: not
    known). Who enters again puts its claims again before it looks at others.
    """

    claim: Claim
    ref: str
    waits: bool = False
    asked: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class ClaimQuery:
    """One query for the claims of others: those of a mode at a node, or also ``below`` it."""

    claim: Claim
    below: bool


def claims(record: JobRecord, partitions: Iterable[str]) -> tuple[Claim, ...]:
    """Everything that a job has to hold before its decision, by its policy; by node.

    ``partitions`` are relative to the destination and end with ``/``; the root's is empty, and
    means the files directly in it, a node of its own. Too many of them are escalated to the whole
    destination. No job claims a whole bucket. Raises `JobRefusedError` (``TOO_DEEP``) if the nodes
    above are too many to look at.
    """
    destination, key = record.destination, record.idempotency_key
    node = destination_node(record)
    if len(_looked_at([node])) > MAX_LOOKS:
        raise JobRefusedError(
            f"{destination.uri} lies too deep: a job looks at each directory above what it"
            f" writes to, {MAX_LOOKS} at most",
            code="TOO_DEEP",
        )
    if record.conflict is Conflict.APPEND or record.scope is Scope.DIRECTORY:
        nodes = {node}
    else:
        nodes = _partition_nodes(node, set(partitions))
    if key is not None:
        nodes.add(f"{node}{_ONCE}{key_digest(key)}")
    return tuple(Claim(name, _mode(name, record)) for name in sorted(nodes))


def claimed(record: JobRecord) -> tuple[Claim, ...]:
    """The claims that the record notes, by node: the modes follow from the job's policy."""
    return tuple(Claim(node, _mode(node, record)) for node in record.locks)


def holds(record: JobRecord, wanted: Iterable[Claim]) -> bool:
    """Whether the job holds all of it, by the same node or one above."""
    return record.turn.stage is Stage.HELD and all(
        claim.node in record.locks
        or (claim.mode is not _K and any(_lies_in(claim.node, node) for node in record.locks))
        for claim in wanted
    )


def claim_queries(record: JobRecord) -> Iterator[ClaimQuery]:
    """The queries that find all who claim what can't stand beside what the record notes.

    The destination is read with all that lies below it, once for all partitions.
    """
    own = claimed(record)
    node = destination_node(record)
    roots = {
        node if claim.node.startswith(node) else claim.node for claim in own if claim.mode is not _K
    }
    for mode in (_S, _X):
        if all(mode in COMPATIBLE[claim.mode] for claim in own):
            continue
        for name in sorted(_looked_at(roots)):
            yield ClaimQuery(Claim(name, mode), below=name in roots)
    yield from (ClaimQuery(claim, below=False) for claim in own if claim.mode is _K)


def destination_node(record: JobRecord) -> str:
    """The node of the job's destination."""
    return f"{record.destination.bucket}/{record.destination.prefix}"


def must_wait_for(other: JobRecord, own: JobRecord, now: str) -> bool:
    """Whether ``own`` has to wait for the other, whose claim can't stand beside its own.

    It does for one that is decided and has not ended, or holds; and for one that waits or enters,
    has asked before it, and has been seen lately.
    """
    if other.state in HARMLESS:
        return False
    if other.turn.stage is Stage.HELD or other.state not in {JobState.OPEN, JobState.SEALED}:
        return True
    if other.turn.stage is Stage.NONE:
        return False
    return _goes_before(other, own) and seconds(other.updated_at, now) <= WAITER_SECONDS


def key_digest(key: str) -> str:
    """The hex digest by which an idempotency key is named in S3 and in the ledger."""
    return hashlib.sha256(key.encode()).hexdigest()


def seconds(earlier: str, later: str) -> float:
    """The seconds between two moments, RFC 3339."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def _goes_before(one: JobRecord, other: JobRecord) -> bool:
    """A total order of all jobs, which both of two compute alike."""
    return (one.turn.since, one.ref) < (other.turn.since, other.ref)


def _lies_in(node: str, other: str) -> bool:
    return node == other or (other.endswith("/") and node.startswith(other))


def _mode(node: str, record: JobRecord) -> LockMode:
    if not node.endswith("/") and f"/{_ONCE}" in node:
        return _K
    return _S if record.conflict is Conflict.APPEND else _X


def _looked_at(roots: Collection[str]) -> set[str]:
    """The roots and all nodes above them."""
    return {name for one in roots for name in (one, *_nodes_above(one))}


def _nodes_above(node: str) -> list[str]:
    bucket, *elements = node.removesuffix("/").split("/")
    return ["/".join([bucket, *elements[:depth]]) + "/" for depth in range(1, len(elements))]


def _partition_nodes(node: str, partitions: Collection[str]) -> set[str]:
    nodes = {f"{node}{name or '.'}" for name in partitions}
    too_long = any(len(name.encode()) > MAX_NODE_BYTES for name in nodes)
    return {node} if too_long or len(nodes) > MAX_PARTITION_LOCKS else nodes
