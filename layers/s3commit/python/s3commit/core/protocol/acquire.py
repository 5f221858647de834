"""AcquireDestination, and how locks are given back: jobs side by side (I6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from s3commit.core.errors import JobRefusedError, TransientError
from s3commit.core.ledger import LostRaceError
from s3commit.core.locks import Claim, LockRecord, ask_all, claims, let_go
from s3commit.core.model import Conflict, Failure, JobRecord, Names, Scope
from s3commit.core.policy import HOLDER_SECONDS, LOCK_ROUNDS, MAX_WAITS
from s3commit.core.protocol.once import refuse_taken_key
from s3commit.core.protocol.partitions import read_partitions
from s3commit.core.protocol.pipeline import Pipeline, own_record, planned_record
from s3commit.core.states import ENDED, JobState
from s3commit.core.ticket import Ticket

# In these states a job is not decided and never will be: what it locks protects nothing.
HARMLESS = ENDED | {JobState.ABORTING}


def claims_of(pipeline: Pipeline, ticket: Ticket, record: JobRecord) -> tuple[Claim, ...]:
    """What the job has to hold, by its policy and, in scope partition, by what it writes."""
    by_partition = record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION
    partitions = read_partitions(pipeline, ticket.place, record) if by_partition else ()
    return claims(
        ticket.place,
        record.conflict,
        record.scope,
        partitions,
        record.idempotency_key,
        locations=record.plan.locations if record.plan else {},
        exact=record.names is Names.EXACT,
    )


def acquire_destination(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Hold all the locks that the job needs, or none and say that it has to wait (I6).

    They are taken in one transaction, so nobody holds a lock while it waits for another, and there
    is no deadlock; the job that waits longest goes first. Locks are held by jobs, not by
    executions: one that takes over finds them held. What a job holds it keeps until it has ended:
    else a try that stalled could give away what another one of the same job relies on. Raises
    `JobRefusedError` (``DESTINATION_BUSY``) after the last wait, before it as `refuse_taken_key`.
    """
    record = planned_record(pipeline, ticket, JobState.SEALED)
    wanted = claims_of(pipeline, ticket, record)
    nodes = {claim.node for claim in wanted}
    since = ticket.since or pipeline.clock.now()
    # Before they are taken, so that whoever ends the job finds them; and each time, as a sign of
    # life: a job that has waited long must not look dead once it holds them.
    pipeline.ledger.note(
        record.job_id,
        generation=record.generation,
        now=pipeline.clock.now(),
        locks=sorted(nodes | set(record.locks)),
    )
    blockers = _take_all(pipeline, record.job_id, wanted, since)
    _still_wanted(pipeline, ticket, nodes)
    if not blockers:
        return replace(ticket, acquired=True, since=since)
    refuse_taken_key(pipeline, ticket.place, record)
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
        for _ in range(LOCK_ROUNDS):
            before = pipeline.ledger.lock(node)
            after = let_go(before, job_id)
            if after == before or pipeline.ledger.put_lock(after):
                break
        else:
            raise _contended(node)


def _take_all(
    pipeline: Pipeline, job_id: str, wanted: tuple[Claim, ...], since: str
) -> frozenset[str]:
    """Take all nodes, or a place in each queue; who is in the way, and alive. Nobody: all held."""
    nodes = [claim.node for claim in wanted]
    for _ in range(LOCK_ROUNDS):
        before = {lock.node: lock for lock in pipeline.parallel(pipeline.ledger.lock, nodes)}
        now = pipeline.clock.now()
        after, blockers = ask_all(before.values(), wanted, job_id, since=since, now=now)
        dead = [other for other in sorted(blockers) if _is_dead(pipeline, other)]
        if dead:
            living = [_without(lock, dead) for lock in before.values()]
            after, blockers = ask_all(living, wanted, job_id, since=since, now=now)
        changed = [lock for node, lock in after.items() if lock != before[node]]
        if not changed or pipeline.ledger.put_locks(changed):
            return blockers
    raise _contended(nodes[-1])


def _without(lock: LockRecord, jobs: Iterable[str]) -> LockRecord:
    for job_id in jobs:
        lock = let_go(lock, job_id)
    return lock


def _contended(node: str) -> TransientError:
    return TransientError(f"the lock of {node} is being changed by too many jobs at once")


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


def _still_wanted(pipeline: Pipeline, ticket: Ticket, nodes: Iterable[str]) -> None:
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
