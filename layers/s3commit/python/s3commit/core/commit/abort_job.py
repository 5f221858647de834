"""AbortJob: a job ends before its decision."""

from __future__ import annotations

from s3commit.core.ending.result import conclude, end_job
from s3commit.core.ending.uploads import abort_uploads
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.record import own_record
from s3commit.core.model.job import Failure
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Pipeline

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
        record = end_job(pipeline, record, JobState.ABORTED)
    return conclude(pipeline, ticket, record)
