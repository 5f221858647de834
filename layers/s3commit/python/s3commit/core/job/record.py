"""The job's record in the ledger: made, found and guarded; and how executions are started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
    TransientError,
)
from s3commit.core.model.job import JobSpec
from s3commit.core.model.limits import (
    EXECUTION_HOURS,
    LONGEST_ROUND_WAIT,
    SHORTEST_WAIT,
    WAITED_SHARE,
)
from s3commit.core.model.locks import key_digest, seconds
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Executions, Ports, shifted
from s3commit.core.ports.ledger import LostRaceError


def new_record(spec: JobSpec, directory: JobDirectory, now: str) -> JobRecord:
    """The ledger's first record of a job."""
    return JobRecord(
        job_id=directory.job_id,
        destination=directory.destination,
        state=JobState.OPEN,
        generation=first_generation(now),
        created_at=now,
        updated_at=now,
        conflict=spec.conflict,
        scope=spec.scope,
        partition_by=spec.partition_by,
        idempotency_key=spec.idempotency_key,
        job_sha256=spec.sha256,
        opened_at=spec.put_at,
        undoes=spec.undoes,
    )


def first_generation(created_at: str) -> int:
    """The generation of a record that is made at a moment: its seconds since 1970.

    If each record began at 0, a number from the lost ledger could match the job's next record, and
    a worker that still holds it would be let in. No job is taken over once a second.
    """
    return int(datetime.fromisoformat(created_at).timestamp())


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


def record_of(ports: Ports, directory: JobDirectory) -> JobRecord | None:
    """The job's record, if the ledger has one.

    Raises `LostRaceError` for a record of another directory, should two refs ever be the same.
    """
    record = ports.ledger.job(directory.ref)
    if record is not None and JobDirectory.of(record) != directory:
        raise LostRaceError(f"ref {directory.ref} is of {JobDirectory.of(record).uri}", record)
    return record


def own_record(ports: Ports, ticket: Ticket, *expected: JobState) -> JobRecord:
    """The job's record, if it is in an expected state and under the ticket's generation.

    Raises `LostRaceError` otherwise: another execution has taken over the job, this one must stop.
    """
    record = record_of(ports, ticket.directory)
    if record is None or record.generation != ticket.generation or record.state not in expected:
        raise LostRaceError(f"job {ticket.job_id} has moved on without this execution", record)
    return record


def planned_record(ports: Ports, ticket: Ticket, *expected: JobState) -> JobRecord:
    """As `own_record`, if the plan too is the one that this execution has verified.

    Raises `LostRaceError`.
    """
    record = own_record(ports, ticket, *expected)
    if record.plan is None or ticket.directory.index(record.plan.sha256) != ticket.plan:
        raise LostRaceError(f"job {ticket.job_id} has another plan than this execution", record)
    return record


def committed_holder(ports: Ports, record: JobRecord) -> str:
    """The id of another job that is committed with the job's key, by the ledger; empty if none is.

    The job can't be committed any more.
    """
    key = record.idempotency_key
    holder = ports.ledger.key_holder(record.destination, key_digest(key)) if key else None
    if holder is None or holder.job_id == record.job_id:
        return ""
    other = ports.ledger.job(JobDirectory(record.destination, holder.job_id).ref)
    return holder.job_id if other is None or other.state is JobState.COMMITTED else ""


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


@contextmanager
def beside_twins(ticket: Ticket) -> Iterator[None]:
    """Turn a race lost against a twin of the same step into `TransientError`: run it again.

    A call whose answer was lost or late is repeated, and may still run beside the repetition. If it
    is faster, the repetition must not leave the job as another execution's: no execution would
    resume it. Run again, the step finds what its twin has done.
    """
    try:
        yield
    except LostRaceError as error:
        found = error.found
        if found is None or not ticket.execution or found.execution != ticket.execution:
            raise
        raise TransientError(f"another call of this step was faster: {error.message}") from error


@contextmanager
def unless_overtaken(ports: Ports, ticket: Ticket, *expected: JobState) -> Iterator[None]:
    """Turn a refusal into `LostRaceError` if another execution has taken over the job.

    An object may be missing because that one has ended the job and tidied up.
    """
    try:
        yield
    except (InvalidInputError, JobRefusedError, NeedsOperatorError, NotFoundError):
        own_record(ports, ticket, *expected)
        raise


def start_execution(
    executions: Executions, directory: JobDirectory, due: str, gives_up: str = ""
) -> str | None:
    """Start an execution for the job; its ARN, or None if one was started for the same moment.

    ``due`` (RFC 3339) is when it fell due, to the second. The name says so: of all who start one
    for the same reason one does, and the name of one that died immediately, which Step Functions
    keeps for 90 days, is not the next one's. One too many does no harm: it takes the job over.
    """
    seconds = int(datetime.fromisoformat(due).timestamp())
    return executions.start(f"{directory.ref}-{seconds:x}", directory, gives_up)
