"""AcquireDestination, CheckConditions and DecideCommit: from a sound plan to the decision."""

from __future__ import annotations

from dataclasses import replace

from s3commit.core.errors import JobRefusedError
from s3commit.core.layout import JobDirectory
from s3commit.core.policy import MAX_WAITS
from s3commit.core.ports import LockMode, LostRaceError
from s3commit.core.protocol.pipeline import Pipeline, own_record, read_spec
from s3commit.core.protocol.seal import check_spec
from s3commit.core.states import ENDED, JobState
from s3commit.core.ticket import Ticket


def lock_node(place: JobDirectory) -> str:
    """The name of the lock that stands on a destination."""
    return f"{place.bucket}/{place.destination.prefix}"


def acquire_destination(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Hold the destination's lock for the job, or say that it has to wait (I6).

    Append runs beside append, so an appending job shares it. Locks are held by jobs, not by
    executions: one that takes over finds it held. Raises `JobRefusedError` after the last wait.
    """
    node = lock_node(ticket.place)
    acquired = pipeline.ledger.acquire(node, job_id=ticket.job_id, mode=LockMode.SHARED)
    _still_wanted(pipeline, ticket, node)
    if acquired:
        return replace(ticket, acquired=True)
    if ticket.waits >= MAX_WAITS:
        holders = ", ".join(sorted(pipeline.ledger.lock_holders(node)))
        raise JobRefusedError(
            f"the destination has been held by {holders} for too long; write again later",
            code="DESTINATION_BUSY",
        )
    return replace(ticket, acquired=False, waits=ticket.waits + 1)


def _still_wanted(pipeline: Pipeline, ticket: Ticket, node: str) -> None:
    """Asked when the lock is held: whoever ends the job later lets it go.

    Whoever has ended it before has done so already; a late waker's lock would stand for ever.
    """
    try:
        own_record(pipeline, ticket, JobState.SEALED)
    except LostRaceError as error:
        if error.found is not None and error.found.state in ENDED:
            pipeline.ledger.release(node, job_id=ticket.job_id)
        raise


def check_conditions(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Judge the job's policy against what is at the destination.

    Appending asks nothing of it: the names are unique to the job, which the codec has checked.
    Raises `JobRefusedError` for a policy that this version does not offer.
    """
    own_record(pipeline, ticket, JobState.SEALED)
    check_spec(read_spec(pipeline, ticket.place))
    return ticket


def decide_commit(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """The decision: from here on the job is going to be committed (I1, I6).

    Raises `LostRaceError` if the state, generation, plan or lock is not what it was; nothing is
    decided then. Repeated after a lost response, it finds its own decision and goes on.
    """
    record = own_record(pipeline, ticket, JobState.SEALED, JobState.COMMITTING)
    if record.state is JobState.COMMITTING:
        return ticket.after(record)
    if record.plan is None:
        raise LostRaceError(f"job {ticket.job_id} has no plan", record)
    decided = pipeline.ledger.decide(
        record.job_id,
        generation=record.generation,
        plan=record.plan,
        lock_node=lock_node(ticket.place),
        now=pipeline.clock.now(),
    )
    return ticket.after(decided)
