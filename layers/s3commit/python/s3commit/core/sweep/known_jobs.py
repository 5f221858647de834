"""The questions that go to the ledger's index: who is dead, who is silent, whose time is over."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.record import committed_holder
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import listed_at
from s3commit.core.sweep.actions import Action
from s3commit.core.sweep.sweep import Sweep, Visit
from s3commit.core.sweep.verdicts import abort_if_silent, asked_at, contents, judge_ended, start

# In these an execution works on the job, or waits for its destination.
AT_WORK: Final = (
    JobState.SEALED,
    JobState.COMMITTING,
    JobState.PUBLISHING,
    JobState.ABORTING,
    JobState.ROLLING_BACK,
)


def stuck_jobs(sweep: Sweep) -> Iterator[Visit]:
    """Jobs that an execution should work on, and none does: one is started."""
    for record in sweep.jobs_in(*AT_WORK, before=sweep.ago(sweep.limits.stuck)):
        find = partial(start, sweep, record.updated_at, record, record.state)
        yield Visit(f"job {record.job_id}", find)


def open_jobs(sweep: Sweep) -> Iterator[Visit]:
    """Jobs in OPEN: those with a request are started, and those that are abandoned aborted."""
    for record in sweep.jobs_in(JobState.OPEN, before=sweep.ago(sweep.limits.stuck)):
        yield Visit(f"job {record.job_id}", partial(_start_or_abort, sweep, record))


def past_jobs(sweep: Sweep) -> Iterator[Visit]:
    """Ended jobs whose documents are past their time: these go."""
    for record in sweep.jobs_in(*ENDED, before=sweep.ago(sweep.limits.retention)):
        yield Visit(f"job {record.job_id}", partial(_retire, sweep, record))


def _start_or_abort(sweep: Sweep, record: JobRecord) -> Iterator[Action]:
    directory = JobDirectory.of(record)
    if not sweep.ports.serves(directory.prefix):
        yield from start(sweep, record.updated_at, record, "it is outside the prefixes served")
        return
    request = listed_at(sweep.ports.store, directory.bucket, directory.request)
    if request is not None:
        since = max(asked_at(sweep, directory, request), record.updated_at)
        yield from start(sweep, since, record, "its request has no result")
        return
    holder = committed_holder(sweep.ports.ledger, record)
    silent = sweep.limits.stuck if holder else sweep.limits.abandoned
    if record.job_sha256 != "" and record.updated_at < sweep.ago(silent):
        listing = sweep.ports.store.list(directory.bucket, directory.prefix)
        found = contents(sweep, directory, listing)
        yield from abort_if_silent(sweep, directory, found, record.updated_at, holder)


def _retire(sweep: Sweep, record: JobRecord) -> Iterator[Action]:
    directory, ports = JobDirectory.of(record), sweep.ports
    is_here = ports.serves(directory.prefix)
    listed = ports.store.list(directory.bucket, directory.prefix) if is_here else ()
    found = contents(sweep, directory, listed)
    yield from judge_ended(sweep, directory, record, found)
