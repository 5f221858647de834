"""An empty ledger heals itself by the decision records (I6, I8), should the table be lost, or new.

SealJob, the first step of every execution, waits until each job with a decision record is in the
ledger again, with its locks, and its key unless it is committed: nothing is decided beside it.

Functions that still run may go by the lost table, and may write to the new one what they have read
before. None lives longer than `LONGEST_CALL`, so the walk begins that long after the table was
first looked at. Where nothing is below ``_s3commit/`` there is nothing to wait for: a job has its
plan there before it is decided. docs/adr/0032 has the reasons.

A decision record that can't be read holds the jobs that its own job may meet, and no others.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice, product

from s3commit.core.documents.bucket_owner import OWNER
from s3commit.core.documents.decision_json import read_decision
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.result_json import JobResult, read_result
from s3commit.core.formats.layout import (
    DECISION_FILE,
    JOB_ID,
    PIPELINE,
    JobDirectory,
    directories_above,
)
from s3commit.core.jobs.record import new_record
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import (
    PAGE_CHANGED,
    AccessError,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
    S3CommitError,
)
from s3commit.core.model.limits import FUNCTION_CLOCKS, LONGEST_CALL, LONGEST_WAIT, SHORTEST_WAIT
from s3commit.core.model.moments import seconds
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.ports.ledger import Ledger, LostRaceError
from s3commit.core.ports.objects import ObjectReader, listed_at
from s3commit.core.ports.parallel import together

_FORWARD = (JobState.COMMITTING, JobState.PUBLISHING, JobState.COMMITTED)
JOB_ENDED = "JOB_ENDED"  # a record with it was made after its job was forgotten
HEALED_AT_ONCE = 1_000  # objects of a listing, before the progress is noted
MAX_UNREAD = 100  # decision records, noted in one item; if more can't be read, all jobs wait


def heal(
    ports: Ports, bucket: str, directory: JobDirectory | None = None, *, most: int = LONGEST_CALL
) -> int:
    """Heal the ledger: the seconds after which to ask again, 0 if it knows all decided jobs.

    Any number of calls may do so at the same time, and one that dies leaves the rest to the next
    one. Raises `NeedsOperatorError` (``LEDGER_RESTORED``) for a table that was restored from a
    backup, ``OTHER_OWNER`` for another deployment's bucket, and for a job ``directory`` that must
    wait for a decision record which can't be read (``PAGE_CHANGED``, ``ACCESS_DENIED``). It takes
    ``most`` seconds, and what 1,000 records take. Requests: one read, if the ledger is whole; else
    a listing of ``_s3commit/``, a GET for each decision record there, and two writes or more.
    """
    # First: a ledger is healed for a bucket of its own. Another one's may heal after a handover.
    if not ports.check_owner(bucket):
        return 0
    now = ports.clock.now()
    healing = ports.ledger.healing(bucket, now=now)
    if healing.whole:
        return 0
    listed = ports.store.list(bucket, PIPELINE, after=healing.until)
    listing = (one for one in listed if one.key != OWNER)  # there before any job is
    some = list(islice(listing, HEALED_AT_ONCE))
    too_early = LONGEST_CALL + FUNCTION_CLOCKS - int(seconds(healing.since, now))
    if some and too_early > 0:
        return min(too_early, LONGEST_WAIT)
    time = CallTime(ports.clock, most)
    unread = _bring_back(ports, bucket, healing.unread)  # they may have been restored, or deleted
    while some:
        decisions = (one.key for one in some if one.key.endswith("/" + DECISION_FILE))
        unread |= _bring_back(ports, bucket, decisions)
        if len(unread) > MAX_UNREAD:
            raise next(iter(unread.values()))
        healing = replace(healing, until=some[-1].key, unread=tuple(unread))
        ports.ledger.note_healing(bucket, healing)
        if time.is_over():
            return SHORTEST_WAIT
        some = list(islice(listing, HEALED_AT_ONCE))
    ports.ledger.note_healing(bucket, replace(healing, unread=tuple(unread), whole=not unread))
    if directory is not None:
        _refuse_below(directory, unread)
    return 0


def doubt_about(ledger: Ledger, *, first: Callable[[], bool] = lambda: False) -> str:
    """The warning that the ledger lacks decided jobs, in a line; empty if it has all. Reads alone.

    ``first`` is asked where it has decided none: whether nothing was ever decided beside it. Raises
    `NeedsOperatorError` (``LEDGER_RESTORED``).
    """
    found = ledger.peek_healing()
    waits = (
        f"{(LONGEST_CALL + FUNCTION_CLOCKS) // 60} minutes after the next job, or scheduled sweep"
    )
    if not found and first():
        return ""
    if not found:
        return (
            "the ledger's table has no decided job yet. If it took the place of a lost one, it"
            f" knows the decided jobs {waits}"
        )
    unread = [f"s3://{bucket}/{key}" for bucket, one in found.items() for key in one.unread]
    if unread:
        return (
            f"the ledger lacks the jobs of {len(unread)} decision records that can't be read, such"
            f" as {min(unread)}: the next sweep tries again. If SweepsFailed fires for it, restore"
            " it; delete it only if another program has put it there"
        )
    lacking = [f"s3://{bucket}" for bucket, one in sorted(found.items()) if not one.whole]
    if not lacking:
        return ""
    return (
        f"the ledger's table is new, and may lack decided jobs of {', '.join(lacking)}: it knows"
        f" them {waits}, looked at it first"
    )


def is_untouched(store: ObjectReader, bucket: str) -> bool:
    """True if no job was ever decided in the bucket, nor is about to be. One listing."""
    listed = islice(store.list(bucket, PIPELINE), 2)
    return all(one.key == OWNER for one in listed)


def _bring_back(ports: Ports, bucket: str, keys: Iterable[str]) -> dict[str, S3CommitError]:
    """Bring back the jobs of these decision records; those that can't be read, and why."""

    def bring_back(key: str) -> tuple[str, S3CommitError | None]:
        try:
            found = _found(ports, bucket, key)
        except (NeedsOperatorError, AccessError) as error:
            return key, error
        if found is not None:
            ports.ledger.open_job(found)
        return key, None

    return {key: error for key, error in ports.parallel(bring_back, keys) if error is not None}


def _found(ports: Ports, bucket: str, key: str) -> JobRecord | None:
    """The job of a decision record, unless another call has brought it back."""
    decided = read_decision(ports, bucket, key)
    if decided is None:
        return None  # its documents were deleted, or it is another bucket's
    standing = ports.ledger.job(decided.ref)
    if standing is not None and standing.state is not JobState.OPEN:
        with suppress(LostRaceError):
            _catch_up(ports, standing, decided)
        return None
    # So the sweep continues it immediately, and deletes its documents when their time is over.
    return replace(decided, updated_at=decided.finished_at or decided.decided_at or "")


def _catch_up(ports: Ports, standing: JobRecord, decided: JobRecord) -> None:
    """A late function may have brought it back as it was before, when it had all its files."""
    if standing.state in _FORWARD and decided.state in _FORWARD:
        start, end = map(_FORWARD.index, (standing.state, decided.state))
        for state in _FORWARD[start + 1 : end + 1]:
            standing = ports.ledger.advance(standing, state, now=ports.clock.now())


def _refuse_below(directory: JobDirectory, unread: dict[str, S3CommitError]) -> None:
    """Do nothing at the table of an unread record, of which the key has the digest, nor inside."""
    own, bucket = directory.destination.prefix, directory.bucket
    for key, at in product(unread, (*directories_above(own), own)):
        if JobDirectory(Destination(bucket, at), _job_of(key)).decision == key:
            raise NeedsOperatorError(
                f"{unread[key].message}; until then the jobs of s3://{bucket}/{at}, of tables"
                " inside, and those that replace above wait",
                code=unread[key].code,
            )


def refuse_above(ports: S3Ports, record: JobRecord, unread: Collection[str]) -> None:
    """Refuse to decide a job that replaces above the table of an unread decision record.

    The job of that one has left documents, files or uploads there, with its id in their keys.
    Raises `NeedsOperatorError` (``PAGE_CHANGED``). If there is such a record: two listings.
    """
    jobs = {_job_of(key): key for key in unread if JOB_ID.fullmatch(_job_of(key))}
    store, bucket, prefix = ports.store, record.destination.bucket, record.destination.prefix
    objects = (one.key for one in store.list(bucket, prefix))
    uploads = (one.key for one in store.list_uploads(bucket, prefix))
    for key in chain(objects, uploads):
        for job_id in filter(key.__contains__, jobs):
            raise NeedsOperatorError(
                f"s3://{bucket}/{jobs[job_id]} can't be read, and its job is below"
                f" s3://{bucket}/{prefix}: nothing was changed; restore it, or, if another program"
                " has put it there, delete it",
                code=PAGE_CHANGED,
            )


def _job_of(decision: str) -> str:
    """The id in the key of a decision record."""
    return decision.removeprefix(PIPELINE).partition("/")[0].rpartition("-")[0]


def record_from_s3(ports: Ports, directory: JobDirectory, spec: JobSpec) -> JobRecord:
    """The record of a job that the ledger does not know, as S3 remembers it.

    A job with a result has ended so, and stays so: a ledger forgets ended jobs, and neither a late
    manifest nor a repeated request may open them again (I3). One with a decision record resumes
    there, or has ended.

    Only the decision record proves that a job was decided: a client can write all else. A job that
    has a list in ``_commits/`` and no decision record was forgotten long ago, and has ended.
    """
    decided: JobRecord | None
    result: JobResult | None
    decided, result, listed = together(
        ports.parallel,
        partial(read_decision, ports, directory.bucket, directory.decision),
        partial(result_of, ports, directory),
        partial(listed_at, ports.store, directory.bucket, directory.commits),
    )
    if decided is not None:
        return decided
    record = new_record(spec, directory, ports.clock.now())
    if result is not None:
        return replace(
            record,
            state=JobState(result.outcome.value),
            failure=result.error,
            plan=PlanFacts("", 0, result.files, result.bytes, result.rows),
            finished_at=result.finished_at,
        )
    if listed is None:
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


def result_of(ports: S3Ports, directory: JobDirectory) -> JobResult | None:
    """The job's result; None if there is none that proves anything."""
    with suppress(NotFoundError, InvalidInputError, AccessError):
        return read_result(ports.store, directory)
    return None
