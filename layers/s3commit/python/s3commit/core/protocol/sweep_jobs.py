"""The sweep over the ledger: jobs that nobody writes any more, and those nobody works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from s3commit.core.errors import InvalidInputError
from s3commit.core.layout import JobDirectory
from s3commit.core.model import JobRecord
from s3commit.core.protocol.pipeline import read_spec
from s3commit.core.protocol.places import places_of
from s3commit.core.protocol.sweep import (
    Sweep,
    ask_to_abort,
    go_on,
    is_writing,
    seen,
)
from s3commit.core.states import JobState

# In these somebody has to work on a job, or wait for its destination.
AT_WORK = (
    JobState.SEALED,
    JobState.COMMITTING,
    JobState.PUBLISHING,
    JobState.ABORTING,
    JobState.ROLLING_BACK,
)


def look_at_open_jobs(sweep: Sweep, cursor: str) -> str:
    """Jobs in OPEN: start those whose request nobody heard, and give up those that are abandoned.

    A job of S3A's, without ``job.json``, is never given up: that its driver is dead can't be read
    in S3. Its record goes when its directory has gone, which its own committer sees to.
    """
    before = sweep.ago(sweep.limits.stuck)
    return _each_job(sweep, [JobState.OPEN], cursor, lambda record: _look(sweep, record), before)


def go_on_with_stuck_jobs(sweep: Sweep, cursor: str) -> str:
    """Start an execution for each job that was asked for and that no execution works on.

    Ended ones whose client has no result are found by their directories.
    """
    before = sweep.ago(sweep.limits.stuck)

    def visit(record: JobRecord) -> None:
        go_on(sweep, _place(record), record, record.updated_at)

    return _each_job(sweep, AT_WORK, cursor, visit, before)


def _each_job(
    sweep: Sweep,
    states: Iterable[JobState],
    cursor: str,
    visit: Callable[[JobRecord], None],
    before: str,
) -> str:
    """Visit the jobs in ``states`` not updated since ``before``, from the cursor on.

    A cursor is a state and a moment. A call stops between two moments only, so that jobs of one
    moment are visited together and the next call begins with the next moment.
    """
    at, _, since = cursor.partition(" ")
    for state in states:
        if at and state != at:
            continue
        first, at, last = (since if at else ""), "", ""
        for record in sweep.pipeline.ledger.jobs_in(state, since=first, before=before):
            if last not in {"", record.updated_at} and sweep.spent:
                return f"{state} {record.updated_at}"
            last = record.updated_at
            sweep.took()
            with sweep.each(f"job {record.job_id}"):
                visit(record)
    return ""


def _place(record: JobRecord) -> JobDirectory:
    return JobDirectory(record.destination, record.job_id)


def _look(sweep: Sweep, record: JobRecord) -> None:
    place = _place(record)
    request = seen(sweep, place.bucket, place.request)
    if request is not None:
        go_on(sweep, place, record, max(request.modified, record.updated_at))
    elif max(record.updated_at, record.created_at) < sweep.ago(sweep.limits.abandoned):
        _judge_silent(sweep, place, record)


def _judge_silent(sweep: Sweep, place: JobDirectory, record: JobRecord) -> None:
    since = sweep.ago(sweep.limits.abandoned)
    newest, is_ours = "", False
    for listed in sweep.survey.objects(place.bucket, place.prefix):
        newest = max(newest, listed.modified)
        is_ours = is_ours or listed.key == place.job
    if not newest:
        # Its committer has deleted the directory: committed or aborted, and none of our business.
        if sweep.dry_run or sweep.pipeline.ledger.forget(
            record.job_id, generation=record.generation
        ):
            sweep.report.forgotten += 1
    elif is_ours and newest < since:
        abandon_if_silent(sweep, place, record, since)


def abandon_if_silent(
    sweep: Sweep, place: JobDirectory, record: JobRecord | None, since: str
) -> None:
    """Abort a job of ours whose directory is silent, unless it is still uploading."""
    try:
        spec = read_spec(sweep.pipeline, place)
    except InvalidInputError:
        return  # a copy of another table's directory, or of a location: no job by itself
    places = places_of(sweep.pipeline, place, record)
    for location in places[1:]:
        listed = sweep.survey.objects(location.bucket, location.prefix)
        if any(one.modified >= since for one in listed):
            return
    if not is_writing(sweep, places, spec.names, since):
        ask_to_abort(sweep, place)
