"""BeginPublish, RemoveReplaced and PublishSuccess: all files are visible; now say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from s3commit.core.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.layout import JobDirectory
from s3commit.core.manifest import expected_etag
from s3commit.core.model import Failure, JobRecord
from s3commit.core.policy import MARKER_ROUNDS
from s3commit.core.protocol.acquire import release_locks
from s3commit.core.protocol.decision import note_end, note_publishing
from s3commit.core.protocol.ending import write_result
from s3commit.core.protocol.identity import in_doubt
from s3commit.core.protocol.pipeline import (
    Pipeline,
    own_record,
    read_plan,
    unless_overtaken,
)
from s3commit.core.protocol.places import planned_files
from s3commit.core.protocol.replace import remove_listed
from s3commit.core.protocol.upload import put_lines
from s3commit.core.protocol.verify import plan_again
from s3commit.core.protocol.visible import visible_files
from s3commit.core.published import (
    MAX_SUCCESS_BYTES,
    SUCCESS_FILES,
    CommitHeader,
    CommittedFile,
    commit_lines,
    encode_success,
    header_of,
    millis_of,
    success_job_id,
)
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket

UPLOADS_LOST = "UPLOADS_LOST"


def begin_publish(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """COMMITTING→PUBLISHING if every unit of the plan was counted complete, exactly once.

    If files are lost for good, COMMITTING→ROLLING_BACK instead. If units are missing, the job
    stays COMMITTING and the caller completes again. Raises `LostRaceError`; `S3CommitError` if
    the machine could not read a plan that is there; `IdentityUnknownError`. No repetition mends
    the last two, and nothing is undone for them.
    """
    record = own_record(
        pipeline, ticket, JobState.COMMITTING, JobState.PUBLISHING, JobState.ROLLING_BACK
    )
    if record.state is not JobState.COMMITTING:  # a repetition after a lost response
        return ticket.after(record)
    with unless_overtaken(pipeline, ticket, JobState.COMMITTING):
        try:
            units = {unit.number: unit for unit in read_plan(pipeline, ticket.place, record)}
        except (NotFoundError, JobRefusedError):
            if not plan_again(pipeline, ticket.place, record):
                raise
            return ticket.after(record)  # completed once more, by the plan that is there again
    if units and not ticket.completed:
        raise S3CommitError(
            f"Step Functions could not read {ticket.plan}: see the cause of"
            " CompleteUploads, mend it, and redrive this execution",
            code="PLAN_NOT_READ",
        )
    doubted = next((result.in_doubt for result in ticket.completed if result.in_doubt), "")
    if doubted:
        raise in_doubt(record.job_id, doubted)
    lost = sum(result.lost for result in ticket.completed)
    if lost:
        failure = Failure(
            UPLOADS_LOST,
            f"{lost} of {ticket.files} files could not be completed after the decision: their"
            " uploads were aborted by someone else or expired, or another program has put objects"
            " of their names; write the data again",
        )
        return _move(pipeline, ticket, record, JobState.ROLLING_BACK, failure)
    counts = sorted((result.unit, result.files) for result in ticket.completed)
    if counts != sorted((number, unit.files) for number, unit in units.items()):
        return ticket.after(record)
    return _move(pipeline, ticket, record, JobState.PUBLISHING, None)


def _move(
    pipeline: Pipeline, ticket: Ticket, record: JobRecord, target: JobState, failure: Failure | None
) -> Ticket:
    moved = pipeline.ledger.advance(
        record.ref,
        source=record.state,
        target=target,
        generation=record.generation,
        now=pipeline.clock.now(),
        failure=failure,
    )
    return ticket.after(moved)


def remove_replaced(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Delete what the decided replace list says, and nothing else (I5, I10).

    All files of the job are visible now. Without a list, as in every appending job, there is
    nothing to delete. A long list takes several calls: while ``page`` of the ticket is not 0 the
    caller comes again.
    """
    record = own_record(pipeline, ticket, JobState.PUBLISHING)
    with unless_overtaken(pipeline, ticket, JobState.PUBLISHING):
        if record.replaced is not None and record.replaced.files:
            # From its first delete on nothing leads back, whatever the ledger forgets (I8): else
            # both old and new could be gone. Nor is anything deleted while nobody can list what
            # is new.
            note_publishing(pipeline, record)
            if not ticket.page:
                _publish_manifest(pipeline, ticket, record)
        page = remove_listed(pipeline, ticket.place, record, first=ticket.page)
    return replace(ticket, page=page)


def publish_success(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Commit manifest, marker, ledger, result: in this order, each step repeatable (I9)."""
    record = own_record(pipeline, ticket, JobState.PUBLISHING, JobState.COMMITTED)
    if record.state is JobState.PUBLISHING:
        with unless_overtaken(pipeline, ticket, JobState.PUBLISHING):
            if record.replaced is not None and record.replaced.files:  # by RemoveReplaced
                names = _first_names(pipeline, ticket.place, record)
            else:
                names = _publish_manifest(pipeline, ticket, record)
        _put_marker(pipeline, ticket, record, names)
        record = pipeline.ledger.advance(
            record.ref,
            source=JobState.PUBLISHING,
            target=JobState.COMMITTED,
            generation=record.generation,
            now=pipeline.clock.now(),
        )
    note_end(pipeline, record)
    release_locks(pipeline, record)
    write_result(pipeline, ticket.place, record)
    return ticket.after(record)


def _publish_manifest(pipeline: Pipeline, ticket: Ticket, record: JobRecord) -> list[str]:
    """Write ``_commits/<job_id>.jsonl`` and return the first keys. Raises `LostRaceError`.

    Whatever lies there, by an earlier try or by a stranger, is written over (I12).
    """
    place = ticket.place
    names: list[str] = []

    def noting(files: Iterable[CommittedFile]) -> Iterator[CommittedFile]:
        for file in files:
            if len(names) < SUCCESS_FILES:
                names.append(file.key)
            yield file

    def put(header: CommitHeader, files: Iterable[CommittedFile]) -> list[str]:
        names.clear()
        put_lines(pipeline, place, place.commits, commit_lines(header, noting(files)))
        return names

    header = header_of(record)
    try:
        return put(header, _committed(pipeline, place, record))
    except (JobRefusedError, NotFoundError):
        own_record(pipeline, ticket, JobState.PUBLISHING)  # or another execution has tidied up
        # Somebody has deleted, or changed, a manifest or the plan: what is visible tells as well.
        files = visible_files(pipeline, place, record)
        total = sum(file.length for file in files)
        return put(replace(header, files=len(files), bytes=total), files)


def _first_names(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> list[str]:
    """The first keys, for the marker; none if plan or manifest are gone."""
    with suppress(JobRefusedError, NotFoundError):
        files = islice(planned_files(pipeline, place, record), SUCCESS_FILES)
        return [file.key for file in files]
    return []


def _committed(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord
) -> Iterator[CommittedFile]:
    for file in planned_files(pipeline, place, record):
        yield CommittedFile(file.key, file.length, expected_etag(file), file.rows)


def _put_marker(pipeline: Pipeline, ticket: Ticket, record: JobRecord, names: list[str]) -> None:
    """Put ``_SUCCESS`` on condition that it replaces the very marker that was seen (I9).

    Between looking and putting, the ledger is asked again: a late waker whose job has moved on
    loses there, and one that stalls after that loses the condition.
    """
    place = ticket.place
    body = encode_success(record, names, timestamp=millis_of(pipeline.clock.now()))
    for _ in range(MARKER_ROUNDS):
        etag, job_id = _marker(pipeline, place)
        if job_id == record.job_id:
            return
        own_record(pipeline, ticket, JobState.PUBLISHING)
        try:
            pipeline.store.put(
                place.bucket, place.success, body, if_absent=etag is None, if_match=etag
            )
        except (PreconditionError, NotFoundError):
            continue  # another job put its marker meanwhile, or someone removed it: look again
        return
    raise TransientError(f"{place.success} is being written by too many jobs at once")


def _marker(pipeline: Pipeline, place: JobDirectory) -> tuple[str | None, str | None]:
    """The etag of what lies at ``_SUCCESS``, and the job that it names, if it is a marker.

    By whomever it was put, it keeps no job from its end (I12): of one that is too large, archived,
    or encrypted with a key that may not be used, a listing has the etag.
    """
    try:
        stored = pipeline.store.get(place.bucket, place.success, max_bytes=MAX_SUCCESS_BYTES)
        return stored.facts.etag, success_job_id(stored.body)
    except NotFoundError:
        return None, None
    except (InvalidInputError, AccessError):
        listed = next(iter(pipeline.store.list(place.bucket, place.success)), None)
        return (listed.etag if listed and listed.key == place.success else None), None
