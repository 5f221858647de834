"""BeginPublish: every file of the plan is visible, or the job is rolled back."""

from dataclasses import replace
from functools import partial
from typing import Final

from s3commit.core.documents.pages import read_index
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.guards import own_record, unless_overtaken
from s3commit.core.jobs.rounds import next_round
from s3commit.core.jobs.to_publish import found_before
from s3commit.core.model.errors import AccessError, NeedsOperatorError
from s3commit.core.model.limits import DENIED_LOOKS, DENIED_PAUSE
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.parallel import together

# The states in which a twin that continued the job may have left it.
_BY_A_TWIN: Final = (
    *(JobState.PUBLISHING, JobState.COMMITTED),
    *(JobState.ROLLING_BACK, JobState.ROLLED_BACK),
)


def begin_publish(ports: Ports, ticket: Ticket) -> Ticket:
    """COMMITTING→PUBLISHING if every unit of the plan was counted complete, exactly once.

    If files are lost, COMMITTING→ROLLING_BACK instead. If units are missing, the job stays
    COMMITTING and the caller completes again; so it does some times where all that is lost was
    denied, since a policy may have been wrong for a moment. Raises `LostRaceError`;
    `NeedsOperatorError` if the plan is missing, or the machine could not read it, or if there is no
    index of the files to remove: no repetition helps, and nothing is undone for it.
    """
    record, found = together(
        ports.parallel,
        partial(own_record, ports, ticket, JobState.COMMITTING, *_BY_A_TWIN),
        # The steps that publish a small job follow in the same call.
        lambda: found_before(ports, ticket) if ticket.few else None,
    )
    ticket = replace(ticket, known=replace(ticket.known, found=found))
    if record.state is not JobState.COMMITTING:  # a repetition after a lost response
        return ticket.after(record)
    plan = record.planned
    if plan.units and not ticket.completed:
        raise NeedsOperatorError(
            f"Step Functions could not read {ticket.plan}: see the cause of CompleteUploads, fix"
            " it, and redrive this execution",
            code="PLAN_NOT_READ",
        )
    lost = sum(result.lost for result in ticket.completed)
    if lost:
        return _miss(ports, ticket, record, lost)
    # No unit can have more files visible than it has, so the sum says it of each.
    counted = sorted(result.unit for result in ticket.completed)
    visible = sum(result.files for result in ticket.completed)
    if counted != list(range(plan.units)) or visible != plan.files:
        return _again(ports, ticket, record)
    if ticket.replaces and record.replaced is not None:
        with unless_overtaken(ports, ticket, JobState.COMMITTING):
            # Not published without it: from there on nothing is undone.
            read_index(ports.store, ticket.directory.of_replaced, record.replaced.sha256)
    return ticket.after(ports.ledger.advance(record, JobState.PUBLISHING, now=ports.clock.now()))


def _again(ports: Ports, ticket: Ticket, record: JobRecord) -> Ticket:
    """The next round, which takes the plan itself."""
    return next_round(ports, replace(ticket, few=()), record)


def _miss(ports: Ports, ticket: Ticket, record: JobRecord, lost: int) -> Ticket:
    """Files are lost: undo the job, or complete again if all of them were denied."""
    reasons = [result.why for result in ticket.completed if result.lost]
    is_denied = all(why.startswith(AccessError.code) for why in reasons)
    if is_denied and ticket.looks < DENIED_LOOKS:
        again = _again(ports, ticket, record)
        pause = max(again.pause, DENIED_PAUSE * 2**ticket.looks)
        return replace(again, pause=pause, looks=ticket.looks + 1)
    failure = Failure(
        "UPLOADS_LOST",
        f"{lost} of {ticket.files} files could not be completed after the decision: their uploads"
        " were aborted by another program, expired or denied, or other objects have their names"
        f" ({reasons[0]}); write the data again",
    )
    now = ports.clock.now()
    return ticket.after(
        ports.ledger.advance(record, JobState.ROLLING_BACK, now=now, failure=failure)
    )
