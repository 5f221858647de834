"""How a job ends for its client: the ledger's last state, the claims given back, the result."""

from __future__ import annotations

from contextlib import suppress

from s3commit.core.formats.documents import encode_result
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import one_line
from s3commit.core.formats.ticket import OUTCOMES, Ticket
from s3commit.core.job.claims import release_locks
from s3commit.core.job.decision_record import note_end
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.job import Failure, JobResult, Outcome
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import listed_at


def conclude(ports: Ports, ticket: Ticket, record: JobRecord) -> Ticket:
    """Say how the job has ended, and give its claims back; repeatable."""
    note_end(ports, record)
    release_locks(ports, record)
    write_result(ports, ticket.directory, record)
    return ticket.after(record)


def write_result(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    """Put ``result.json`` of an ended job; one that is there stays.

    A client that has read that its job is undone may delete the job's documents, since a table can
    be created only where nothing lies (docs/adr/0031). So a late try of this step, which finds none
    of the client's own, puts nothing: neither before its put nor, should they go at that moment,
    behind it.
    """
    committed = OUTCOMES[record.state] is Outcome.COMMITTED
    plan = record.plan if committed else None
    result = JobResult(
        job_id=record.job_id,
        outcome=OUTCOMES[record.state],
        error=_short(record.failure),
        files=plan.files if plan else 0,
        bytes=plan.bytes if plan else 0,
        rows=plan.rows if plan else None,
        decided_at=record.decided_at,
        finished_at=record.finished_at or ports.clock.now(),
        execution=record.execution,
        replaced=record.replaced.files if committed and record.replaced else 0,
    )
    if not committed and not _is_awaited(ports, directory):
        return
    # If it is there, this step ran before; a job ends once, so that result says the same.
    with suppress(PreconditionError):
        etag = ports.store.put(
            directory.bucket, directory.result, encode_result(result), if_absent=True
        )
        if not committed and not _is_awaited(ports, directory):
            ports.store.delete(directory.bucket, directory.result, if_match=etag)


def _is_awaited(ports: Ports, directory: JobDirectory) -> bool:
    """Whether a document of the client's is there."""
    own = (directory.job, directory.request)
    return any(listed_at(ports.store, directory.bucket, key) is not None for key in own)


def _short(failure: Failure | None) -> Failure | None:
    return failure and Failure(one_line(failure.code, 100), one_line(failure.message))
