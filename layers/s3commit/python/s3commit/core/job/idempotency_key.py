"""Once: of the jobs with one idempotency key at one destination, at most one is committed (I11).

The key's lock keeps them apart while they are decided and committed. The note in
``_commits/once/``, put under that lock and before the decision, says to all later ones who has the
key: it outlives the ledger's time to live, and the ledger itself.
"""

from __future__ import annotations

from s3commit.core.formats.documents import VERSION
from s3commit.core.formats.layout import JobDirectory, check_job_id
from s3commit.core.formats.strict_json import Fields, dump, parse
from s3commit.core.job.documents import read_result
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
    TransientError,
)
from s3commit.core.model.job import ALREADY_COMMITTED, Outcome
from s3commit.core.model.locks import key_digest
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectReader

MAX_NOTE_BYTES = 16 * 1024
_HAS_IT = frozenset({JobState.PUBLISHING, JobState.COMMITTED})
_MAY_GET_IT = frozenset({JobState.COMMITTING, JobState.ROLLING_BACK})


def check_key(ports: Ports, directory: JobDirectory, record: JobRecord) -> tuple[str, str | None]:
    """The job that the key's note names, which is not committed, and the note's etag.

    Asked under the key's lock. Raises `JobRefusedError`: ``ALREADY_COMMITTED``, and names the other
    job; ``KEY_IN_DOUBT`` if the other one may have been decided and has not ended. That one needs
    the key's lock to end, so it can't be waited for with the lock held.
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
    body = dump({"version": VERSION, "key": key, "jobId": directory.job_id})
    name = directory.once(key_digest(key))
    try:
        ports.store.put(directory.bucket, name, body, if_absent=etag is None, if_match=etag)
    except (PreconditionError, NotFoundError) as error:
        raise TransientError(f"idempotencyKey {key[:200]!r} is being taken by another") from error


def refuse_taken_key(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    """Say to a job that waits for its locks that another one has its key for good.

    Asked without the key's lock, so only what can't change any more is believed: the ledger's word
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
        fields = Fields(parse(stored.body, what=name, max_bytes=MAX_NOTE_BYTES), "$")
        if fields.text("key") == key:
            return check_job_id(fields.text("jobId", longest=80)), stored.facts.etag
    except NotFoundError:
        return "", None
    except InvalidInputError as error:
        raise JobRefusedError(
            f"{name} is not readable, so nobody knows whether the key is taken:"
            f" {error.message}; look at it, and delete it if no job has the key",
            code="BAD_ONCE_NOTE",
        ) from error
    raise JobRefusedError(f"{name} is of another idempotencyKey", code="BAD_ONCE_NOTE")


def _has_it(ports: Ports, other: JobDirectory) -> bool:
    """Whether the other job has been, or is sure to be, committed.

    Asked under the key's lock: by the ledger, the other one is not in between. A job that the
    ledger does not know is judged by S3.
    """
    record = ports.ledger.job(other.ref)
    if record is not None:
        if record.state in _MAY_GET_IT:
            raise _in_doubt(other)
        if record.state in _HAS_IT:
            return True
        # A ledger that was restored to a moment of before does not know that the job was listed.
        return ports.store.head(other.bucket, other.commits) is not None
    if ports.store.head(other.bucket, other.commits) is not None:
        return True
    try:
        return read_result(ports.store, other).outcome is Outcome.COMMITTED
    except NotFoundError:
        pass
    if ports.store.head(other.bucket, other.request) is not None:
        raise _in_doubt(other)  # the ledger has forgotten a job that nobody has ended
    return False


def _in_doubt(other: JobDirectory) -> JobRefusedError:
    return JobRefusedError(
        f"job {other.job_id} has the same idempotencyKey, may be committed and has not ended: have"
        f" it ended (s3commit commit {other.uri}), then write again",
        code="KEY_IN_DOUBT",
    )
