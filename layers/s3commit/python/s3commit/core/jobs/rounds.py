"""When a step comes again, how many workers it gets, and how executions are started."""

from dataclasses import replace
from datetime import datetime

from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.limits import (
    EXECUTION_HOURS,
    LONGEST_ROUND_WAIT,
    SHORTEST_WAIT,
    WAITED_SHARE,
)
from s3commit.core.model.moments import seconds, shifted
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import NO_REASON, Executions, Reason


def next_round(
    ports: Ports, ticket: Ticket, record: JobRecord, *, page: int = 0, is_cut: bool = False
) -> Ticket:
    """The ticket with which a step that could not finish comes again, from ``page`` on.

    The longer the job has been in its state, under this execution, the longer the pause. It is
    short if the call's time ``is_cut``.
    """
    waited = 0 if is_cut else int(seconds(record.updated_at, ports.clock.now()))
    pause = max(SHORTEST_WAIT, min(waited // WAITED_SHARE, LONGEST_ROUND_WAIT))
    return replace(ticket.after(record), page=page, pause=pause)


def share_workers(ports: Ports, ticket: Ticket) -> Ticket:
    """The ticket with its ``workers``, if the Map is what comes next, in this round.

    The deployment's, divided by the jobs that are COMMITTING now; at least one, so that each makes
    progress. A job keeps them until its Map has ended, so for a while more may be at work. A small
    one does not ask: what it could leave to others is over in a second.
    """
    if ticket.state is not JobState.COMMITTING or not ticket.units:
        return ticket
    most = min(ports.workers.of_one, ticket.units)
    if most > 1:
        since = shifted(ports.clock.now(), -EXECUTION_HOURS * 3600)
        most_jobs = ports.workers.of_all
        jobs = ports.ledger.count_in(JobState.COMMITTING, since=since, most=most_jobs)
        most = min(most, ports.workers.of_all // max(1, jobs))
    return replace(ticket, workers=max(1, most))


def start_execution(
    executions: Executions, directory: JobDirectory, due: str, reason: Reason = NO_REASON
) -> str | None:
    """Start an execution for the job; its ARN, or None if one was started for the same moment.

    ``due`` (RFC 3339) is when it fell due, to the second. The name says so: of all who start one
    for the same reason one does, and the name of one that died immediately, which Step Functions
    keeps for 90 days, is not the next one's. One too many does no harm: it takes the job over.
    """
    seconds = int(datetime.fromisoformat(due).timestamp())
    return executions.start(f"{directory.ref}-{seconds:x}", directory, reason)
