"""SealJob: the first step of every execution, of those too that resume a job."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import one_line
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.decision_record import heal, put_decision, read_decision, record_from_s3
from s3commit.core.job.documents import read_request, read_spec, refusing_unreadable
from s3commit.core.job.record import committed_holder, new_record, record_of
from s3commit.core.job.uploads import is_further_up
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.job import ALREADY_COMMITTED, AbortRequest, Failure, JobSpec
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports, together
from s3commit.core.ports.objects import listed_at

ABORTED_BY_CLIENT = "ABORTED_BY_CLIENT"
ABORTED_BY_OPERATOR = "ABORTED_BY_OPERATOR"
ABANDONED = "ABANDONED"
JOB_ID_TAKEN = "JOB_ID_TAKEN"


def seal_job(ports: Ports, ticket: Ticket) -> Ticket:
    """Take the job over and, if it is OPEN, fix what its request says: SEALED or ABORTING.

    A job in a later state stays in it; the caller resumes from there. A person may give up one that
    is SEALED, too: after the decision the ledger's condition refuses that. Taking over raises the
    generation, so the ledger refuses what an earlier execution still tries. An execution takes over
    once: a repeated or late call of its own must not fence it off. While an empty ledger is healed
    nothing is done, and the ticket has the pause before the step comes again. Raises
    `LostRaceError` if another one takes over at the same time, and `NeedsOperatorError`
    (``LEDGER_RESTORED``) if the table was restored from a backup.
    """
    directory = ticket.directory
    pause, found = together(
        ports.parallel, partial(heal, ports, directory.bucket), partial(record_of, ports, directory)
    )
    if pause:
        return replace(ticket, pause=pause)
    record = found or _opened(ports, directory)
    if record.state in ENDED:
        return ticket.after(record)
    # A request is put once, so it may be read before the job is this execution's.
    record, request = together(
        ports.parallel,
        partial(_taken_over, ports, record, ticket.execution),
        partial(_judge_request, ports, record) if record.state is JobState.OPEN else str,
    )
    if record.state is JobState.COMMITTING:
        put_decision(ports, record)  # its execution may have died right after the decision
    if ticket.gives_up and record.state in {JobState.OPEN, JobState.SEALED}:
        why, now = Failure(ABORTED_BY_OPERATOR, one_line(ticket.gives_up)), ports.clock.now()
        record = ports.ledger.advance(record, JobState.ABORTING, now=now, failure=why)
    if record.state is JobState.OPEN:
        refused, asked = (request, None) if isinstance(request, Failure) else (None, request)
        target, now = JobState.ABORTING if refused else JobState.SEALED, ports.clock.now()
        record = ports.ledger.advance(record, target, now=now, failure=refused, requested_at=asked)
    return ticket.after(record)


def _taken_over(ports: Ports, record: JobRecord, execution: str) -> JobRecord:
    """The record under this execution."""
    if record.execution == execution != "":
        return record
    return ports.ledger.take_over(record, execution=execution, now=ports.clock.now())


def _judge_request(ports: Ports, record: JobRecord) -> Failure | str:
    """The reason for which the job is aborted at once, or when its commit was requested."""
    directory = JobDirectory.of(record)
    try:
        with refusing_unreadable(ports, directory):
            request, wrong, is_inner = together(
                ports.parallel,
                partial(read_request, ports, directory),
                partial(_wrong_spec, ports, directory),
                partial(is_further_up, ports, directory),
            )
        if isinstance(request, AbortRequest):
            code = ABANDONED if request.abandoned else ABORTED_BY_CLIENT
            if request.abandoned and committed_holder(ports, record):
                code = ALREADY_COMMITTED
            return Failure(code, one_line(request.reason or "the client asked for it"))
        if wrong is not None:
            raise wrong
    except (InvalidInputError, JobRefusedError) as error:
        return Failure(error.code, one_line(error.message))
    if is_inner:
        return Failure(
            JOB_ID_TAKEN,
            f"a directory above {directory.destination.uri} has a job with id"
            f" {directory.job_id}; write the data again under a new id",
        )
    return max(request.put_at, record.opened_at) if request.put_at else ""


def _wrong_spec(ports: Ports, directory: JobDirectory) -> InvalidInputError | None:
    """What is wrong with ``_job.json``; an abort does not mind."""
    try:
        read_spec(ports, directory)
    except InvalidInputError as error:
        return error
    return None


def _opened(ports: Ports, directory: JobDirectory) -> JobRecord:
    """The record of a job that was not known; the one that stands, if it was opened meanwhile."""
    try:
        with refusing_unreadable(ports, directory):
            spec = read_spec(ports, directory)
    except InvalidInputError:
        # A decided job stays one, whatever was made of its _job.json since.
        decided = read_decision(ports, directory.bucket, directory.decision)
        if decided is not None:
            return ports.ledger.open_job(decided)
        # The record is needed to end the job by; _why_not says what is wrong with it. A job that
        # does not belong here was never decided here, whatever results a copy has brought along.
        listed = listed_at(ports.store, directory.bucket, directory.job)
        put_at = listed.modified if listed else ""  # without one no upload is its own
        spec = JobSpec(directory.job_id, directory.destination, put_at=put_at)
        return ports.ledger.open_job(new_record(spec, directory, ports.clock.now()))
    return ports.ledger.open_job(record_from_s3(ports, directory, spec))
