"""A job whose id a job at another place has: it is turned away, and the other one left alone.

The ledger has one record for an id, and it is of the place that came first (docs/adr/0010). Which
of two is the impostor nobody can tell; the one that came later gets a result that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from s3commit.core.documents import encode_result
from s3commit.core.errors import InvalidInputError, PreconditionError, S3CommitError, TransientError
from s3commit.core.layout import JobDirectory, belongs_to_job, is_data
from s3commit.core.ledger import LostRaceError
from s3commit.core.model import Failure, JobRecord, JobResult, Names, Outcome
from s3commit.core.policy import ABORT_ROUNDS
from s3commit.core.ports import OpenUpload
from s3commit.core.protocol.named_uploads import uploads_named
from s3commit.core.protocol.pipeline import Pipeline, read_spec
from s3commit.core.protocol.places import places_of
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket

JOB_ID_TAKEN = "JOB_ID_TAKEN"


def is_elsewhere(record: JobRecord, place: JobDirectory) -> bool:
    """Whether the record is of a job at another place."""
    return record.destination != place.destination


def ending(pipeline: Pipeline, ticket: Ticket, holder: JobRecord) -> Ticket:
    """The ticket with which the execution goes on to `turn_away`.

    Raises `LostRaceError` if the job has its result: it ended long ago and was forgotten, and
    there is nothing to do.
    """
    place = ticket.place
    if pipeline.store.head(place.bucket, place.result) is not None:
        raise LostRaceError(f"job {place.job_id} at {place.destination.uri} has ended", holder)
    return _ticket(ticket, JobState.ABORTING)


def turn_away(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """End the job at the ticket's place without the ledger: uploads aborted, ABORTED, a result.

    What lies at the holder's destination and locations is the holder's, also where one destination
    lies in the other. While uploads are still being opened the caller comes again. Raises
    `S3CommitError` if files of the job are visible: it was decided once, the ledger was lost, and
    a person has to look at it; `TransientError` if the holder has gone meanwhile.
    """
    place = ticket.place
    holder = pipeline.ledger.job(place.job_id)
    if holder is None or not is_elsewhere(holder, place):
        raise TransientError(f"job id {place.job_id} has become free: run the job again")
    in_reach = holder.destination.bucket == place.bucket
    theirs = _prefixes(pipeline, holder) if in_reach else ()
    if not _abort_uploads(pipeline, place, theirs):
        return _ticket(ticket, JobState.ABORTING)
    _refuse_to_lie(pipeline, place, holder, theirs)
    result = JobResult(
        job_id=place.job_id,
        outcome=Outcome.ABORTED,
        error=Failure(
            JOB_ID_TAKEN,
            f"job id {place.job_id} was first used at {holder.destination.uri}; write the data"
            " again under a new id",
        ),
        files=0,
        bytes=0,
        rows=None,
        decided_at=None,
        finished_at=pipeline.clock.now(),
        execution=ticket.execution,
    )
    with suppress(PreconditionError):  # an earlier try of this very step was here
        pipeline.store.put(place.bucket, place.result, encode_result(result), if_absent=True)
    return _ticket(ticket, JobState.ABORTED)


def says_elsewhere(pipeline: Pipeline, place: JobDirectory) -> bool:
    """Whether the ``job.json`` that lies here is not acceptable here: nothing was ever decided.

    So it is in a copy of a table, which brings along the job directories of the original.
    """
    try:
        read_spec(pipeline, place)
    except InvalidInputError:
        return True
    return False


def _ticket(ticket: Ticket, state: JobState) -> Ticket:
    outcome = Outcome.ABORTED if state is JobState.ABORTED else ""
    return replace(ticket, state=state, outcome=outcome, code=JOB_ID_TAKEN, refusal=None)


def _prefixes(pipeline: Pipeline, holder: JobRecord) -> tuple[str, ...]:
    """Where the holder's files lie: its destination, and the locations that its client named."""
    try:
        spec = read_spec(pipeline, JobDirectory(holder.destination, holder.job_id))
    except InvalidInputError:
        return (holder.destination.prefix,)  # it is being refused for that
    return (holder.destination.prefix, *spec.locations.values())


def _abort_uploads(pipeline: Pipeline, place: JobDirectory, theirs: tuple[str, ...]) -> bool:
    names = _names(pipeline, place)
    for _ in range(ABORT_ROUNDS):
        places = places_of(pipeline, place, None)
        found = [up for one in places for up in _own_uploads(pipeline, one, theirs, names)]
        if not found:
            return True
        for upload in found:
            pipeline.store.abort_upload(place.bucket, upload.key, upload.upload_id)
    return False


def _names(pipeline: Pipeline, place: JobDirectory) -> Names:
    """How the job's files are named; where their names tell, a manifest proves nothing (I5)."""
    try:
        return read_spec(pipeline, place).names
    except InvalidInputError:
        return Names.UNIQUE


def _own_uploads(
    pipeline: Pipeline, place: JobDirectory, theirs: tuple[str, ...], names: Names
) -> Iterator[OpenUpload]:
    """By their names, and those that the job's manifests and notes name: where names are exact."""
    still_open = {
        (upload.key, upload.upload_id): upload
        for upload in pipeline.store.list_uploads(place.bucket, place.destination.prefix)
        if not upload.key.startswith(theirs)
    }
    by_manifest = bool(still_open) and names is Names.EXACT
    named = set(uploads_named(pipeline, place)) if by_manifest else set()
    for found, upload in still_open.items():
        if belongs_to_job(upload.key, place.job_id) or found in named:
            yield upload


def _refuse_to_lie(
    pipeline: Pipeline, place: JobDirectory, holder: JobRecord, theirs: tuple[str, ...]
) -> None:
    """ABORTED promises that no file was ever visible."""
    if says_elsewhere(pipeline, place):
        return
    found = (
        (one, listed)
        for one in places_of(pipeline, place, None)
        for listed in pipeline.store.list(one.bucket, one.destination.prefix)
    )
    for one, listed in found:
        if (
            belongs_to_job(listed.key, one.job_id)
            and is_data(one.relative(listed.key))
            and not listed.key.startswith(theirs)
        ):
            raise S3CommitError(
                f"{listed.key} of job {place.job_id} is visible, but the ledger has the id at"
                f" {holder.destination.uri}: the ledger was lost, or someone has put the file"
                " there; see docs/operations.md",
                code=JOB_ID_TAKEN,
            )
