"""AbortJob: a job ends before its decision."""

from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.conclusion import conclude
from s3commit.core.jobs.guards import own_record
from s3commit.core.jobs.ownership import abort_uploads
from s3commit.core.jobs.rounds import next_round
from s3commit.core.model.outcome import Failure
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime


def abort_job(ports: Ports, ticket: Ticket) -> Ticket:
    """End a job before its decision: abort all its uploads (I4), then ABORTED and the result.

    Nothing visible is deleted: before its decision a job has completed nothing (I12).
    A SEALED job comes here with the refusal of the step that refused it. While uploads are still
    being opened, or the call has no time for all, the job stays ABORTING, and the caller comes
    again. Raises `LostRaceError`.
    """
    record = own_record(ports, ticket, JobState.SEALED, JobState.ABORTING, JobState.ABORTED)
    if record.state is JobState.SEALED:
        failure = ticket.refusal or Failure(ticket.code or "REFUSED", "the job was refused")
        record = ports.ledger.advance(
            record, JobState.ABORTING, now=ports.clock.now(), failure=failure
        )
    if record.state is JobState.ABORTING:
        time = CallTime(ports.clock)
        if not abort_uploads(ports, ticket.directory, time):
            return next_round(ports, ticket, record, is_cut=time.is_cut)
        record = ports.ledger.advance(record, JobState.ABORTED, now=ports.clock.now())
    return conclude(ports, ticket, record)
