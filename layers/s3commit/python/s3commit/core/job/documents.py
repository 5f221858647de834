"""The documents of one job: its client's, each read whole, and those that it leaves when it ends.

``_job.json``, the manifests and ``_request.json`` are the client's. An ended job leaves
``_result.json``, a committed one its commit manifest too, which `s3commit.core.job.plan` puts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from s3commit.core.formats.documents import (
    MAX_COMMITS_BYTES,
    MAX_JOB_BYTES,
    MAX_LINE_BYTES,
    MAX_REQUEST_BYTES,
    MAX_RESULT_BYTES,
    CommitHeader,
    CommittedFile,
    decode_commit_header,
    decode_commit_manifest,
    decode_job,
    decode_request,
    decode_result,
    encode_result,
)
from s3commit.core.formats.layout import META_REQUESTED, JobDirectory, parse_manifest_key
from s3commit.core.formats.manifest import decode_pendingset
from s3commit.core.formats.strict_json import one_line
from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
)
from s3commit.core.model.job import (
    AbortRequest,
    CommitRequest,
    Failure,
    JobResult,
    JobSpec,
    Outcome,
    PendingFile,
    PendingSet,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectReader, listed_at

JOB_CHANGED = "JOB_CHANGED"
UNREADABLE = "UNREADABLE"
_OWN = b"{}\n"  # a page of no list
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


@contextmanager
def refusing_unreadable(ports: Ports, directory: JobDirectory) -> Iterator[None]:
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
        raise InvalidInputError(error.message, code=UNREADABLE) from error


def read_spec(ports: Ports, directory: JobDirectory) -> JobSpec:
    """The job's ``_job.json``.

    Raises `InvalidInputError` if it is not acceptable, with ``JOB_CHANGED`` if there is none: a
    directory without one is not a job.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.job, max_bytes=MAX_JOB_BYTES)
    except NotFoundError:
        raise InvalidInputError(f"{directory.job} does not exist", code=JOB_CHANGED) from None
    return replace(decode_job(stored.body, directory), put_at=stored.facts.modified)


def opened_at(store: ObjectReader, record: JobRecord) -> str:
    """When S3 got the job's ``_job.json``; empty if there is none.

    The ledger does not know it if the job's abort was requested before ``_job.json`` was put.
    """
    if record.opened_at:
        return record.opened_at
    directory = JobDirectory.of(record)
    found = listed_at(store, directory.bucket, directory.job)
    return found.modified if found is not None else ""


def refuse_changed(spec: JobSpec, record: JobRecord) -> None:
    """Raise `JobRefusedError` (``JOB_CHANGED``) if it is not the document that the ledger knows."""
    now = (spec.conflict, spec.scope, spec.idempotency_key)
    same = now == (record.conflict, record.scope, record.idempotency_key)
    if not same or record.job_sha256 not in {None, spec.sha256}:
        raise JobRefusedError("_job.json is not what it was when the job began", code=JOB_CHANGED)


def read_result(store: ObjectReader, directory: JobDirectory) -> JobResult:
    """The job's ``_result.json``. Raises `NotFoundError`, `InvalidInputError`."""
    stored = store.get(directory.bucket, directory.result, max_bytes=MAX_RESULT_BYTES)
    return decode_result(stored.body, directory)


def read_commit_manifest(
    store: ObjectReader, directory: JobDirectory, *, max_bytes: int = MAX_COMMITS_BYTES
) -> tuple[CommitHeader, list[CommittedFile]]:
    """The job's manifest in ``_commits/``, whole: a gigabyte has no room in a function.

    Raises `NotFoundError`, and `InvalidInputError` for one that is not the job's own.
    """
    stored = store.get(directory.bucket, directory.commits, max_bytes=max_bytes)
    return decode_commit_manifest(stored.body, directory)


def read_commit_header(store: ObjectReader, directory: JobDirectory) -> CommitHeader:
    """How the job's manifest in ``_commits/`` begins. Raises as `read_commit_manifest`."""
    start = store.first_bytes(directory.bucket, directory.commits, MAX_LINE_BYTES)
    return decode_commit_header(start, directory)


def read_request(ports: Ports, directory: JobDirectory) -> CommitRequest | AbortRequest:
    """The job's ``_request.json``.

    Raises `InvalidInputError`, and `JobRefusedError` (``REQUEST_MISSING``) if it was deleted: the
    job has to end anyway, since no event would announce a second request.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.request, max_bytes=MAX_REQUEST_BYTES)
    except NotFoundError:
        raise JobRefusedError("_request.json no longer exists", code="REQUEST_MISSING") from None
    request = decode_request(stored.body, directory)
    if isinstance(request, CommitRequest):
        # When S3 got it first: a client that still waits puts it again, and says so.
        put_at, claimed = stored.facts.modified, stored.facts.metadata.get(META_REQUESTED, "")
        return replace(
            request, put_at=min(claimed, put_at) if _MOMENT.fullmatch(claimed) else put_at
        )
    return request


def conclude(ports: Ports, ticket: Ticket, record: JobRecord) -> Ticket:
    """Write the result of a job that has ended; repeatable. The ticket has the event to send.

    The event is what docs/events.md describes. All of it is bounded where it comes in, to some
    20 KB together; EventBridge takes 256 KB an entry:
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
    """
    directory = ticket.directory
    result = write_result(ports, directory, record)
    event = {
        "version": 1,
        "jobId": result.job_id,
        "outcome": result.outcome,
        "code": result.error.code if result.error else None,
        "bucket": directory.bucket,
        "directory": directory.prefix,
        "table": record.destination.uri,
        "files": result.files,
        "bytes": result.bytes,
        "rows": result.rows,
        "replaced": result.replaced,
        "undoes": record.undoes or None,
        "key": record.idempotency_key,
        "openedAt": record.opened_at or None,
        "decidedAt": result.decided_at,
        "finishedAt": result.finished_at,
    }
    return replace(ticket.after(record), event=event)


def write_result(ports: Ports, directory: JobDirectory, record: JobRecord) -> JobResult:
    """Put ``_result.json`` of an ended job; one that is there stays.

    A client that has read that its job is undone may delete the job's documents, since a table can
    be created only in an empty place (docs/adr/0029). So a late try of this step, which finds none
    of the client's own, puts nothing: neither before its put nor, should they go at that moment,
    behind it.
    """
    committed = record.state is JobState.COMMITTED
    result = result_of(record, ports.clock.now())
    if not committed and not _is_awaited(ports, directory):
        return result
    # If it is there, this step ran before; a job ends once, so that result says the same.
    with suppress(PreconditionError):
        etag = ports.store.put(
            directory.bucket, directory.result, encode_result(result), if_absent=True
        )
        if not committed and not _is_awaited(ports, directory):
            ports.store.delete(directory.bucket, directory.result, if_match=etag)
    return result


def result_of(record: JobRecord, now: str) -> JobResult:
    """The result of an ended job, which ended ``now`` unless the record knows when."""
    committed, failure = record.state is JobState.COMMITTED, record.failure
    plan = record.plan if committed else None
    return JobResult(
        job_id=record.job_id,
        outcome=Outcome(record.state),
        error=failure and Failure(one_line(failure.code, 100), one_line(failure.message)),
        files=plan.files if plan else 0,
        bytes=plan.bytes if plan else 0,
        rows=plan.rows if plan else None,
        decided_at=record.decided_at,
        finished_at=record.finished_at or now,
        execution=record.execution,
        replaced=record.replaced.files if committed and record.replaced else 0,
    )


def _is_awaited(ports: Ports, directory: JobDirectory) -> bool:
    """True if a document of the client's is there."""
    own = (directory.job, directory.request)
    return any(listed_at(ports.store, directory.bucket, key) is not None for key in own)


def decode_manifest(directory: JobDirectory, name: str, body: bytes) -> PendingSet:
    """The manifest as its bytes have it.

    Raises `JobRefusedError` with the decoder's code, or ``WRONG_JOB`` if it is another attempt's.
    """
    try:
        pending = decode_pendingset(body, directory)
        _, task_id, attempt_id = parse_manifest_key(directory.bucket, directory.prefix + name)
    except InvalidInputError as error:
        raise JobRefusedError(f"manifest {name}: {error.message}", code=error.code) from error
    ones: tuple[PendingSet | PendingFile, ...] = (pending, *pending.files)
    for one in ones:
        if one.task_id not in {"", task_id} or one.attempt_id not in {"", attempt_id}:
            raise JobRefusedError(
                f"the manifest of task {task_id}, attempt {attempt_id}, says that it is of"
                f" {one.task_id[:80]!r}, {one.attempt_id[:80]!r}",
                code="WRONG_JOB",
            )
    return pending
