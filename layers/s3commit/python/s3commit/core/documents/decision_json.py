"""The decision record: that a job was decided, where no client can write it (I2, I8, I12).

It is at ``_s3commit/<ref>/_decision.json`` at the bucket's root. It is put after the ledger's
decision and before the first upload is completed, and has the job's state since. The rule behind
it: a visible object is deleted only for a job with a decision on record, in the ledger, or, where
the ledger was lost, here (docs/adr/0004).
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from s3commit.core.documents.commit_manifest import commit_lines, header_of
from s3commit.core.documents.job_json import DESTINATION, MAX_JOB_BYTES
from s3commit.core.formats.codec import VERSION, Codec
from s3commit.core.formats.layout import JobDirectory, check_job_id
from s3commit.core.formats.strict_json import LONGEST_LINE
from s3commit.core.model.errors import (
    PAGE_CHANGED,
    AccessError,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
    PreconditionError,
)
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import JobRecord, first_generation
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.objects import StoredObject, listed_at

# It repeats _job.json's columns and key, and has up to 90 locks of a kilobyte each.
MAX_DECISION_BYTES = MAX_JOB_BYTES + 128 * 1024

# Fields of a record that mean something in the ledger alone.
_LEDGERS_OWN: Final = {
    **{"generation": 0, "created_at": "", "updated_at": "", "execution": ""},
    **{"waits": None, "locked_at": ""},
}
_DECISION: Final = Codec(
    JobRecord,
    "_decision.json",
    VERSION,
    max_bytes=MAX_DECISION_BYTES,
    # No client writes it, and what is counted as a value may be a comma in the name of a partition.
    most=MAX_DECISION_BYTES,
    forms={"destination": DESTINATION},
    unwritten=_LEDGERS_OWN,
)
DECIDED = frozenset(
    {JobState.COMMITTING, JobState.PUBLISHING, JobState.COMMITTED, JobState.ROLLED_BACK}
)


def refuse_unfit(record: JobRecord, now: str) -> None:
    """Refuse a job of which a later document could not be written, or not be read again (I2).

    After the decision nothing could end it. Judged are the decision record at its largest, which
    has what the ledger's item has and fewer bytes than DynamoDB takes, and the header of the commit
    manifest; the limits of their fields bound all other documents. Raises `InvalidInputError`
    (``TOO_LARGE``).
    """
    failed = Failure("C" * 100, "\U0010ffff" * LONGEST_LINE)
    last = replace(
        record, state=JobState.ROLLED_BACK, decided_at=now, finished_at=now, failure=failed
    )
    _decode(_DECISION.encode(last), JobDirectory.of(record).decision)
    next(commit_lines(header_of(last), ()))


def put_decision(ports: S3Ports, record: JobRecord) -> None:
    """Put the record of a job in COMMITTING; one that is there stays."""
    directory = JobDirectory.of(record)
    with suppress(PreconditionError):  # an earlier try, or execution, has put it
        body = _DECISION.encode(record)
        ports.store.put(directory.bucket, directory.decision, body, if_absent=True)


def renew_decision(ports: S3Ports, record: JobRecord) -> None:
    """Put the record of a decided job again, if it is missing or can't be read."""
    directory = JobDirectory.of(record)
    state = JobState.COMMITTING if record.state not in DECIDED else record.state
    body = _DECISION.encode(replace(record, state=state))
    with suppress(PreconditionError):
        try:
            if stored_decision(ports, directory) is None:
                ports.store.put(directory.bucket, directory.decision, body, if_absent=True)
        except AccessError:
            seen = listed_at(ports.store, directory.bucket, directory.decision)
            if seen is None:
                raise
            etag = seen.etag
            ports.store.put(directory.bucket, directory.decision, body, if_match=etag)


def stored_decision(ports: S3Ports, directory: JobDirectory) -> StoredObject | None:
    """The decision record as it is there; None if the job's documents were deleted."""
    with suppress(NotFoundError):
        return ports.store.get(directory.bucket, directory.decision, max_bytes=MAX_DECISION_BYTES)
    return None


def note_publishing(ports: S3Ports, record: JobRecord, stored: StoredObject | None) -> None:
    """Note that all files are visible: the job is never rolled back, even if the ledger is lost.

    Conditional on the record that was ``stored``: a late call must not set an ended job back.
    """
    directory = JobDirectory.of(record)
    if stored is None:
        return  # the job has ended and its documents were deleted
    if _decode(stored.body, directory.decision).state is not JobState.COMMITTING:
        return
    with suppress(PreconditionError, NotFoundError):
        body = _DECISION.encode(record)
        ports.store.put(directory.bucket, directory.decision, body, if_match=stored.facts.etag)


def note_end(ports: Ports, record: JobRecord, state: JobState) -> None:
    """Note how a decided job ends, before the ledger frees what it holds.

    Otherwise a ledger that is lost in between would bring the job back, with its locks and key,
    beside one that has them since. The note stays as long as the job's documents do.
    """
    directory = JobDirectory.of(record)
    body = _DECISION.encode(replace(record, state=state, finished_at=ports.clock.now()))
    ports.store.put(directory.bucket, directory.decision, body)


def read_decision(ports: Ports, bucket: str, key: str) -> JobRecord | None:
    """The job's record as its decision has it, under a new generation; None if there is none.

    None too for a job of another bucket: a copy of a bucket brings its decision records along.
    Raises `NeedsOperatorError` (``PAGE_CHANGED``) if a person with rights to the whole bucket has
    spoilt it.
    """
    try:
        stored = ports.store.get(bucket, key, max_bytes=MAX_DECISION_BYTES)
        found = _decode(stored.body, key)
    except NotFoundError:
        return None
    except InvalidInputError as error:
        raise NeedsOperatorError(
            f"s3://{bucket}/{key} is not what the pipeline wrote: {error.message}; nothing was"
            " changed: restore it, or, if another program has put it there, delete it",
            code=PAGE_CHANGED,
        ) from error
    if found.destination.bucket != bucket:
        return None
    now = ports.clock.now()
    return replace(found, generation=first_generation(now), created_at=now, updated_at=now)


def _decode(body: bytes, key: str) -> JobRecord:
    record = _DECISION.decode(body)
    check_job_id(record.job_id)
    if JobDirectory.of(record).decision != key:
        raise InvalidInputError(f"{key} is of another job", code="WRONG_JOB")
    if record.state not in DECIDED or record.plan is None or record.decided_at is None:
        raise InvalidInputError(f"{key} has no decision", code="BAD_FIELD")
    return record
