"""SealJob: the first step of every execution, of the first as of any that goes on later."""

from __future__ import annotations

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import one_line
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.decision_record import put_decision
from s3commit.core.job.documents import read_request, read_spec
from s3commit.core.job.record import moved, new_record
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.job import AbortRequest, Failure, JobSpec
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ownership.other_jobs import is_further_up
from s3commit.core.ports.bundle import Ports
from s3commit.core.recovery.lost_record import record_from_s3, recorded_failure

ABORTED_BY_CLIENT = "ABORTED_BY_CLIENT"
ABANDONED = "ABANDONED"
JOB_ID_TAKEN = "JOB_ID_TAKEN"


def seal_job(ports: Ports, ticket: Ticket) -> Ticket:
    """Take the job over and, if it is OPEN, fix what its request says: SEALED or ABORTING.

    A job that is further on is left in its state; the caller goes on from there. Taking over raises
    the generation, so whatever an earlier execution still tries is refused by the ledger. An
    execution takes over once: its repeated call, even one that comes late, must not fence it off
    from itself.
    Raises `LostRaceError` if another one takes over at the same time, and `NeedsOperatorError`
    (``LEDGER_SET_BACK``) for an undecided job that was decided before the table was set back.
    """
    directory = ticket.directory
    record = _find_or_open(ports, directory)
    if record.state in ENDED:
        return ticket.after(record)
    has_it_already = record.execution == ticket.execution != ""
    if not has_it_already:
        record = ports.ledger.take_over(
            record.ref,
            generation=record.generation,
            execution=ticket.execution,
            now=ports.clock.now(),
        )
    if record.state is JobState.COMMITTING:
        put_decision(ports, record)  # its execution may have died right after the decision
    refused = _why_refused(ports, ticket, record)
    if record.state is JobState.OPEN or refused:
        record = moved(ports, record, JobState.ABORTING if refused else JobState.SEALED, refused)
    return ticket.after(record)


def _why_refused(ports: Ports, ticket: Ticket, record: JobRecord) -> Failure | None:
    """The reason for which an undecided job is aborted at once, or None.

    The job's first execution has the job's ref as its name, which Step Functions gives once in 90
    days: no other can have ended the job before. Any later one asks S3 what became of it.
    """
    if record.state not in {JobState.OPEN, JobState.SEALED}:
        return None
    failure = _why_not(ports, ticket.directory) if record.state is JobState.OPEN else None
    if failure is None and ticket.execution.rpartition(":")[2] != ticket.ref:
        return recorded_failure(ports, ticket.directory, record)
    return failure


def _why_not(ports: Ports, directory: JobDirectory) -> Failure | None:
    """The reason for which the job is aborted at once, or None."""
    try:
        request = read_request(ports, directory)
        if isinstance(request, AbortRequest):
            code = ABANDONED if request.abandoned else ABORTED_BY_CLIENT
            return Failure(code, one_line(request.reason or "the client asked for it"))
        read_spec(ports, directory)
    except (InvalidInputError, JobRefusedError) as error:
        return Failure(error.code, one_line(error.message))
    if is_further_up(ports.store, directory, ports.parallel):
        return Failure(
            JOB_ID_TAKEN,
            f"a directory above {directory.destination.uri} has a job with id"
            f" {directory.job_id}; write the data again under a new id",
        )
    return None


def _find_or_open(ports: Ports, directory: JobDirectory) -> JobRecord:
    record = ports.ledger.job(directory.ref)
    if record is not None:
        return record
    try:
        spec = read_spec(ports, directory)
    except InvalidInputError:
        # The record is needed to end the job by; _why_not says what is wrong with it. A job that
        # does not belong here was never decided here, whatever results a copy has brought along.
        facts = ports.store.head(directory.bucket, directory.job)
        put_at = facts.modified if facts else ""  # without one no upload is its own
        spec = JobSpec(directory.job_id, directory.destination, put_at=put_at)
        return ports.ledger.open_job(new_record(spec, directory, ports.clock.now()))
    return ports.ledger.open_job(record_from_s3(ports, directory, spec))
