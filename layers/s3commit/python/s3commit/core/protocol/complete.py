"""CompleteUnit: a worker makes the files of one unit visible, after the decision."""

from __future__ import annotations

from collections.abc import Iterator

from s3commit.core.errors import JobRefusedError, PreconditionError, UploadGoneError
from s3commit.core.model import JobRecord, Names, PendingFile, Unit
from s3commit.core.ports import LostRaceError
from s3commit.core.protocol.identity import is_ours
from s3commit.core.protocol.pipeline import Pipeline, own_record
from s3commit.core.protocol.places import slice_of
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket, UnitResult


def complete_unit(pipeline: Pipeline, ticket: Ticket, unit: Unit) -> UnitResult:
    """Complete every upload of the unit, and say how many files are visible or lost for good.

    Repeating it is harmless. The job's state and generation are asked first, so that nothing is
    completed before the decision (I1) or during a roll back; a worker that stalls right after
    asking is fenced by the uploads themselves, which a roll back aborts before it deletes.
    A worker of an execution that was overtaken completes nothing and says so: BeginPublish then
    finds out by the ledger. Raises `TransientError` (try the unit again).
    """
    try:
        record = own_record(pipeline, ticket, JobState.COMMITTING)
    except LostRaceError:
        return UnitResult(unit.number, files=0, lost=0)
    first_time = pipeline.ledger.begin_unit(ticket.job_id, unit.number)
    done = list(
        pipeline.parallel(
            lambda file: complete_file(
                pipeline, file, look=not first_time, if_absent=_must_be_new(record)
            ),
            _files(pipeline, ticket, record, unit),
        )
    )
    visible = sum(done)
    return UnitResult(unit.number, files=visible, lost=unit.files - visible)


def _must_be_new(record: JobRecord) -> bool:
    """Names unique to the job are new; an exact one must be, unless it may cover another (I2)."""
    covers = record.replaced is not None and record.replaced.overwrites
    return record.names is Names.EXACT and not covers


def _files(
    pipeline: Pipeline, ticket: Ticket, record: JobRecord, unit: Unit
) -> Iterator[PendingFile]:
    for part in unit.slices:
        try:
            yield from slice_of(pipeline, ticket.place, record, part)
        except JobRefusedError:
            # After the decision a manifest that is gone or changed means that nobody knows the
            # etags any more: its files count as lost, and BeginPublish rolls back.
            continue


def complete_file(
    pipeline: Pipeline, file: PendingFile, *, look: bool, if_absent: bool = False
) -> bool:
    """Complete one upload; True if the file is visible, False if it never can be.

    With ``look`` the object is inspected even if S3 says 200: the answer to a repeated completion
    does not prove that the object is there now. With ``if_absent`` a key that exists is not
    covered; S3's refusal is final, the parts would have to be sent again.
    """
    try:
        pipeline.store.complete_upload(
            file.bucket,
            file.key,
            file.upload_id,
            file.etags,
            length=file.length,
            if_absent=if_absent,
        )
        if not look:
            return True
    except (UploadGoneError, PreconditionError, JobRefusedError):
        pass  # completed before, by us, with the response lost? or gone? the object tells
    return is_ours(file, pipeline.store.head(file.bucket, file.key))
