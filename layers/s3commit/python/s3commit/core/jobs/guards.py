"""The checks of a step before it acts: the job is still its execution's, and readable."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from s3commit.core.documents.job_json import JobSpec, read_spec
from s3commit.core.documents.partition_list import read_partitions
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.record import record_of
from s3commit.core.model.destination import Scope
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
    TransientError,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.ledger import LostRaceError


def own_record(ports: Ports, ticket: Ticket, *expected: JobState) -> JobRecord:
    """The job's record, if it is in an expected state and under the ticket's generation.

    Raises `LostRaceError` otherwise: another execution has taken over the job, this one must stop.
    """
    return _own(ticket, record_of(ports, ticket.directory), expected)


def known_record(ports: Ports, ticket: Ticket, *expected: JobState) -> JobRecord:
    """As `own_record`, by what the call knows: each write asks the ledger again."""
    return _own(ticket, ticket.known.record or record_of(ports, ticket.directory), expected)


def known_spec(ports: S3Ports, ticket: Ticket) -> JobSpec:
    """``_job.json``, as the call has read it. Raises as `read_spec`."""
    return ticket.known.spec or read_spec(ports, ticket.directory)


def known_partitions(ports: S3Ports, ticket: Ticket, record: JobRecord) -> list[str]:
    """The partitions that the plan of a job with that scope names. Raises as `read_partitions`."""
    if record.scope is not Scope.PARTITION:
        return []
    known = ticket.known.partitions
    return read_partitions(ports, ticket.directory, record) if known is None else known


def _own(ticket: Ticket, record: JobRecord | None, expected: tuple[JobState, ...]) -> JobRecord:
    if record is None or record.generation != ticket.generation or record.state not in expected:
        raise LostRaceError(f"job {ticket.job_id} has moved on without this execution", record)
    return record


def planned_record(ports: Ports, ticket: Ticket, *expected: JobState) -> JobRecord:
    """As `known_record`, if the plan too is the one that this execution has verified.

    Raises `LostRaceError`.
    """
    record = known_record(ports, ticket, *expected)
    if record.plan is None or ticket.directory.index(record.plan.sha256) != ticket.plan:
        raise LostRaceError(f"job {ticket.job_id} has another plan than this execution", record)
    return record


@contextmanager
def retrying_if_twin_won(ticket: Ticket) -> Iterator[None]:
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


_OWN = b"{}\n"  # a page of no list


@contextmanager
def refusing_unreadable(ports: S3Ports, directory: JobDirectory) -> Iterator[None]:
    """For the steps that read a client's documents: an unreadable one counts as changed.

    A document that is encrypted under another program's key ends its own job (`InvalidInputError`,
    ``UNREADABLE``). An object of the pipeline's own distinguishes that from an outage: if that
    can't be written and read either, `AccessError` is raised, and the step is tried again.
    """
    try:
        yield
    except AccessError as error:
        own = directory.page(hashlib.sha256(_OWN).hexdigest())
        ports.store.put(directory.bucket, own, _OWN)
        ports.store.get(directory.bucket, own, max_bytes=len(_OWN))
        raise InvalidInputError(error.message, code="UNREADABLE") from error
