"""AcquireDestination: a job locks what it replaces, or waits (I6), and looks for its key (I11).

All nodes are locked in one transaction, which fails if another job holds one of them or a node
above. A job that has its locks then waits for those below that were there before: no new one can
come, and those jobs wait for none that came later. So no two jobs wait for each other.

Before it locks, a job waits for those that were requested earlier, as long as they live; with its
locks it looks whether a later one is committed: then it came too late (docs/adr/0037).
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from s3commit.core.documents.partition_list import read_partitions
from s3commit.core.documents.ticket import UNKNOWN, Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.guards import known_partitions, planned_record, unless_overtaken
from s3commit.core.jobs.idempotency import other_holder
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobRefusedError, NeedsOperatorError, TransientError
from s3commit.core.model.limits import (
    HOLDER_SECONDS,
    LOCKED_SECONDS,
    LONGEST_WAIT,
    MAX_NAMED,
    MAX_NODES,
    MAX_WAIT_SECONDS,
    S3_CLOCKS,
    SHORTEST_WAIT,
    TURN_DAYS,
    TURNS_LOOKED_AT,
    TURNS_READ,
    WAITER_REFRESH_SECONDS,
    WHOLE_AFTER_SECONDS,
)
from s3commit.core.model.locks import (
    CANNOT_COMMIT,
    Lock,
    covers,
    destination_node,
    meet,
    nodes_above,
    nodes_to_lock,
)
from s3commit.core.model.moments import seconds, shifted
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import JobRecord, Waits
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.ledger import HeldError, LostRaceError


def acquire_destination(ports: Ports, ticket: Ticket) -> Ticket:
    """Lock the nodes that the job replaces, or say that it has to wait; an append locks none.

    The job holds its locks, not its execution: a later execution finds them. They are kept until
    the job has ended. Raises `JobRefusedError`: ``DESTINATION_BUSY`` for a job that has waited too
    long, ``OVERTAKEN`` for one that came too late, and as `other_holder`.
    """
    record = planned_record(ports, ticket, JobState.SEALED, JobState.COMMITTING)
    if record.state is JobState.COMMITTING:  # by a twin, which continues
        return ticket.after(record)
    key = record.idempotency_key
    holder = other_holder(ports, record, key) if key is not None else None
    in_the_way = [holder] if holder else []
    if not in_the_way and record.conflict is not Conflict.APPEND:
        with unless_overtaken(ports, ticket, JobState.SEALED):
            reach = nodes_to_lock(record, known_partitions(ports, ticket, record))
        record, in_the_way = _lock(ports, record, _nodes(ports, record, reach))
        if not in_the_way and record.requested_at:
            _refuse_overtaken(ports, record, reach)
    if in_the_way:
        return _wait(ports, ticket, record, in_the_way)
    return replace(ticket.after(record), acquired=True)


def _reach(ports: S3Ports, record: JobRecord) -> tuple[str, ...]:
    """The nodes that a job with a plan replaces."""
    partitions: list[str] = []
    if record.scope is Scope.PARTITION:
        partitions = read_partitions(ports, JobDirectory.of(record), record)
    return nodes_to_lock(record, partitions)


def _nodes(ports: Ports, record: JobRecord, reach: tuple[str, ...]) -> tuple[str, ...]:
    """Those that it locks: after a long wait its whole destination."""
    whole = not record.locks and _waited(ports, record) >= WHOLE_AFTER_SECONDS
    return (destination_node(record.destination),) if whole else reach


def _lock(
    ports: Ports, record: JobRecord, nodes: tuple[str, ...]
) -> tuple[JobRecord, list[JobRecord]]:
    """Lock the nodes; return some of the jobs that block it, none if the job may continue."""
    if record.locks and not covers(record.locks, nodes):
        raise JobRefusedError(
            "the job writes to other partitions than when it locked them: its request has changed",
            code="REQUEST_CHANGED",
        )
    if not record.locks:
        standing = ports.ledger.locks([*nodes, *nodes_above(nodes)])
        in_the_way = list(_holders(ports, record, standing)) or _earlier(ports, record, nodes)
        if in_the_way:
            return record, in_the_way
        try:
            record = ports.ledger.lock(record, nodes, now=ports.clock.now())
        except HeldError as error:
            raise TransientError(f"another job was faster: {error.message}") from error
    below = ports.ledger.locks_below(destination_node(record.destination))
    meet = (lock for lock in below if covers(record.locks, [lock.node]))
    return record, list(islice(_holders(ports, record, meet), MAX_NAMED + 1))


def _earlier(ports: Ports, record: JobRecord, nodes: tuple[str, ...]) -> list[JobRecord]:
    """A job whose turn it is: requested earlier, alive, not decided. None if it is this one's turn.

    Those at its own destination and above come first: so no number of jobs below, whoever requests
    them, hides one of these (I12). For the same reason a job that has waited for long precedes
    those below.

    Requests: a read for each turn that may meet the job's nodes, `TURNS_READ` at most, and the list
    of its partitions; and whether its execution lives, for as many as `TURNS_LOOKED_AT`.
    """
    if not record.requested_at:
        return []
    own = destination_node(record.destination)
    is_long = _waited(ports, record) >= WHOLE_AFTER_SECONDS
    turns = [
        turn
        for turn in ports.ledger.turns_asked(own, before=shifted(record.requested_at, -S3_CLOCKS))
        if meet(nodes, [turn.node])  # a job reaches nothing outside its destination
        if own.startswith(turn.node) or not is_long
    ]
    turns.sort(key=lambda turn: not own.startswith(turn.node))
    others = (ports.ledger.job(turn.ref) for turn in turns[:TURNS_READ])
    in_the_way = (
        other
        for other in others
        if other and other.state is JobState.SEALED and meet(nodes, _known_reach(ports, other))
    )
    looked_at = islice(in_the_way, TURNS_LOOKED_AT)
    return list(islice((other for other in looked_at if ports.runs(other.execution)), 1))


def _known_reach(ports: S3Ports, other: JobRecord) -> tuple[str, ...]:
    """The nodes that another job replaces; its destination as long as they are not known."""
    if other.plan is not None:
        # It has ended since, or will be refused itself.
        with suppress(NeedsOperatorError, JobRefusedError):
            return _reach(ports, other)
    return (destination_node(other.destination),)


def _refuse_overtaken(ports: Ports, record: JobRecord, reach: tuple[str, ...]) -> None:
    """No job that was requested later is committed that had locked what this one replaces (I6).

    Checked under the job's locks, so none can be from here on. A job may have locked more than it
    wrote to. Raises `JobRefusedError` (``OVERTAKEN``).
    """
    own, since = destination_node(record.destination), shifted(record.requested_at, S3_CLOCKS)
    if seconds(record.requested_at, ports.clock.now()) > TURN_DAYS * 86_400:
        raise JobRefusedError(
            f"the commit was requested, or its last task ended, more than {TURN_DAYS} days ago, and"
            " later commits here are no longer known; write the data again",
            code="OVERTAKEN",
        )
    for turn in ports.ledger.turns_done(own, since=since):
        other = ports.ledger.job(turn.ref) if meet(reach, [turn.node]) else None
        locks = other.locks if other else (turn.node,)
        if meet(reach, locks):
            is_inside = turn.node.startswith(own)  # a result must not reveal others
            who = f"job {turn.ref.rpartition('-')[0]}" if is_inside else "a job of a table above"
            is_whole = other is not None and other.scope is Scope.PARTITION and turn.node in locks
            where = (
                "and locked its whole table, as a job does that has no partitions, or more than"
                f" {MAX_NODES}, or waits for {WHOLE_AFTER_SECONDS // 60} minutes"
                if is_whole
                else "to a place that this job writes to"
            )
            raise JobRefusedError(
                f"{who} was requested later and already committed {where}; this job changed"
                " nothing. If its data is the right one, write it again",
                code="OVERTAKEN",
            )


def _holders(ports: Ports, record: JobRecord, locks: Iterable[Lock]) -> Iterator[JobRecord]:
    """The other jobs that hold these locks and may still be decided, or are.

    A lock counts for as much as its job's record does: that of a job that is harmless is removed,
    and a job whose execution is lost is aborted first.
    """
    seen = {record.ref}
    for lock in locks:
        if lock.ref in seen:
            continue
        other = ports.ledger.job(lock.ref)
        if other is None or other.state in CANNOT_COMMIT or _abort_if_dead(ports, other):
            ports.ledger.unlock(lock)
            continue
        seen.add(lock.ref)
        yield other


def _abort_if_dead(ports: Ports, other: JobRecord) -> bool:
    """Abort the job if its execution is lost; True if it can't be decided any more (I6).

    The job is moved to ABORTING and its generation is raised before others proceed, so the ledger
    refuses an execution of it that wakes up later.
    """
    now = ports.clock.now()
    silent = seconds(other.updated_at, now) >= HOLDER_SECONDS
    too_long = other.locked_at != "" and seconds(other.locked_at, now) >= LOCKED_SECONDS
    if other.state is not JobState.SEALED or not (silent or too_long):
        return False
    failure = Failure(
        "STALLED",
        "the job held its destination without progress, and another job needed it; write the data"
        " again",
    )
    try:
        # If it is SEALED still.
        ports.ledger.advance(other, JobState.ABORTING, now=now, failure=failure)
        ports.ledger.take_over(other, execution="", now=now)
    except LostRaceError:
        return False  # it lives
    return True


def _wait(ports: Ports, ticket: Ticket, record: JobRecord, others: list[JobRecord]) -> Ticket:
    """Note that the job waits; return the ticket with the pause before it asks again.

    The pause grows with the time that the job has waited: a thousand jobs that wait for one ask
    some two hundred times a second at first, and fewer later.
    """
    now, waited = ports.clock.now(), _waited(ports, record)
    if waited >= MAX_WAIT_SECONDS:
        raise JobRefusedError(
            f"the job waited too long for {_names(record, others)}; check `s3commit status`, then"
            " write again",
            code="DESTINATION_BUSY",
        )
    waits = Waits(
        record.waits.since if record.waits else now,
        tuple(sorted(other.ref for other in others)[:MAX_NAMED]),
    )
    if waits != record.waits or seconds(record.updated_at, now) >= WAITER_REFRESH_SECONDS:
        record = ports.ledger.note(record, now=now, plan=record.plan, waits=waits)
        ticket = replace(ticket, known=UNKNOWN)
    pause = min(max(SHORTEST_WAIT, int(waited) // 5), LONGEST_WAIT)
    return replace(ticket.after(record), acquired=False, pause=pause)


def _waited(ports: Ports, record: JobRecord) -> float:
    return seconds(record.waits.since, ports.clock.now()) if record.waits else 0.0


def _names(record: JobRecord, others: Iterable[JobRecord]) -> str:
    """The jobs at the job's own destination, by id; a result must not reveal others."""
    own = destination_node(record.destination)
    inside = sorted(
        one.job_id for one in others if destination_node(one.destination).startswith(own)
    )
    shown = inside[:MAX_NAMED] + (["others"] if len(inside) > MAX_NAMED else [])
    return ", ".join(shown) if inside else "a job that works on a directory above"
