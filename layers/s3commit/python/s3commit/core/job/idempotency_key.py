"""Once: of the jobs with one idempotency key at one destination, at most one is committed (I11).

The key's lock keeps them apart while they are decided and committed. The note in
``_commits/once/``, put under that lock and before the decision, says to all later ones who has the
key: it outlives the ledger's time to live, and the ledger itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.documents import VERSION
from s3commit.core.formats.layout import JobDirectory, check_job_id
from s3commit.core.job.documents import read_result
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
    TransientError,
)
from s3commit.core.model.job import ALREADY_COMMITTED, JobId, Outcome
from s3commit.core.model.locks import key_digest
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectReader

MAX_NOTE_BYTES = 16 * 1024
_HAS_IT = frozenset({JobState.PUBLISHING, JobState.COMMITTED})


@dataclass(frozen=True, slots=True)
class _Note:
    key: str
    job_id: JobId


_NOTE: Final = Codec(_Note, "note", VERSION, max_bytes=MAX_NOTE_BYTES)


def check_key(ports: Ports, directory: JobDirectory, record: JobRecord) -> tuple[str, str | None]:
    """The job that the key's note names, which is not committed, and the note's etag.

    Asked under the key's lock. Raises `JobRefusedError`: ``ALREADY_COMMITTED``, and names the other
    job.
    """
    key = record.idempotency_key
    if key is None:
        return "", None
    holder, etag = key_holder(ports.store, directory, key)
    if holder not in {"", directory.job_id} and _has_it(
        ports, JobDirectory(directory.destination, holder)
    ):
        raise _already(ports, record, key, holder)
    return holder, etag


def reserve_key(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    """Put the key's note with the job's name. Raises as `check_key`, and `TransientError`."""
    key = record.idempotency_key
    if key is None:
        return
    holder, etag = check_key(ports, directory, record)
    if holder == directory.job_id:
        return
    body = _NOTE.encode(_Note(key, directory.job_id))
    name = directory.once(key_digest(key))
    try:
        ports.store.put(directory.bucket, name, body, if_absent=etag is None, if_match=etag)
    except (PreconditionError, NotFoundError) as error:
        raise TransientError(f"idempotencyKey {key[:200]!r} is being taken by another") from error


def refuse_taken_key(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    """Refuse a job that waits for its locks if another job has its key for good.

    Called without the key's lock, so only what can't change any more is believed: the ledger's word
    that the other one is COMMITTED, or PUBLISHING and has nothing to remove. Raises
    `JobRefusedError` (``ALREADY_COMMITTED``, ``BAD_ONCE_NOTE``).
    """
    key = record.idempotency_key
    if key is None:
        return
    holder, _ = key_holder(ports.store, directory, key)
    if holder in {"", directory.job_id}:
        return
    other = ports.ledger.job(JobDirectory(directory.destination, holder).ref)
    if other is None:
        return
    removes = other.replaced is not None and other.replaced.files > 0
    if other.state is JobState.COMMITTED or (other.state is JobState.PUBLISHING and not removes):
        raise _already(ports, record, key, holder)


def _already(ports: Ports, record: JobRecord, key: str, holder: str) -> JobRefusedError:
    return JobRefusedError(
        f"the data of idempotencyKey {key[:200]!r} was committed by job {holder}; this job"
        f" adds nothing{_other_rows(ports, record, holder)}",
        code=ALREADY_COMMITTED,
    )


def _other_rows(ports: Ports, record: JobRecord, holder: str) -> str:
    """A key says what the data is. Where the counts differ it was used for other data: say so."""
    other = ports.ledger.job(JobDirectory(record.destination, holder).ref)
    ours, theirs = record.plan, other.plan if other is not None else None
    if ours is None or theirs is None or None in (ours.rows, theirs.rows):
        return ""
    if ours.rows == theirs.rows:
        return ""
    return f", though it has {ours.rows} rows and that one {theirs.rows}: is the key of other data?"


def key_holder(store: ObjectReader, directory: JobDirectory, key: str) -> tuple[str, str | None]:
    """The job that the key's record names, and the record's etag; empty if there is none.

    Raises `JobRefusedError` (``BAD_ONCE_NOTE``) if it can't be read.
    """
    name = directory.once(key_digest(key))
    try:
        stored = store.get(directory.bucket, name, max_bytes=MAX_NOTE_BYTES)
        note = _NOTE.decode(stored.body)
        if note.key == key:
            return check_job_id(note.job_id), stored.facts.etag
    except NotFoundError:
        return "", None
    except InvalidInputError as error:
        raise JobRefusedError(
            f"{name} is not readable, so it is not known whether the key is taken:"
            f" {error.message}; look at it, and delete it if no job has the key",
            code="BAD_ONCE_NOTE",
        ) from error
    raise JobRefusedError(f"{name} is of another idempotencyKey", code="BAD_ONCE_NOTE")


def _has_it(ports: Ports, other: JobDirectory) -> bool:
    """Whether the other job has been, or is sure to be, committed.

    Called under the key's lock, so the other job is not between its decision and its end. Where the
    ledger has no record, S3 has the result.
    """
    record = ports.ledger.job(other.ref)
    if record is not None:
        return record.state in _HAS_IT
    if ports.store.head(other.bucket, other.commits) is not None:
        return True
    try:
        return read_result(ports.store, other).outcome is Outcome.COMMITTED
    except NotFoundError:
        return False
