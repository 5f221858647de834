"""RollBack: a decided job of which a file is lost is undone."""

from __future__ import annotations

from s3commit.core.ending.objects import delete_own_objects, own_objects, stop_in_doubt
from s3commit.core.ending.result import conclude, end_job
from s3commit.core.ending.uploads import abort_uploads, own_uploads
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.record import own_record, unless_overtaken
from s3commit.core.model.errors import TransientError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.recovery.lost_record import stop_if_published


def roll_back(ports: Ports, ticket: Ticket) -> Ticket:
    """Undo a decided job of which a file is lost: afterwards none of its files is visible (I2).

    First every upload is aborted, which fences off workers that still complete; then what is
    visible and provably ours is deleted; then both are looked at once more. While uploads are
    still being opened the job stays ROLLING_BACK, and the caller comes again. Raises
    `IdentityUnknownError` before it touches anything where nobody can tell whose a
    file is; `AccessError` where a file may not be deleted: it goes on there when that is mended.
    """
    record = own_record(ports, ticket, JobState.ROLLING_BACK, JobState.ROLLED_BACK)
    if record.state is JobState.ROLLING_BACK:
        with unless_overtaken(ports, ticket, JobState.ROLLING_BACK):
            stop_in_doubt(ports, ticket.directory, record)
            stop_if_published(ports, ticket.directory)
        if not abort_uploads(ports, ticket.directory):
            return ticket.after(record)
        with unless_overtaken(ports, ticket, JobState.ROLLING_BACK):
            delete_own_objects(ports, ticket.directory, record)
            _verify_undone(ports, ticket.directory, record)
        record = end_job(ports, record, JobState.ROLLED_BACK)
    return conclude(ports, ticket, record)


def _verify_undone(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    stop_in_doubt(ports, directory, record)  # a zombie may have completed one since
    visible = next(own_objects(ports, directory, record), None)
    if visible is not None:
        raise TransientError(f"{visible.key} of job {directory.job_id} is still visible")
    if next(own_uploads(ports, directory), None) is not None:
        raise TransientError(f"an upload of job {directory.job_id} is open again")
