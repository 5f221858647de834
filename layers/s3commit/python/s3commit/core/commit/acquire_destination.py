"""AcquireDestination, and how claims are given back: jobs side by side (I6).

Each writes before it reads, and reads are strongly consistent: of two jobs that can't stand side by
side at least one sees the other. A job notes that it is ENTERING, puts its claims, and looks. If
nobody is there it is HELD, on condition that it is still ENTERING under the same epoch. Of two that
enter at once the one that asked later steps back, or is pushed back by the other one: then its HELD
fails. docs/proof.md has the reasons at length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.claims import BUSY, claimants, with_records
from s3commit.core.job.idempotency_key import refuse_taken_key
from s3commit.core.job.partitions import read_partitions
from s3commit.core.job.record import moved, planned_record
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict, Failure, Scope
from s3commit.core.model.limits import (
    HOLDER_SECONDS,
    LONGEST_WAIT,
    MAX_CLAIMS_READ,
    MAX_WAIT_SECONDS,
    MAX_WAITING,
    SHORTEST_WAIT,
    WAITER_REFRESH_SECONDS,
)
from s3commit.core.model.locks import (
    Claim,
    Claimed,
    LockMode,
    claimed,
    claims,
    destination_node,
    holds,
    in_the_way,
    seconds,
)
from s3commit.core.model.record import JobRecord, Stage, Turn
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError


def acquire_destination(ports: Ports, ticket: Ticket) -> Ticket:
    """Hold all that the job claims, or none of it and say that it has to wait (I6).

    Nobody holds while it waits, so there is no deadlock; the job that asked first goes first. What
    is held is held by the job, not by an execution: one that takes over finds it held. It is kept
    until the job has ended. Raises `JobRefusedError` (``DESTINATION_BUSY``) for one that has waited
    too long, or finds too many there; before that as `refuse_taken_key`.
    """
    record = planned_record(ports, ticket, JobState.SEALED)
    wanted = _claims_of(ports, ticket, record)
    if holds(record, wanted):
        return replace(ticket, acquired=True, epoch=record.turn.epoch, pause=0)
    nodes = tuple(sorted({*record.locks, *(claim.node for claim in wanted)}))
    if record.turn.stage is Stage.WAITING and nodes == record.locks:
        found = _still_in_the_way(ports, ticket, record) or _in_the_way(
            ports, record, _claimants(ports, record)
        )
        if found:
            return _wait(ports, ticket, record, found)
    newcomer = not record.turn.since
    record = _enter(ports, record, nodes)
    rivals = _claimants(ports, record)
    found = _in_the_way(ports, record, rivals)
    if not found:
        record = _move(ports, record, Stage.HELD)
        return replace(ticket, acquired=True, epoch=record.turn.epoch, pause=0)
    if newcomer:
        _refuse_a_crowd(ports, record, rivals)
    return _wait(ports, ticket, record, found)


def _claims_of(ports: Ports, ticket: Ticket, record: JobRecord) -> tuple[Claim, ...]:
    """What the job has to hold, by its policy and, in scope partition, by what it writes."""
    by_partition = record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION
    partitions = read_partitions(ports, ticket.directory, record) if by_partition else ()
    return claims(record, partitions)


def _enter(ports: Ports, record: JobRecord, nodes: tuple[str, ...]) -> JobRecord:
    """Note that the job enters, and what it claims, before the first claim is put.

    So whoever ends the job finds them; those that a try puts after its end are in nobody's way. A
    claim that is there already is put again: a try of before may have died in between.

    The epoch is above the generation, which follows the time: were a lost record made anew, its
    claims would else be of earlier epochs than those that the ledger still has.
    """
    now = ports.clock.now()
    epoch = max(record.turn.epoch, record.generation) + 1
    record = ports.ledger.take_turn(
        record.ref,
        generation=record.generation,
        before=record.turn,
        after=Turn(Stage.ENTERING, record.turn.since or now, epoch),
        locks=nodes,
        now=now,
    )
    _put_claims(ports, record)
    return record


def _put_claims(ports: Ports, record: JobRecord, *, waits: bool = False) -> None:
    def put(claim: Claim) -> None:
        asked = record.turn.since if waits else ""
        ports.ledger.put_claim(Claimed(claim, record.ref, waits, asked, record.turn.epoch))

    for _ in ports.parallel(put, claimed(record)):
        pass


def _move(ports: Ports, record: JobRecord, stage: Stage) -> JobRecord:
    return ports.ledger.take_turn(
        record.ref,
        generation=record.generation,
        before=record.turn,
        after=replace(record.turn, stage=stage),
        now=ports.clock.now(),
    )


def _wait(ports: Ports, ticket: Ticket, record: JobRecord, found: list[JobRecord]) -> Ticket:
    """Say that the job waits, now and then alone, and for how long before it asks again.

    That grows with the time, so that a thousand who wait for one ask some two hundred times a
    second at first, and fewer later; and it learns of its turn a fifth of its wait late at most.
    """
    refuse_taken_key(ports, ticket.directory, record)
    now = ports.clock.now()
    waited = seconds(record.turn.since, now)
    if waited >= MAX_WAIT_SECONDS:
        raise JobRefusedError(
            f"the destination has been held by {_names(record, found)} for too long;"
            " see s3commit status, and write again later",
            code=BUSY,
        )
    if record.turn.stage is not Stage.WAITING:
        record = _move(ports, record, Stage.WAITING)
        _put_claims(ports, record, waits=True)
    elif seconds(record.updated_at, now) >= WAITER_REFRESH_SECONDS:
        record = _move(ports, record, Stage.WAITING)
    ahead = sum(_is_waiting(one) for one in found)
    pause = max(SHORTEST_WAIT, SHORTEST_WAIT * ahead, int(waited) // 5)
    behind = found[0].ref
    if behind == ticket.behind:  # it may have looked at that one alone, and not at who waits too
        pause = max(pause, ticket.pause)
    return replace(ticket, acquired=False, pause=min(pause, LONGEST_WAIT), behind=behind)


def _is_waiting(record: JobRecord) -> bool:
    return record.state is JobState.SEALED and record.turn.stage is Stage.WAITING


def _names(record: JobRecord, found: Iterable[JobRecord]) -> str:
    """Those at the job's own destination by id; of others nobody may learn from a result."""
    own = destination_node(record)
    inside = sorted(one.job_id for one in found if destination_node(one).startswith(own))
    shown = inside[:5] + ([f"{len(inside) - 5} more"] if len(inside) > 5 else [])
    return ", ".join(shown) if inside else "a job that works on a directory above"


def _claimants(ports: Ports, record: JobRecord) -> list[Claimed]:
    """Those who may be in the way.

    Who waits and has asked later is not: it looks again before it holds, and then finds the job.
    """
    return claimants(ports.ledger, ports.parallel, record, asked=record.turn.since)


def _still_in_the_way(ports: Ports, ticket: Ticket, record: JobRecord) -> list[JobRecord]:
    """The one that the job waited for when it asked last, if it has to go on doing so.

    Then nobody else needs to be looked at. Who gives up says whom else it has waited for.
    """
    gives_up = seconds(record.turn.since, ports.clock.now()) >= MAX_WAIT_SECONDS
    other = ports.ledger.job(ticket.behind) if ticket.behind and not gives_up else None
    return [other] if other and _has_to_be_waited_for(ports, other, record) else []


def _refuse_a_crowd(ports: Ports, record: JobRecord, found: Iterable[Claimed]) -> None:
    """Tell a job that has just come if too many wait already."""
    waiting = {one.ref for one in found if one.waits}
    node = destination_node(record)
    if Claim(node, LockMode.SHARED) in claimed(record):
        beside = ports.ledger.claims(Claim(node, LockMode.SHARED), below=False)
        waiting |= {one.ref for one in islice(beside, MAX_CLAIMS_READ) if one.waits}
    if len(waiting) >= MAX_WAITING:
        raise JobRefusedError(
            f"{MAX_WAITING} jobs wait for the destination already; see s3commit status, and write"
            " again later",
            code=BUSY,
        )


def _in_the_way(ports: Ports, record: JobRecord, found: Iterable[Claimed]) -> list[JobRecord]:
    """Those for whom the job has to wait: some of them, and none if there is none.

    While it enters, others that do, and go after it, are pushed back.
    """
    for group in with_records(ports.ledger, ports.parallel, found):
        records = [one.record for one in group if one.record]
        here = [other for other in records if _has_to_be_waited_for(ports, other, record)]
        if here:
            return here
    return []


def _has_to_be_waited_for(ports: Ports, other: JobRecord, own: JobRecord) -> bool:
    now = ports.clock.now()
    if in_the_way(other, own, now):
        return not _is_dead(ports, other, now)
    enters = other.state is JobState.SEALED and other.turn.stage is Stage.ENTERING
    if not enters or own.turn.stage is not Stage.ENTERING:
        return False
    try:
        ports.ledger.take_turn(
            other.ref,
            generation=other.generation,
            before=other.turn,
            after=replace(other.turn, stage=Stage.WAITING),
            now=other.updated_at,  # it is no sign of its life
        )
    except LostRaceError as error:
        return error.found is not None and _has_to_be_waited_for(ports, error.found, own)
    return False


def _is_dead(ports: Ports, other: JobRecord, now: str) -> bool:
    """Whether the job can't be decided any more; one that has lost its execution is made so (I6).

    It is moved to ABORTING and its generation is raised before others go on, so that an execution
    of it that wakes up later is refused by the ledger.
    """
    stalled = seconds(other.updated_at, now) >= HOLDER_SECONDS
    if other.state is not JobState.SEALED or not stalled:
        return False
    try:
        stalled_for = Failure(
            "STALLED",
            f"the job held its destination for {HOLDER_SECONDS // 60} minutes without going"
            " on, and another one needed it; write the data again",
        )
        moved(ports, other, JobState.ABORTING, stalled_for)  # if it is SEALED still
        ports.ledger.take_over(other.ref, generation=other.generation, execution="", now=now)
    except LostRaceError:
        return False  # it lives
    return True
