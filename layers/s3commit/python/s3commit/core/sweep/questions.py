"""The questions of a sweep to the ledger's index: who is silent, who is dead, whose time is over.

A fourth one, to the destinations of these jobs, is in `s3commit.core.sweep.destinations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.contents import Contents
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import ListedObject, listed_at
from s3commit.core.sweep.actions import Abort, Action, Retire, Start
from s3commit.core.sweep.sweep import DAY, HOUR, Look, Sweep, seconds_between

LISTED: Final = 100_000  # objects of one directory: a hundred requests
LONGEST_PAUSE: Final = DAY  # between two executions of a job that fails again and again

# In these an execution works on the job, or waits for its destination.
AT_WORK: Final = (
    JobState.SEALED,
    JobState.COMMITTING,
    JobState.PUBLISHING,
    JobState.ABORTING,
    JobState.ROLLING_BACK,
)


def stuck_jobs(sweep: Sweep) -> Iterator[Look]:
    """Jobs that an execution should work on, and none does: one is started."""
    for state in AT_WORK:
        for record in sweep.jobs_in(state, before=sweep.ago(sweep.limits.stuck)):
            yield _look(record, partial(start, sweep, record.updated_at, record, record.state))


def open_jobs(sweep: Sweep) -> Iterator[Look]:
    """Jobs in OPEN: those with a request are started, and those that are abandoned given up."""
    for record in sweep.jobs_in(JobState.OPEN, before=sweep.ago(sweep.limits.stuck)):
        yield _look(record, partial(_start_or_abort, sweep, record))


def past_jobs(sweep: Sweep) -> Iterator[Look]:
    """Ended jobs whose documents are past their time: these go."""
    for state in ENDED:
        for record in sweep.jobs_in(state, before=sweep.ago(sweep.limits.retention)):
            yield _look(record, partial(_retire, sweep, record))


def _look(record: JobRecord, find: partial[Iterator[Action]]) -> Look:
    return Look(f"job {record.job_id}", find)


def _start_or_abort(sweep: Sweep, record: JobRecord) -> Iterator[Action]:
    directory = JobDirectory.of(record)
    request = listed_at(sweep.ports.store, directory.bucket, directory.request)
    if request is not None:
        since = max(request.modified, record.updated_at)
        yield from start(sweep, since, record, "its request was not heard")
    elif record.job_sha256 != "" and record.updated_at < sweep.ago(sweep.limits.abandoned):
        found = contents(directory, sweep.ports.store.list(directory.bucket, directory.prefix))
        yield from abort_if_silent(sweep, directory, found, record.updated_at)


def _retire(sweep: Sweep, record: JobRecord) -> Iterator[Action]:
    directory = JobDirectory.of(record)
    found = contents(directory, sweep.ports.store.list(directory.bucket, directory.prefix))
    if found.scratch:
        since = max(found.newest, record.updated_at)
        yield from start(sweep, since, record, "it has left working objects")
    elif found.result is None or found.result.modified < sweep.ago(sweep.limits.retention):
        yield retirement(sweep, directory, found, record)


def start(sweep: Sweep, since: str, job: JobRecord | JobDirectory, why: str) -> Iterator[Action]:
    """Start an execution for a job on which none has worked since ``since``, if a try is due.

    The pause before the first try is `Limits.stuck`; it doubles with each, up to a day. The name
    says when the try was due: two sweeps that see the same start one execution, and the name of
    one that died at once, which is taken for 90 days, is not the next one's.
    """
    record = job if isinstance(job, JobRecord) else None
    directory = JobDirectory.of(job) if isinstance(job, JobRecord) else job
    due = try_due(since, sweep.now, sweep.limits.stuck)
    execution = (record and record.execution) or directory.ref
    if due and not sweep.executions.describe(execution).is_running:
        silent = spelled(seconds_between(since, sweep.now))
        yield Start(directory, f"{directory.ref}-{due}", f"{why}, silent for {silent}")


def try_due(since: str, now: str, pause: int) -> str:
    """The moment at which the last try fell due, in hex digits; empty: none has."""
    due, pause = 0, max(1, pause)
    longest = max(pause, LONGEST_PAUSE)
    while due + pause <= seconds_between(since, now):
        due, pause = due + pause, min(2 * pause, longest)
    return f"{seconds_between(_EPOCH, since) + due:x}" if due else ""


_EPOCH: Final = "1970-01-01T00:00:00.000Z"


def abort_if_silent(
    sweep: Sweep, directory: JobDirectory, found: Contents, heard: str
) -> Iterator[Action]:
    """Give a job up if nothing was put into its directory for `Limits.abandoned`.

    ``heard`` is when the ledger last heard of it. A directory of more than `LISTED` objects may
    have got one that was not seen.
    """
    last = max(found.newest, heard)
    if not found.is_all or last >= sweep.ago(sweep.limits.abandoned):
        return
    silent = spelled(seconds_between(last, sweep.now))
    reason = (
        f"abandoned: no task has ended since {last}, for {silent}, and the sweep gave the job up;"
        " run it again. If its tasks take so long, raise abandonedHours first: it is"
        f" {spelled(sweep.limits.abandoned)} now"
    )
    yield Abort(directory, last, reason)


def retirement(
    sweep: Sweep, directory: JobDirectory, found: Contents, record: JobRecord | None
) -> Retire:
    """The documents of a job and all that the pipeline keeps of it; ``_commits/`` stays.

    ``job.json`` goes behind the others, so that who stops in between leaves a job that can be read;
    and the decision last: while it is there, a late manifest does not open the job again.
    """
    kept = islice(sweep.ports.store.list(directory.bucket, directory.pipeline_prefix), LISTED)
    own = sorted(kept, key=lambda one: one.key == directory.decision)
    documents = filter(None, (found.request, found.result, found.job))
    return Retire(directory, (*documents, *own), record)


def contents(directory: JobDirectory, listing: Iterable[ListedObject]) -> Contents:
    """What lies in a job's directory, as far as `LISTED`."""
    found = Contents()
    for number, listed in enumerate(listing):
        if number == LISTED:
            found.is_all = False
            break
        found.add(directory, listed)
    return found


def spelled(seconds: int) -> str:
    """A duration for people, in its largest whole unit up to hours."""
    for unit, name in ((HOUR, "hour"), (60, "minute")):
        if seconds >= unit:
            return f"{seconds // unit} {name}{'s' * (seconds // unit != 1)}"
    return f"{seconds} second{'s' * (seconds != 1)}"
