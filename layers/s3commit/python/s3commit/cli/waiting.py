"""What a job holds, what it waits for, and who is in its way, as the ledger's locks say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from s3commit.cli.session import Session
from s3commit.core.ledger import Ledger
from s3commit.core.locks import COMPATIBLE, Claim, LockMode, LockRecord, ask
from s3commit.core.model import JobRecord
from s3commit.core.states import ENDED, JobState

ReadLock = Callable[[str], LockRecord]


@dataclass(frozen=True, slots=True)
class InTheWay:
    """A job that keeps another one waiting at ``node``.

    It holds the node in ``mode``, or (``holds`` False) waits for it longer. ``record`` is None if
    the ledger does not know it, ``execution`` its execution's status where that was asked for.
    """

    job_id: str
    node: str
    mode: LockMode
    holds: bool
    record: JobRecord | None
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a job stands among others: a job holds all that it needs, or nothing and waits.

    ``since`` is when it first asked, RFC 3339; None if it does not wait. ``kept_waiting`` are the
    jobs that wait for what it holds.
    """

    holds: tuple[Claim, ...]
    waits: tuple[Claim, ...]
    since: str | None
    in_the_way: tuple[InTheWay, ...]
    kept_waiting: tuple[str, ...] = ()


def read_standing(session: Session, ledger: Ledger, record: JobRecord, now: str) -> Standing | None:
    """Read every lock of a job, and the records of those in its way; None if it needs none now.

    A request for each node (some five; a hundred for a job that replaces many partitions).
    """
    if not record.locks or record.state in ENDED:
        return None
    found = session.parallel(ledger.lock, record.locks)
    locks = {lock.node: lock for lock in found}
    in_order = [locks[node] for node in record.locks]
    job_id = record.job_id
    waiting = [lock for lock in in_order if job_id in lock.waiting]
    since = min((lock.waiting[job_id].since for lock in waiting), default=None)
    return Standing(
        holds=tuple(
            Claim(lock.node, lock.holders[job_id]) for lock in in_order if job_id in lock.holders
        ),
        waits=tuple(Claim(lock.node, lock.waiting[job_id].mode) for lock in waiting),
        since=since,
        in_the_way=tuple(_blockers(ledger, waiting, job_id, now)),
        kept_waiting=tuple(sorted(set(_kept_waiting(in_order, job_id)))),
    )


def first_in_the_way(
    read_lock: ReadLock, record: JobRecord, now: str
) -> tuple[str, tuple[str, ...]] | None:
    """Since when the job waits, and for whom: a request for each node down to the one where.

    None if it holds what it needs, or has not asked yet.
    """
    if record.state is not JobState.SEALED:
        return None
    for node in record.locks:  # in the order in which they are taken
        lock = read_lock(node)
        waiting = lock.waiting.get(record.job_id)
        if waiting is None:
            return None
        names = _names(lock, record.job_id, now)
        if names:
            return waiting.since, names
    return None


def _blockers(
    ledger: Ledger, waiting: Iterable[LockRecord], job_id: str, now: str
) -> Iterator[InTheWay]:
    told: set[str] = set()
    for lock in waiting:
        for name in _names(lock, job_id, now):
            if name in told:
                continue  # the node highest up says enough
            told.add(name)
            holds = name in lock.holders
            mode = lock.holders[name] if holds else lock.waiting[name].mode
            yield InTheWay(name, lock.node, mode, holds, ledger.job(name))


def _kept_waiting(locks: Iterable[LockRecord], job_id: str) -> Iterator[str]:
    for lock in locks:
        held = lock.holders.get(job_id)
        for other, waiting in lock.waiting.items():
            if held is not None and other != job_id and held not in COMPATIBLE[waiting.mode]:
                yield other


def _names(lock: LockRecord, job_id: str, now: str) -> tuple[str, ...]:
    """Who keeps the job waiting at this node, by the protocol's own rule."""
    own = lock.waiting[job_id]
    _, blockers = ask(lock, job_id, own.mode, since=own.since, now=now)
    return tuple(sorted(blockers))
