"""CompleteUnit: a worker makes the files of one unit visible, after the decision."""

from __future__ import annotations

from functools import partial

from s3commit.core.formats.ticket import Ticket, Unit, UnitResult
from s3commit.core.job.plan import files_of_unit
from s3commit.core.job.record import own_record, unless_overtaken
from s3commit.core.model.errors import (
    CONFLICT,
    AccessError,
    JobRefusedError,
    PreconditionError,
    TransientError,
    UploadGoneError,
)
from s3commit.core.model.job import PendingFile
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import listed_at


def complete_unit(ports: Ports, ticket: Ticket, unit: Unit) -> UnitResult:
    """Complete every upload of one unit of the plan; count the files visible, and lost for good.

    Repeating it is harmless. The job's state and generation are asked first, so that nothing is
    completed before the decision (I1) or during a roll back; a worker that stalls right after
    asking is fenced by the uploads themselves, which a roll back aborts before it deletes.
    A worker of an execution that was overtaken completes nothing and says so: BeginPublish then
    finds out by the ledger. Raises `TransientError` (try the unit again) and `NeedsOperatorError`
    (the page is gone: nothing was completed, and nothing is undone for it).
    """
    try:
        own_record(ports, ticket, JobState.COMMITTING)
        with unless_overtaken(ports, ticket, JobState.COMMITTING):
            files = files_of_unit(ports.store, ticket.directory, unit)
    except LostRaceError:
        return UnitResult(unit.number, files=0, lost=0)
    visible = sum(ports.parallel(partial(complete_file, ports), files))
    return UnitResult(unit.number, files=visible, lost=len(files) - visible)


def complete_file(ports: Ports, file: PendingFile) -> bool:
    """Complete one upload; False if the file never can be visible.

    Where the upload is gone, the key tells whether it was completed before: nothing lay there at
    the decision, and who may put there could overwrite the file at any time. A listing tells, since
    it asks for no right to the object's own key. An upload that may not be completed is lost: the
    unit's page, the pipeline's own, was read a moment ago, so that this is no outage.
    """
    try:
        ports.store.complete_upload(
            file.bucket, file.key, file.upload_id, file.etags, length=file.length
        )
    except (UploadGoneError, PreconditionError, JobRefusedError, AccessError) as error:
        facts = listed_at(ports.store, file.bucket, file.key)
        if facts is None and error.code == CONFLICT:
            # S3 answers 409 to one of two that complete at once, before the other one's is there.
            raise TransientError(f"another request completes the upload of {file.key}") from error
        return facts is not None and facts.length == file.length
    return True
