"""AcquireDestination, and how locks are given back: jobs side by side (I6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from s3commit.core.errors import JobRefusedError, TransientError
from s3commit.core.locks import Claim, LockRecord, ask, claims, let_go, step_back
from s3commit.core.model import Conflict, Failure, JobRecord, Scope
from s3commit.core.policy import HOLDER_SECONDS, LOCK_ROUNDS, MAX_WAITS
from s3commit.core.ports import LostRaceError
from s3commit.core.protocol.partitions import read_partitions
from s3commit.core.protocol.pipeline import Pipeline, own_record
from s3commit.core.states import ENDED, JobState
from s3commit.core.ticket import Ticket

# In these states a job is not decided and never will be: what it locks protects nothing.
HARMLESS = ENDED | {JobState.ABORTING}


def claims_of(pipeline: Pipeline, ticket: Ticket, record: JobRecord) -> tuple[Claim, ...]:
    """What the job has to hold, by its policy and, in scope partition, by what it writes."""
    by_partition = record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION
    partitions = read_partitions(pipeline, ticket.place, record) if by_partition else ()
    return claims(ticket.place, record.conflict, record.scope, partitions, record.idempotency_key)


def acquire_destination(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Hold all the locks that the job needs, or none and say that it has to wait (I6).

    Nobody holds a lock while it waits for another, so there is no deadlock; the job that waits
    longest goes first. Locks are held by jobs, not by executions: one that takes over finds them
    held. Raises `JobRefusedError` (``DESTINATION_BUSY``) after the last wait.
    """
    record = own_record(pipeline, ticket, JobState.SEALED)
    wanted = claims_of(pipeline, ticket, record)
    nodes = tuple(claim.node for claim in wanted)
    since = ticket.since or pipeline.clock.now()
    # Before the first is taken, so that whoever ends the job finds them; and each time, as a sign
    # of life: a job that has waited long must not look dead once it holds them.
    record = pipeline.ledger.note(
        record.job_id, generation=record.generation, now=pipeline.clock.now(), locks=nodes
    )
    blockers = _take_all(pipeline, record.job_id, wanted, since)
    _still_wanted(pipeline, ticket, nodes)
    if not blockers:
        return replace(ticket, acquired=True, since=since)
    if ticket.waits >= MAX_WAITS:
        raise JobRefusedError(
            f"the destination has been held by {', '.join(sorted(blockers))} for too long;"
            " see s3commit status, and write again later",
            code="DESTINATION_BUSY",
        )
    return replace(ticket, acquired=False, since=since, waits=ticket.waits + 1)


def release_locks(pipeline: Pipeline, record: JobRecord) -> None:
    """Give back whatever the job may hold, and its places in the queues; repeatable."""
    _release(pipeline, record.job_id, record.locks)


def _release(pipeline: Pipeline, job_id: str, nodes: Iterable[str]) -> None:
    for node in nodes:
        _change(pipeline, node, partial(let_go, job_id=job_id))


def _take_all(
    pipeline: Pipeline, job_id: str, wanted: tuple[Claim, ...], since: str
) -> frozenset[str]:
    """Take the nodes in order; at one that is not free give back those before. Who is in the way.

    All jobs take their nodes in the same order, from the top down.
    """
    for index, claim in enumerate(wanted):
        blockers = _take(pipeline, job_id, claim, since)
        if blockers:
            back = partial(step_back, job_id=job_id, since=since, now=pipeline.clock.now())
            for earlier in wanted[:index]:
                _change(pipeline, earlier.node, back)
            return blockers
    return frozenset()


def _take(pipeline: Pipeline, job_id: str, claim: Claim, since: str) -> frozenset[str]:
    """Ask for the node until it is held, or those in the way are alive."""
    while True:
        now = pipeline.clock.now()
        blockers: frozenset[str] = frozenset()

        def asking(lock: LockRecord, now: str = now) -> LockRecord:
            nonlocal blockers
            after, blockers = ask(lock, job_id, claim.mode, since=since, now=now)
            return after

        _change(pipeline, claim.node, asking)
        dead = [other for other in blockers if _is_dead(pipeline, other)]
        if not dead:
            return blockers
        for other in dead:
            _change(pipeline, claim.node, partial(let_go, job_id=other))


def _change(
    pipeline: Pipeline, node: str, change: Callable[[LockRecord], LockRecord]
) -> LockRecord:
    """Compare and set until it holds. Raises `TransientError` if others are always faster."""
    for _ in range(LOCK_ROUNDS):
        before = pipeline.ledger.lock(node)
        after = change(before)
        if after == before or pipeline.ledger.put_lock(after):
            return after
    raise TransientError(f"the lock of {node} is being changed by too many jobs at once")


def _is_dead(pipeline: Pipeline, job_id: str) -> bool:
    """Whether the job can't be decided any more; one that has lost its execution is made so (I6).

    Its generation is raised and it is moved to ABORTING before its lock is taken away, so that an
    execution of it that wakes up later is refused by the ledger.
    """
    record = pipeline.ledger.job(job_id)
    if record is None or record.state in HARMLESS:
        return True
    if record.state is not JobState.SEALED:
        return False  # decided, or still OPEN and by that no holder
    now = pipeline.clock.now()
    stalled_at = datetime.fromisoformat(record.updated_at) + timedelta(seconds=HOLDER_SECONDS)
    if datetime.fromisoformat(now) < stalled_at:
        return False
    try:
        taken = pipeline.ledger.take_over(
            job_id, generation=record.generation, execution="", now=now
        )
        pipeline.ledger.advance(
            job_id,
            source=JobState.SEALED,
            target=JobState.ABORTING,
            generation=taken.generation,
            now=now,
            failure=Failure(
                "STALLED",
                f"the job held its destination for {HOLDER_SECONDS // 60} minutes without going"
                " on, and another one needed it; write the data again",
            ),
        )
    except LostRaceError:
        return False  # it lives
    return True


def _still_wanted(pipeline: Pipeline, ticket: Ticket, nodes: tuple[str, ...]) -> None:
    """Asked when the locks are held: whoever ends the job later lets them go.

    Whoever has ended it before has done so already; a late waker's locks would stand until another
    job comes across them.
    """
    try:
        own_record(pipeline, ticket, JobState.SEALED)
    except LostRaceError as error:
        if error.found is not None and error.found.state in HARMLESS:
            _release(pipeline, ticket.job_id, nodes)
        raise
