"""The four questions of a sweep: who is dead, who is silent, whose time is over, what is left.

The first three go to the ledger's index. The last one goes to destinations where jobs are or have
just been: requests that no event has announced, working objects and uploads that an ended job's
tasks have left. Each destination costs two bounded listings, and a read of the ledger for few of
the jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice, takewhile
from typing import Final

from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, owner_of, parse_directory
from s3commit.core.job.documents import opened_at, read_spec
from s3commit.core.job.record import committed_holder
from s3commit.core.job.uploads import random_key, uploads_of_job
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.core.model.locks import seconds
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import shifted
from s3commit.core.ports.objects import ListedObject, OpenUpload, listed_at
from s3commit.core.sweep.actions import Action, SweepReport, aborting, retiring, starting
from s3commit.core.sweep.sweep import DAY, HOUR, Sweep, Visit, ask

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
WINDOW: Final = 2 * DAY  # so long after its last job has ended a destination is visited
LEFT_OBJECTS: Final = "it has left working objects"
LEFT_UPLOADS: Final = "it has left open uploads"
Jobs = dict[str, JobRecord]  # by their ids


@dataclass(slots=True)
class Contents:
    """The contents of a job directory; constant in size, however much that is.

    ``is_all`` is False where there is more: then ``newest`` may be wrong.
    """

    job: ListedObject | None = None
    request: ListedObject | None = None
    result: ListedObject | None = None
    scratch: int = 0
    newest: str = ""
    is_all: bool = True


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
    request = listed_at(sweep.ports.store, directory.bucket, directory.request)
    if request is not None:
        since = max(request.modified, record.updated_at)
        yield from start(sweep, since, record, "its request has no result")
        return
    holder = committed_holder(sweep.ports, record)
    silent = sweep.limits.stuck if holder else sweep.limits.abandoned
    if record.job_sha256 != "" and record.updated_at < sweep.ago(silent):
        found = contents(directory, sweep.ports.store.list(directory.bucket, directory.prefix))
        yield from abort_if_silent(sweep, directory, found, record.updated_at, holder)


def _retire(sweep: Sweep, record: JobRecord) -> Iterator[Action]:
    directory = JobDirectory.of(record)
    found = contents(directory, sweep.ports.store.list(directory.bucket, directory.prefix))
    yield from _ended_job(sweep, directory, record, found)


def start(sweep: Sweep, since: str, job: JobRecord | JobDirectory, why: str) -> Iterator[Action]:
    """Start an execution for a job on which none has worked since ``since``, if a try is due.

    The pause before the first try is `Limits.stuck`; it doubles with each, up to a day.
    """
    record = job if isinstance(job, JobRecord) else None
    directory = JobDirectory.of(job) if isinstance(job, JobRecord) else job
    due = try_due(since, sweep.now, sweep.limits.stuck)
    execution = (record and record.execution) or directory.ref
    if due and not sweep.executions.describe(execution).is_running:
        silent = spelled(int(seconds(since, sweep.now)))
        tidies = why in {LEFT_OBJECTS, LEFT_UPLOADS}
        yield starting(directory, due, f"{why}, silent for {silent}", tidies=tidies)


def try_due(since: str, now: str, pause: int) -> str:
    """The moment at which the last try fell due; empty: none has."""
    due, pause = 0, max(1, pause)
    longest = max(pause, LONGEST_PAUSE)
    while due + pause <= seconds(since, now):
        due, pause = due + pause, min(2 * pause, longest)
    return shifted(since, due) if due else ""


def abort_if_silent(
    sweep: Sweep, directory: JobDirectory, found: Contents, last_known: str, holder: str = ""
) -> Iterator[Action]:
    """Give a job up if nothing was put into its directory for `Limits.abandoned`.

    For `Limits.stuck`, if ``holder`` is committed with its key: it can add nothing.

    ``last_known`` is when the ledger last noted something of it. A directory of more than `LISTED`
    objects may have got one that was not seen.
    """
    last = max(found.newest, last_known)
    limit = sweep.limits.stuck if holder else sweep.limits.abandoned
    if not found.is_all or last >= sweep.ago(limit):
        return
    if holder:
        why = f"its idempotencyKey was committed by job {holder}, so this job can add nothing"
        yield aborting(directory, last, f"{why}, and the sweep gave it up")
        return
    silent = spelled(int(seconds(last, sweep.now)))
    reason = (
        f"abandoned: no task has ended since {last}, for {silent}, and the sweep gave the job up;"
        " run it again. If its tasks take so long, raise abandonedHours first: it is"
        f" {spelled(sweep.limits.abandoned)} now"
    )
    yield aborting(directory, last, reason)


def retirement(
    sweep: Sweep, directory: JobDirectory, found: Contents, record: JobRecord | None
) -> Action:
    """The documents of a job and all that the pipeline keeps of it; ``_commits/`` stays.

    ``_job.json`` goes behind the others, so that who stops in between leaves a job that can be
    read; and the decision last: while it is there, a late manifest does not open the job again.
    """
    kept = islice(sweep.ports.store.list(directory.bucket, directory.pipeline_prefix), LISTED)
    own = sorted(kept, key=lambda one: one.key == directory.decision)
    documents = filter(None, (found.request, found.result, found.job))
    return retiring(directory, [*documents, *own], record)


def contents(directory: JobDirectory, listing: Iterable[ListedObject]) -> Contents:
    """The contents of a job's directory, as far as `LISTED`."""
    found = Contents()
    for number, listed in enumerate(listing):
        if number == LISTED:
            found.is_all = False
            break
        if listed.key == directory.job:
            found.job = listed
        elif listed.key == directory.request:
            found.request = listed
        elif listed.key == directory.result:
            found.result = listed
        elif listed.key.startswith(directory.tasks):
            found.scratch += 1
        found.newest = max(found.newest, listed.modified)
    return found


def spelled(duration: int) -> str:
    """A duration in seconds for people, in its largest whole unit up to hours."""
    for unit, name in ((HOUR, "hour"), (60, "minute")):
        if duration >= unit:
            return many(duration // unit, name)
    return many(duration, "second")


def known_destinations(sweep: Sweep) -> Iterator[Visit]:
    """The destinations of jobs that are under way or have ended within `WINDOW`."""
    known: dict[Destination, Jobs] = {}
    for record in sweep.jobs_in(*JobState, before=sweep.now, ended_since=sweep.ago(WINDOW)):
        known.setdefault(record.destination, {})[record.job_id] = record
    for destination in sorted(known, key=lambda one: sweep.lot(one.uri)):
        visit = partial(_look_around, sweep, destination, known[destination])
        yield Visit(f"destination {destination.uri}", visit)


def _look_around(sweep: Sweep, destination: Destination, jobs: Jobs) -> Iterator[Action]:
    for directory, found in _directories(sweep, destination):
        if found.newest >= sweep.ago(sweep.limits.stuck):
            continue  # its events may be on their way
        if found.result is not None and not found.scratch and not _is_past(sweep, found.result):
            continue  # it has ended, and nothing is left
        record = jobs.get(directory.job_id) or sweep.ports.ledger.job(directory.ref)
        if record is None:
            yield from _unknown_job(sweep, directory, found)
        elif record.state in ENDED:
            yield from _ended_job(sweep, directory, record, found)
    yield from _left_uploads(sweep, destination, jobs)


def _is_past(sweep: Sweep, result: ListedObject) -> bool:
    return result.modified < sweep.ago(sweep.limits.retention)


def _unknown_job(sweep: Sweep, directory: JobDirectory, found: Contents) -> Iterator[Action]:
    """A job of which the ledger has no record: what an event should have brought about."""
    if found.request is not None and found.result is None:
        yield from start(sweep, found.request.modified, directory, "its request has no result")
    elif not _is_of_here(sweep, directory):
        return
    elif found.result is None:
        yield from abort_if_silent(sweep, directory, found, "")
    elif found.scratch:
        yield from start(sweep, found.newest, directory, LEFT_OBJECTS)
    else:
        yield retirement(sweep, directory, found, None)


def _is_of_here(sweep: Sweep, directory: JobDirectory) -> bool:
    """True if its ``_job.json`` says that the job is of this place.

    A copy of a table brings along the job directories of the original.
    """
    try:
        return bool(read_spec(sweep.ports, directory).sha256)
    except (InvalidInputError, AccessError):
        return False


def _ended_job(
    sweep: Sweep, directory: JobDirectory, record: JobRecord, found: Contents
) -> Iterator[Action]:
    since = max(record.updated_at, found.newest)
    if found.scratch:
        yield from start(sweep, since, record, LEFT_OBJECTS)
    elif found.result is None and record.updated_at >= sweep.ago(sweep.limits.retention):
        if found.job or found.request:
            yield from start(sweep, since, record, "it has no result")
    elif found.result is None or _is_past(sweep, found.result):
        yield retirement(sweep, directory, found, record)


def _left_uploads(sweep: Sweep, destination: Destination, jobs: Jobs) -> Iterator[Action]:
    """Ended jobs of which uploads are open: a task that had not been stopped has begun them."""
    left: dict[str, list[OpenUpload]] = {}
    for upload in _some_uploads(sweep, destination):
        record = jobs.get(owner_of(upload.key) or "")
        if record is not None and record.state in ENDED:
            left.setdefault(record.job_id, []).append(upload)
    for job_id, uploads in left.items():
        record = jobs[job_id]
        directory, opened = JobDirectory.of(record), opened_at(sweep.ports.store, record)
        own = uploads_of_job(sweep.ports, directory, opened, uploads)
        since = max((one.initiated for one in own), default="")
        if since:
            yield from start(sweep, since, record, LEFT_UPLOADS)


def _some_uploads(sweep: Sweep, destination: Destination) -> Iterator[OpenUpload]:
    """The first `LISTED` there and, if these are not all, as many from a random place on."""
    listing = partial(sweep.ports.store.list_uploads, destination.bucket)
    first = list(islice(listing(destination.prefix), LISTED))
    yield from first
    if len(first) == LISTED:
        lot = int(sweep.lot(destination.uri), 16)
        place = random_key(listing, destination.prefix, lot)
        here = takewhile(lambda one: one.key == place, listing(place))
        yield from islice(chain(here, listing(destination.prefix, after=place)), LISTED)


def _directories(sweep: Sweep, destination: Destination) -> Iterator[tuple[JobDirectory, Contents]]:
    """The job directories there, from a random one on, as far as `LISTED` objects."""
    prefix = destination.prefix + MAGIC_PREFIX
    first = prefix + sweep.lot(destination.uri)[:8]
    listing = partial(sweep.ports.store.list, destination.bucket, prefix)
    before = takewhile(lambda listed: listed.key <= first, listing())
    objects = islice(chain(listing(after=first), before), LISTED)
    taken = 0
    for name, group in groupby(objects, lambda listed: listed.key[len(prefix) :].split("/")[0]):
        found: list[ListedObject] = list(group)
        taken += len(found)
        if taken == LISTED:
            return  # there may be more of the last one
        try:
            directory = parse_directory(destination.bucket, f"{prefix}{name}/")
        except InvalidInputError:
            continue  # of no job of ours
        yield directory, contents(directory, found)


QUESTIONS = (stuck_jobs, open_jobs, past_jobs, known_destinations)


def run_sweep(sweep: Sweep) -> SweepReport:
    """Ask all questions once; what there was no time for has its turn in a later sweep."""
    return ask(sweep, QUESTIONS)
