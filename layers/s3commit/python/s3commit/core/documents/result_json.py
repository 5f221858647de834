"""``_result.json``: how a job ended."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from s3commit.core.documents.job_json import Labels, Note
from s3commit.core.formats.codec import VERSION, Codec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.destination import JobId
from s3commit.core.model.errors import InvalidInputError, PreconditionError
from s3commit.core.model.outcome import ALREADY_COMMITTED, LISTS_LOST, Failure, Outcome
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.objects import ObjectReader, listed_at

MAX_RESULT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class JobResult:
    """``_result.json``: counts of the committed files; ``replaced`` of those that were removed."""

    job_id: JobId
    outcome: Outcome
    error: Failure | None
    files: int
    bytes: int
    rows: int | None
    decided_at: str | None
    finished_at: str
    execution: str = ""
    replaced: int = 0
    note: Note = ""
    labels: Labels = ()

    @property
    def already_committed(self) -> bool:
        """True if another job with the same idempotency key was committed: nothing was added."""
        return self.error is not None and self.error.code == ALREADY_COMMITTED

    @property
    def ended(self) -> str:
        """How a job ended that was not committed, and what is visible of it."""
        if self.error is not None and self.error.code == LISTS_LOST:
            return f"ended {self.outcome}"  # the error's message names its visible files
        return f"ended {self.outcome}; none of its files are visible"


RESULT_JSON: Final = Codec(JobResult, "_result.json", VERSION, max_bytes=MAX_RESULT_BYTES)


def decode_result(body: bytes, directory: JobDirectory) -> JobResult:
    """Read the ``_result.json`` of ``directory``. Raises `InvalidInputError`.

    One that is of another job is refused (``WRONG_JOB``).
    """
    result = RESULT_JSON.decode(body)
    if result.job_id != directory.job_id:
        raise InvalidInputError(
            f"_result.json in {directory.uri} is of another job", code="WRONG_JOB"
        )
    return result


def read_result(store: ObjectReader, directory: JobDirectory) -> JobResult:
    """The job's ``_result.json``. Raises `NotFoundError`, `InvalidInputError`."""
    stored = store.get(directory.bucket, directory.result, max_bytes=MAX_RESULT_BYTES)
    return decode_result(stored.body, directory)


def write_result(ports: Ports, directory: JobDirectory, record: JobRecord) -> JobResult:
    """Put ``_result.json`` of an ended job; one that is there stays.

    A client that has read that its job is undone may delete the job's documents, since a table can
    be created only in an empty place (docs/adr/0029). So a late try of this step, which finds none
    of the client's own, puts nothing: neither before its put nor, should they go at that moment,
    behind it. Outside the deployment's prefixes it can't look, and may leave a result behind.
    """
    committed = record.state is JobState.COMMITTED or not ports.serves(directory.prefix)
    result = result_of(record, ports.clock.now())
    if not committed and not _is_awaited(ports, directory):
        return result
    # If it is there, this step ran before; a job ends once, so that result says the same.
    with suppress(PreconditionError):
        etag = ports.store.put(
            directory.bucket, directory.result, RESULT_JSON.encode(result), if_absent=True
        )
        if not committed and not _is_awaited(ports, directory):
            ports.store.delete(directory.bucket, directory.result, if_match=etag)
    return result


def result_of(record: JobRecord, now: str) -> JobResult:
    """The result of an ended job, which ended ``now`` unless the record knows when."""
    committed, failure = record.state is JobState.COMMITTED, record.failure
    plan = record.plan if committed else None
    # Of an abandoned one it is not known: its message says so.
    replaced = record.replaced if committed and failure is None else None
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
        replaced=replaced.files if replaced else 0,
        note=record.note,
        labels=record.labels,
    )


def _is_awaited(ports: S3Ports, directory: JobDirectory) -> bool:
    """True if a document of the client's is there."""
    own = (directory.job, directory.request)
    return any(listed_at(ports.store, directory.bucket, key) is not None for key in own)
