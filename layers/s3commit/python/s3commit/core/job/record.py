"""The job's record in the ledger: made, found, and guarded against other executions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import JobRefusedError, NotFoundError, TransientError
from s3commit.core.model.job import Failure, JobSpec
from s3commit.core.model.limits import LONGEST_ROUND_WAIT, SHORTEST_WAIT, WAITED_SHARE
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime
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
    )


def first_generation(created_at: str) -> int:
    """The generation of a record that is made at a moment: its seconds since 1970.

    Had each record begun at 0, then a worker that still holds a number of before the ledger was
    lost would be let in by the job's next record. No job is taken over once a second.
    """
    return int(datetime.fromisoformat(created_at).timestamp())


def takeovers(record: JobRecord) -> int:
    """How many executions have taken the job over since its record was made."""
    return max(0, record.generation - first_generation(record.created_at))


def next_round(ports: Ports, ticket: Ticket, record: JobRecord) -> Ticket:
    """The ticket of a step that others keep from ending the job's state: it comes again.

    The longer the job has been in the state, under this execution, the longer the pause.
    """
    now, since = map(datetime.fromisoformat, (ports.clock.now(), record.updated_at))
    pause = int((now - since).total_seconds()) // WAITED_SHARE
    return replace(ticket.after(record), pause=max(SHORTEST_WAIT, min(pause, LONGEST_ROUND_WAIT)))


def coming_again(
    ports: Ports, ticket: Ticket, record: JobRecord, time: CallTime, page: int = 0
) -> Ticket:
    """As `next_round`, from ``page`` on; soon if it was the call's time that was over."""
    again = replace(next_round(ports, ticket, record), page=page)
    return replace(again, pause=SHORTEST_WAIT) if time.is_cut else again


def own_record(ports: Ports, ticket: Ticket, *expected: JobState) -> JobRecord:
    """The job's record, if it is in an expected state and under the ticket's generation.

    Raises `LostRaceError` otherwise: another execution goes on with the job, this one must stop.
    """
    record = ports.ledger.job(ticket.ref)
    if record is None or record.generation != ticket.generation or record.state not in expected:
        raise LostRaceError(f"job {ticket.job_id} has moved on without this execution", record)
    return record


def planned_record(ports: Ports, ticket: Ticket, *expected: JobState) -> JobRecord:
    """As `own_record`, if the plan too is the one that this execution has verified.

    A request that names no attempts counts what is there: a late try of VerifyManifests may note
    another plan, while locks and replace list are still those of the first. Raises `LostRaceError`.
    """
    record = own_record(ports, ticket, *expected)
    if record.plan is None or ticket.directory.plan(record.plan.sha256) != ticket.plan:
        raise LostRaceError(f"job {ticket.job_id} has another plan than this execution", record)
    return record


def moved(
    ports: Ports, record: JobRecord, target: JobState, failure: Failure | None = None
) -> JobRecord:
    """Move the job, as its record was read, to another state. Raises `LostRaceError`."""
    return ports.ledger.advance(
        record.ref,
        source=record.state,
        target=target,
        generation=record.generation,
        now=ports.clock.now(),
        failure=failure,
    )


@contextmanager
def beside_twins(ticket: Ticket) -> Iterator[None]:
    """Turn a race lost against a twin of the same step into `TransientError`: run it again.

    A try that was given up (its answer was lost, or late) may still run. If it is faster than the
    one that is listened to, that one must not give the job up as another execution's: nobody
    would go on with it. Run again, the step finds what its twin has done.
    """
    try:
        yield
    except LostRaceError as error:
        found = error.found
        if found is None or not ticket.execution or found.execution != ticket.execution:
            raise
        raise TransientError(f"a twin of this step was faster: {error.message}") from error


@contextmanager
def unless_overtaken(ports: Ports, ticket: Ticket, *expected: JobState) -> Iterator[None]:
    """What is missing may be so because another execution has ended the job and tidied up.

    Then `LostRaceError` is raised, which ends this one in peace.
    """
    try:
        yield
    except (JobRefusedError, NotFoundError):
        own_record(ports, ticket, *expected)
        raise
