"""What an ended job leaves for its client and for readers: its result and its commit manifest.

The ledger's last state comes first; the job's locks went with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from s3commit.core.formats.documents import (
    SUCCESS_FILES,
    CommittedFile,
    commit_lines,
    encode_result,
    header_of,
)
from s3commit.core.formats.layout import META_JOB, JobDirectory
from s3commit.core.formats.manifest import expected_etag
from s3commit.core.formats.strict_json import one_line
from s3commit.core.formats.ticket import OUTCOMES, OutcomeEvent, Ticket
from s3commit.core.job.plan import planned_files
from s3commit.core.model.errors import PreconditionError, TransientError, UploadGoneError
from s3commit.core.model.job import Failure, JobResult, Outcome
from s3commit.core.model.limits import PUT_BYTES
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import listed_at

_TYPE: Final = "application/x-ndjson"


def conclude(ports: Ports, ticket: Ticket, record: JobRecord) -> Ticket:
    """Write the result of a job that has ended; repeatable. The ticket has the event to send."""
    directory = ticket.directory
    result = write_result(ports, directory, record)
    event = OutcomeEvent(
        job_id=result.job_id,
        outcome=result.outcome,
        code=result.error.code if result.error else None,
        bucket=directory.bucket,
        directory=directory.prefix,
        table=record.destination.uri,
        files=result.files,
        bytes=result.bytes,
        rows=result.rows,
        replaced=result.replaced,
        key=record.idempotency_key,
        opened_at=record.opened_at or None,
        decided_at=result.decided_at,
        finished_at=result.finished_at,
    )
    return replace(ticket.after(record), event=event)


def write_result(ports: Ports, directory: JobDirectory, record: JobRecord) -> JobResult:
    """Put ``result.json`` of an ended job; one that is there stays.

    A client that has read that its job is undone may delete the job's documents, since a table can
    be created only where nothing lies (docs/adr/0029). So a late try of this step, which finds none
    of the client's own, puts nothing: neither before its put nor, should they go at that moment,
    behind it.
    """
    committed = OUTCOMES[record.state] is Outcome.COMMITTED
    plan = record.plan if committed else None
    failure = record.failure
    result = JobResult(
        job_id=record.job_id,
        outcome=OUTCOMES[record.state],
        error=failure and Failure(one_line(failure.code, 100), one_line(failure.message)),
        files=plan.files if plan else 0,
        bytes=plan.bytes if plan else 0,
        rows=plan.rows if plan else None,
        decided_at=record.decided_at,
        finished_at=record.finished_at or ports.clock.now(),
        execution=record.execution,
        replaced=record.replaced.files if committed and record.replaced else 0,
    )
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


def _is_awaited(ports: Ports, directory: JobDirectory) -> bool:
    """Whether a document of the client's is there."""
    own = (directory.job, directory.request)
    return any(listed_at(ports.store, directory.bucket, key) is not None for key in own)


def publish_manifest(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[str]:
    """Write ``_commits/<job_id>.jsonl`` and return the first keys. Raises as `read_index`.

    Whatever lies there, by an earlier try or by a stranger, is written over (I12).
    """
    names: list[str] = []

    def committed() -> Iterator[CommittedFile]:
        for file in planned_files(ports, directory, record):
            if len(names) < SUCCESS_FILES:
                names.append(file.key)
            yield CommittedFile(file.key, file.length, expected_etag(file), file.rows)

    put_lines(ports, directory, directory.commits, commit_lines(header_of(record), committed()))
    return names


def first_keys(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[str]:
    """The first keys, for the marker. Raises as `read_index`."""
    return [file.key for file in islice(planned_files(ports, directory, record), SUCCESS_FILES)]


def put_lines(ports: Ports, directory: JobDirectory, key: str, lines: Iterable[bytes]) -> None:
    """Put the lines as one object, over whatever lies there; the same lines, the same object.

    Raises `TransientError` if the upload was aborted. Short ones go up with one PUT, long ones in
    parts. The key's name must carry the job's id, so that `TidyUp` finds the upload of a worker
    that died on the way.
    """
    parts = _parts(lines)
    first = next(parts, b"")
    if len(first) < PUT_BYTES:
        ports.store.put(directory.bucket, key, first, content_type=_TYPE)
        return
    try:
        upload_id = ports.store.create_upload(
            directory.bucket, key, metadata={META_JOB: directory.job_id}, content_type=_TYPE
        )
        etags, length = [], 0
        for number, part in enumerate(chain([first], parts), start=1):
            etags.append(ports.store.upload_part(directory.bucket, key, upload_id, number, part))
            length += len(part)
        ports.store.complete_upload(directory.bucket, key, upload_id, etags, length=length)
    except UploadGoneError as error:
        raise TransientError(error.message) from error


def _parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in parts, of which only the last has less than `PUT_BYTES`."""
    buffer = bytearray()
    for line in lines:
        buffer += line
        if len(buffer) >= PUT_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)
