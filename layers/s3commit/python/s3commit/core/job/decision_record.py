"""The decision record: that a job was decided, where no client can write it (I2, I8, I12).

It is at ``_s3commit/<ref>/_decision.json`` at the bucket's root. It is put after the ledger's
decision and before the first upload is completed, and has the job's state since. The rule behind
it: a visible object is deleted only for a job with a decision on record, in the ledger, or, where
the ledger was lost, here (docs/adr/0004).

By it an empty ledger heals itself (I6, I8), should the table be lost, or new. SealJob, the first
step of every execution, waits until each job with a decision record is in the ledger again, with
its locks and its key: nothing is decided beside it.

Functions that still run may go by the lost table, and may write to the new one what they have read
before. None lives longer than `LONGEST_CALL`, so the walk begins that long after the table was
first looked at. Where nothing is below ``_s3commit/`` there is nothing to wait for: a job has its
plan there before it is decided. docs/adr/0032 has the reasons.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.documents import (
    DESTINATION,
    MAX_JOB_BYTES,
    VERSION,
    commit_lines,
    header_of,
)
from s3commit.core.formats.layout import DECISION_FILE, PIPELINE, JobDirectory, check_job_id
from s3commit.core.formats.strict_json import LONGEST_LINE
from s3commit.core.job.documents import read_result
from s3commit.core.job.idempotency_key import has_lost_key
from s3commit.core.job.record import first_generation, new_record
from s3commit.core.model.errors import (
    PAGE_CHANGED,
    AccessError,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
    PreconditionError,
)
from s3commit.core.model.job import Failure, JobSpec
from s3commit.core.model.limits import FUNCTION_CLOCKS, LONGEST_CALL, LONGEST_WAIT, SHORTEST_WAIT
from s3commit.core.model.locks import seconds
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import CallTime, Ports
from s3commit.core.ports.objects import StoredObject, listed_at

JOB_ENDED = "JOB_ENDED"
HEALED_AT_ONCE = 1_000  # objects of a listing, before the progress is noted
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


def put_decision(ports: Ports, record: JobRecord) -> None:
    """Put the record of a job in COMMITTING; one that is there stays."""
    directory = JobDirectory.of(record)
    with suppress(PreconditionError):  # an earlier try, or execution, has put it
        body = _DECISION.encode(record)
        ports.store.put(directory.bucket, directory.decision, body, if_absent=True)


def stored_decision(ports: Ports, directory: JobDirectory) -> StoredObject | None:
    """The decision record as it is there; None if the job's documents were deleted."""
    with suppress(NotFoundError):
        return ports.store.get(directory.bucket, directory.decision, max_bytes=MAX_DECISION_BYTES)
    return None


def note_publishing(ports: Ports, record: JobRecord, stored: StoredObject | None) -> None:
    """Note that all files are visible: the job is never rolled back, even if the ledger is lost.

    Conditional on the record that was ``stored``: a late call must not set an ended job back.
    """
    directory = JobDirectory.of(record)
    if stored is None:
        return  # the job has ended and its documents are gone
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


def heal(ports: Ports, bucket: str) -> int:
    """Heal the ledger: the seconds after which to ask again, 0 if it knows all decided jobs.

    Any number of calls may do so at the same time, and one that dies leaves the rest to the next
    one. Raises `NeedsOperatorError` (``LEDGER_RESTORED``) for a table that was restored from a
    backup, and ``PAGE_CHANGED`` for a decision record that can't be read. Requests: one read, if
    the ledger is whole; else a listing of ``_s3commit/``, a GET for each decision record there, and
    two writes or more.
    """
    now = ports.clock.now()
    healing = ports.ledger.healing(bucket, now=now)
    if healing.whole:
        return 0
    listing = ports.store.list(bucket, PIPELINE, after=healing.until)
    some = list(islice(listing, HEALED_AT_ONCE))
    too_early = LONGEST_CALL + FUNCTION_CLOCKS - int(seconds(healing.since, now))
    if some and too_early > 0:
        return min(too_early, LONGEST_WAIT)
    time = CallTime(ports.clock)
    while some:
        decisions = [one.key for one in some if one.key.endswith("/" + DECISION_FILE)]
        for _done in ports.parallel(partial(_bring_back, ports, bucket), decisions):
            pass
        ports.ledger.note_healing(bucket, replace(healing, until=some[-1].key))
        if time.is_over():
            return SHORTEST_WAIT
        some = list(islice(listing, HEALED_AT_ONCE))
    ports.ledger.note_healing(bucket, replace(healing, whole=True))
    return 0


def _bring_back(ports: Ports, bucket: str, key: str) -> None:
    decided = read_decision(ports, bucket, key)
    if decided is None:
        return  # its documents were deleted meanwhile, or it is another bucket's
    standing = ports.ledger.job(decided.ref)
    if standing is not None and standing.state is not JobState.OPEN:
        return  # another call has brought it back
    with suppress(NeedsOperatorError):  # a spoilt note stops the jobs with that key alone
        if has_lost_key(ports.store, decided):
            decided = replace(decided, idempotency_key=None)
    # So the sweep continues it at once, and deletes its documents when their time is over.
    found = replace(decided, updated_at=decided.finished_at or decided.decided_at or "")
    ports.ledger.open_job(found)


def record_from_s3(ports: Ports, directory: JobDirectory, spec: JobSpec) -> JobRecord:
    """The record of a job that the ledger does not know, as S3 remembers it.

    A job with a result has ended so, and stays so: a ledger forgets ended jobs, and neither a late
    manifest nor a repeated request may open them again (I3). One with a decision record resumes
    there, or has ended.

    Only the decision record proves that a job was decided: a client can write all else. A job that
    has a list in ``_commits/`` and no decision record was forgotten long ago, and has ended.
    """
    decided = read_decision(ports, directory.bucket, directory.decision)
    if decided is not None:
        return decided
    record = new_record(spec, directory, ports.clock.now())
    result = None
    with suppress(NotFoundError, InvalidInputError, AccessError):  # then it proves nothing
        result = read_result(ports.store, directory)
    if result is not None:
        return replace(
            record,
            state=JobState(result.outcome.value),
            failure=result.error,
            plan=PlanFacts("", 0, result.files, result.bytes, result.rows),
            finished_at=result.finished_at,
        )
    if listed_at(ports.store, directory.bucket, directory.commits) is None:
        return record
    # It may have been decided since the first look, and the ledger lost since.
    return read_decision(ports, directory.bucket, directory.decision) or replace(
        record,
        state=JobState.ABORTED,
        failure=Failure(
            JOB_ENDED,
            f"{directory.commits} is there: a job of this id has ended here; write the data again"
            " under a new id",
        ),
        finished_at=record.created_at,
    )
