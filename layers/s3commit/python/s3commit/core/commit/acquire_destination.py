"""AcquireDestination, and how claims are given back: jobs side by side (I6).

Each writes before it reads, and reads are strongly consistent: of two jobs that can't stand side by
side at least one sees the other. A job notes that it is ENTERING, puts its claims, and looks. If no
such job is there it is HELD, on condition that it is still ENTERING under the same epoch. Of two
that enter at once the one that asked later steps back, or is pushed back by the other one: then its
HELD fails. docs/proof.md has the reasons at length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.claims import BUSY, claimants, with_records
from s3commit.core.job.idempotency_key import refuse_taken_key
from s3commit.core.job.plan import read_partitions
from s3commit.core.job.record import move, planned_record, unless_overtaken
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
    must_wait_for,
    seconds,
)
from s3commit.core.model.record import JobRecord, Stage, Turn
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError


def acquire_destination(ports: Ports, ticket: Ticket) -> Ticket:
    """Hold all that the job claims, or none of it and say that it has to wait (I6).

    No job holds anything while it waits, so there is no deadlock; the job that asked first goes
    first. The job holds its claims, not its execution: a later execution finds them held. They are
    kept until the job has ended. Raises `JobRefusedError` (``DESTINATION_BUSY``) for a job that has
    waited too long, or finds too many others; before that as `refuse_taken_key`.
    """
    record = planned_record(ports, ticket, JobState.SEALED)
    wanted = _claims_of(ports, ticket, record)
    if holds(record, wanted):
        return replace(ticket, acquired=True, epoch=record.turn.epoch, pause=0)
    nodes = tuple(sorted({*record.locks, *(claim.node for claim in wanted)}))
    if record.turn.stage is Stage.WAITING and nodes == record.locks:
        found = _still_to_wait_for(ports, ticket, record) or _to_wait_for(
            ports, record, _claimants(ports, record)
        )
        if found:
            return _wait(ports, ticket, record, found)
    newcomer = not record.turn.since
    record = _enter(ports, record, nodes)
    rivals = _claimants(ports, record)
    found = _to_wait_for(ports, record, rivals)
    if not found:
        record = _move(ports, record, Stage.HELD)
        return replace(ticket, acquired=True, epoch=record.turn.epoch, pause=0)
    if newcomer:
        _refuse_a_crowd(ports, record, rivals)
    return _wait(ports, ticket, record, found)


def _claims_of(ports: Ports, ticket: Ticket, record: JobRecord) -> tuple[Claim, ...]:
    """What the job has to hold, by its policy and, in scope partition, by what it writes."""
    by_partition = record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION
    with unless_overtaken(ports, ticket, JobState.SEALED):
        partitions = read_partitions(ports, ticket.directory, record) if by_partition else ()
    return claims(record, partitions)


def _enter(ports: Ports, record: JobRecord, nodes: tuple[str, ...]) -> JobRecord:
    """Note that the job enters, and what it claims, before the first claim is put.

    So the step that ends the job finds them; claims that a late try puts after the end are ignored.
    A claim that is there already is put again: an earlier try may have died in between.

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
    """Note now and then that the job waits; return the ticket with the pause before it asks again.

    The pause grows with the time that the job has waited: a thousand jobs that wait for one ask
    some two hundred times a second at first, and fewer later. A job that has waited so long that
    its turn comes learns of it a fifth of that time later at most.
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
    """The jobs at the job's own destination, by id; a result must not reveal others."""
    own = destination_node(record)
    inside = sorted(one.job_id for one in found if destination_node(one).startswith(own))
    shown = inside[:5] + ([f"{len(inside) - 5} more"] if len(inside) > 5 else [])
    return ", ".join(shown) if inside else "a job that works on a directory above"


def _claimants(ports: Ports, record: JobRecord) -> list[Claimed]:
    """The claims that may conflict with the job's own.

    Not those of a job that waits and has asked later: it looks again before it holds.
    """
    return claimants(ports.ledger, ports.parallel, record, asked=record.turn.since)


def _still_to_wait_for(ports: Ports, ticket: Ticket, record: JobRecord) -> list[JobRecord]:
    """The one that the job waited for when it asked last, if it still has to wait for it.

    Then no other job needs to be read. A job that gives up reads all, to name them in its refusal.
    """
    gives_up = seconds(record.turn.since, ports.clock.now()) >= MAX_WAIT_SECONDS
    other = ports.ledger.job(ticket.behind) if ticket.behind and not gives_up else None
    return [other] if other and _other_goes_first(ports, other, record) else []


def _refuse_a_crowd(ports: Ports, record: JobRecord, found: Iterable[Claimed]) -> None:
    """Refuse a new job if too many wait already."""
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


def _to_wait_for(ports: Ports, record: JobRecord, found: Iterable[Claimed]) -> list[JobRecord]:
    """Some of the jobs that this one has to wait for; none if it has to wait for none.

    While it enters, it pushes back others that enter too and come after it.
    """
    for group in with_records(ports.ledger, ports.parallel, found):
        records = [one.record for one in group if one.record]
        here = [other for other in records if _other_goes_first(ports, other, record)]
        if here:
            return here
    return []


def _other_goes_first(ports: Ports, other: JobRecord, own: JobRecord) -> bool:
    """Settle which of the two goes first; True if it is the other one.

    Else the other one is aborted if it is dead, or pushed back if both enter.
    """
    now = ports.clock.now()
    if must_wait_for(other, own, now):
        return not _abort_if_dead(ports, other, now)
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
        return error.found is not None and _other_goes_first(ports, error.found, own)
    return False


def _abort_if_dead(ports: Ports, other: JobRecord, now: str) -> bool:
    """Abort the job if its execution is lost; True if it can't be decided any more (I6).

    The job is moved to ABORTING and its generation is raised before others proceed, so the ledger
    refuses an execution of it that wakes up later.
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
        move(ports, other, JobState.ABORTING, stalled_for)  # if it is SEALED still
        ports.ledger.take_over(other.ref, generation=other.generation, execution="", now=now)
    except LostRaceError:
        return False  # it lives
    return True
