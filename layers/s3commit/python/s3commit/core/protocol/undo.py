"""AbortJob and RollBack: no upload stays open, and what must not be is not visible."""

from __future__ import annotations

from s3commit.core.errors import TransientError
from s3commit.core.layout import JobDirectory
from s3commit.core.model import Failure, JobRecord
from s3commit.core.protocol.acquire import release_locks
from s3commit.core.protocol.decision import note_end
from s3commit.core.protocol.ending import write_result
from s3commit.core.protocol.own_objects import delete_own_objects, own_objects, stop_in_doubt
from s3commit.core.protocol.own_uploads import abort_uploads, own_uploads
from s3commit.core.protocol.pipeline import (
    Pipeline,
    own_record,
    unless_overtaken,
)
from s3commit.core.protocol.remembered import stop_if_published
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket

REFUSED = Failure("REFUSED", "the job was refused")


def abort_job(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """End a job before its decision: abort all its uploads (I4), then ABORTED and the result.

    Nothing visible is deleted: before its decision a job has completed nothing (I12).
    A SEALED job comes here with the refusal of the step that refused it. While uploads are still
    being opened the job stays ABORTING, and the caller comes again. Raises `LostRaceError`.
    """
    record = own_record(pipeline, ticket, JobState.SEALED, JobState.ABORTING, JobState.ABORTED)
    if record.state is JobState.SEALED:
        record = pipeline.ledger.advance(
            record.ref,
            source=JobState.SEALED,
            target=JobState.ABORTING,
            generation=record.generation,
            now=pipeline.clock.now(),
            failure=ticket.refusal or REFUSED,
        )
    if record.state is JobState.ABORTING:
        if not abort_uploads(pipeline, ticket.place):
            return ticket.after(record)
        record = _end(pipeline, record, JobState.ABORTED)
    return _conclude(pipeline, ticket, record)


def roll_back(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Undo a decided job of which a file is lost: afterwards none of its files is visible (I2).

    First every upload is aborted, which fences off workers that still complete; then what is
    visible and provably ours is deleted; then both are looked at once more. While uploads are
    still being opened the job stays ROLLING_BACK, and the caller comes again. Raises
    `IdentityUnknownError` before it touches anything where nobody can tell whose a
    file is; `AccessError` where a file may not be deleted: it goes on there when that is mended.
    """
    record = own_record(pipeline, ticket, JobState.ROLLING_BACK, JobState.ROLLED_BACK)
    if record.state is JobState.ROLLING_BACK:
        with unless_overtaken(pipeline, ticket, JobState.ROLLING_BACK):
            stop_in_doubt(pipeline, ticket.place, record)
            stop_if_published(pipeline, ticket.place)
        if not abort_uploads(pipeline, ticket.place):
            return ticket.after(record)
        with unless_overtaken(pipeline, ticket, JobState.ROLLING_BACK):
            delete_own_objects(pipeline, ticket.place, record)
            _verify_undone(pipeline, ticket.place, record)
        record = _end(pipeline, record, JobState.ROLLED_BACK)
    return _conclude(pipeline, ticket, record)


def _end(pipeline: Pipeline, record: JobRecord, target: JobState) -> JobRecord:
    return pipeline.ledger.advance(
        record.ref,
        source=record.state,
        target=target,
        generation=record.generation,
        now=pipeline.clock.now(),
    )


def _conclude(pipeline: Pipeline, ticket: Ticket, record: JobRecord) -> Ticket:
    note_end(pipeline, record)
    release_locks(pipeline, record)
    write_result(pipeline, ticket.place, record)
    return ticket.after(record)


def _verify_undone(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    stop_in_doubt(pipeline, place, record)  # a zombie may have completed one since
    visible = next(own_objects(pipeline, place, record), None)
    if visible is not None:
        raise TransientError(f"{visible.key} of job {place.job_id} is still visible")
    if next(own_uploads(pipeline, place), None) is not None:
        raise TransientError(f"an upload of job {place.job_id} is open again")
