"""SealJob: the first step of every execution, of those too that resume a job."""

from dataclasses import replace
from functools import partial

from s3commit.core.documents.decision_json import read_decision
from s3commit.core.documents.job_json import JobSpec, read_spec
from s3commit.core.documents.request_json import AbortRequest, CommitRequest, read_request
from s3commit.core.documents.ticket import Known, Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import one_line
from s3commit.core.jobs.counted_manifests import first_manifests
from s3commit.core.jobs.guards import refusing_unreadable
from s3commit.core.jobs.healing import heal, record_from_s3, result_of
from s3commit.core.jobs.lost_lists import GOES_BY_LISTS, keep_lists
from s3commit.core.jobs.ownership import has_owner_above
from s3commit.core.jobs.record import committed_holder, new_record, record_of
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    S3CommitError,
)
from s3commit.core.model.limits import are_few
from s3commit.core.model.outcome import ALREADY_COMMITTED, Failure, Outcome
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import listed_at
from s3commit.core.ports.parallel import together

# In any other state it may show files.
_UNDECIDED = frozenset({JobState.OPEN, JobState.SEALED, JobState.ABORTING, JobState.ABORTED})

# Request, `_job.json` or what is wrong with it, and if a directory above has a job of the id.
_Documents = tuple[CommitRequest | AbortRequest, JobSpec | InvalidInputError, bool]


def seal_job(ports: Ports, ticket: Ticket) -> Ticket:
    """Take the job over and, if it is OPEN, fix what its request says: SEALED or ABORTING.

    A job in a later state stays in it; the caller resumes from there. A person may abort one that
    is SEALED, too: after the decision the ledger's condition refuses that. Taking over raises the
    generation, so the ledger refuses what an earlier execution still tries. An execution takes over
    once: a repeated or late call of its own must not fence it off. While an empty ledger is healed
    nothing is done, and the ticket has the pause before the step comes again. The documents are
    known to the step that follows. Raises `LostRaceError` if another one takes over at the same
    time, or if the job is forgotten, `NeedsOperatorError` if a decided job is
    ``OUTSIDE_PREFIXES``, and as `heal`.
    """
    directory = ticket.directory
    pause, found, documents = together(
        ports.parallel,
        partial(heal, ports, directory.bucket, directory),
        partial(record_of, ports, directory),
        # A request is put once, so it may be read before the job is this execution's.
        partial(_read_documents, ports, directory),
    )
    if pause:
        return replace(ticket, pause=pause)
    ticket = replace(ticket, known=_known(documents))
    record = found or _opened(ports, directory, documents)
    outside = _outside(ports, directory)
    if outside and record.state not in _UNDECIDED:
        raise NeedsOperatorError(
            f"job {record.job_id} was decided, and {record.destination.uri} is outside the prefixes"
            " since then. Nothing was undone: add the prefix again and deploy, and it continues",
            code=outside.code,
        )
    if record.state in ENDED:
        return ticket.after(record)
    if record.state is JobState.OPEN and not ticket.gives_up:
        return _seal(ports, ticket, record, documents)
    if record.execution != ticket.execution or not ticket.execution:
        now = ports.clock.now()
        record = ports.ledger.take_over(record, execution=ticket.execution, now=now)
    if record.state in GOES_BY_LISTS:
        # Its execution may have died right after the decision, and its lists may be lost since.
        record = keep_lists(ports, record, ticket.gives_up if ticket.lists_lost else "")
    why = outside and Failure(outside.code, outside.message)
    if ticket.gives_up:
        why = Failure("ABORTED_BY_OPERATOR", one_line(ticket.gives_up))
    if why and record.state in {JobState.OPEN, JobState.SEALED}:
        now = ports.clock.now()
        record = ports.ledger.advance(record, JobState.ABORTING, now=now, failure=why)
    return ticket.after(record)


def _known(documents: _Documents | S3CommitError) -> Known:
    if isinstance(documents, S3CommitError):
        return Known(is_healed=True)
    request, spec, _ = documents
    return Known(
        spec=None if isinstance(spec, InvalidInputError) else spec,
        request=request if isinstance(request, CommitRequest) else None,
        is_healed=True,
    )


def _seal(
    ports: Ports, ticket: Ticket, record: JobRecord, documents: _Documents | S3CommitError
) -> Ticket:
    """Take an OPEN job over and fix what its request says, by one write."""
    judged: Failure | tuple[JobSpec, CommitRequest]
    if failure := _aborted_before(ports, ticket):
        judged = failure
    elif isinstance(documents, InvalidInputError | JobRefusedError):
        judged = Failure(documents.code, one_line(documents.message))
    elif isinstance(documents, S3CommitError):
        raise documents
    else:
        judged = _judge_request(ports, record, documents)
    now = ports.clock.now()
    own = record.execution == ticket.execution != ""
    advance = partial(
        ports.ledger.advance,
        record,
        now=now,
        requested_by=ticket.requested_by,
        execution=None if own else ticket.execution,
    )
    if isinstance(judged, Failure):
        return ticket.after(advance(JobState.ABORTING, failure=judged))
    _, request = judged
    put_at = max(request.put_at, record.opened_at) if request.put_at else ""
    # The step that follows in this call reads these.
    follows = are_few(request.files)
    sealed, manifests = together(
        ports.parallel,
        partial(advance, JobState.SEALED, requested_at=put_at),
        lambda: first_manifests(ports, ticket.directory, request.attempts) if follows else None,
    )
    return replace(ticket, known=replace(ticket.known, manifests=manifests)).after(sealed)


def _aborted_before(ports: S3Ports, ticket: Ticket) -> Failure | None:
    """Why the job was aborted before the ledger was lost, should a late function have reopened it.

    Requests: a GET, but in an execution that the request has started: that is its first.
    """
    if ticket.execution.rpartition(":")[2] == ticket.directory.ref:  # the end of its ARN
        return None
    result = result_of(ports, ticket.directory)
    return result.error if result and result.outcome is Outcome.ABORTED else None


def _read_documents(ports: S3Ports, directory: JobDirectory) -> _Documents | S3CommitError:
    """The client's documents; or the error of reading, which matters to an OPEN job alone."""
    if outside := _outside(ports, directory):
        return outside
    try:
        with refusing_unreadable(ports, directory):
            return tuple(
                together(
                    ports.parallel,
                    partial(read_request, ports, directory),
                    partial(_spec, ports, directory),
                    partial(has_owner_above, ports, directory),
                )
            )
    except S3CommitError as error:
        return error


def _outside(ports: S3Ports, directory: JobDirectory) -> InvalidInputError | None:
    """Why a job is refused where the deployment has no rights, not even to read its documents."""
    if ports.serves(directory.prefix):
        return None
    served = ", ".join(ports.prefixes)
    return InvalidInputError(
        f"the pipeline serves {served} alone: write below one of these, or add a prefix to the"
        " deployment's parameter prefixes. The job's uploads stay, for a lifecycle rule",
        code="OUTSIDE_PREFIXES",
    )


def _judge_request(
    ports: Ports, record: JobRecord, documents: _Documents
) -> Failure | tuple[JobSpec, CommitRequest]:
    """The reason for which the job is aborted immediately, or its request."""
    request, spec, is_inner = documents
    if isinstance(request, AbortRequest):
        code = "ABANDONED" if request.abandoned else "ABORTED_BY_CLIENT"
        if request.abandoned and committed_holder(ports.ledger, record):
            code = ALREADY_COMMITTED
        return Failure(code, one_line(request.reason or "the client requested it"))
    if isinstance(spec, InvalidInputError):
        return Failure(spec.code, one_line(spec.message))
    if is_inner:
        return Failure(
            "JOB_ID_TAKEN",
            f"a directory above {record.destination.uri} has a job with id"
            f" {record.job_id}; write the data again under a new id",
        )
    return spec, request


def _spec(ports: S3Ports, directory: JobDirectory) -> JobSpec | InvalidInputError:
    """``_job.json``, or what is wrong with it; an abort does not mind."""
    try:
        return read_spec(ports, directory)
    except InvalidInputError as error:
        return error


def _opened(
    ports: Ports, directory: JobDirectory, documents: _Documents | S3CommitError
) -> JobRecord:
    """The record of a job that was not known; the existing one, if another call opened it first.

    The healing may have: then S3 has the decision record, and the ledger has the job.

    Raises `LostRaceError` for a job that was committed and forgotten since, whose ``_job.json`` was
    deleted: no client waits for it, and a record that says ABORTED, or an event, would be untrue.
    """
    outside = _outside(ports, directory)
    spec = outside if isinstance(documents, S3CommitError) else documents[1]
    try:
        if isinstance(spec, InvalidInputError):
            raise spec
        if spec is None:  # the request, or the listing above, could not be read
            with refusing_unreadable(ports, directory):
                spec = read_spec(ports, directory)
    except InvalidInputError:
        # A decided job stays one, whatever was made of its _job.json since.
        decided = read_decision(ports, directory.bucket, directory.decision)
        if decided is not None:
            return ports.ledger.open_job(decided)
        # The record is needed to end the job; `_judge_request` says what is wrong with it. A job
        # that does not belong here was never decided here, whatever results a copy has brought.
        listed = None if outside else listed_at(ports.store, directory.bucket, directory.job)
        is_gone = not outside and listed is None
        if is_gone and listed_at(ports.store, directory.bucket, directory.commits):
            raise LostRaceError(f"job {directory.ref} has ended and is forgotten", None) from None
        put_at = listed.modified if listed else ""  # without one no upload is its own
        spec = JobSpec(directory.job_id, directory.destination, put_at=put_at)
        return ports.ledger.open_job(new_record(spec, directory, ports.clock.now()))
    return ports.ledger.open_job(record_from_s3(ports, directory, spec))
