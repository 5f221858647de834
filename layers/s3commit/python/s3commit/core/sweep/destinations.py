"""The question to destinations where jobs are or have just been: what have jobs left there.

Requests that no event has announced, working objects and uploads that an ended job's tasks have
left. Each destination costs two bounded listings, and a read of the ledger for few of the jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, groupby, islice, takewhile
from typing import Final

from s3commit.core.formats.file_names import owner_of
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, parse_directory
from s3commit.core.job.contents import Contents
from s3commit.core.job.documents import opened_at, read_spec
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ownership.open_uploads import is_older
from s3commit.core.ports.objects import ListedObject
from s3commit.core.sweep.actions import Action
from s3commit.core.sweep.questions import LISTED, abort_if_silent, contents, retirement, start
from s3commit.core.sweep.sweep import DAY, Look, Sweep

WINDOW: Final = 2 * DAY  # so long after its last job has ended a destination is visited
Jobs = dict[str, JobRecord]  # by their ids


def known_destinations(sweep: Sweep) -> Iterator[Look]:
    """The destinations of jobs that are under way or have ended within `WINDOW`."""
    known: dict[Destination, Jobs] = {}
    for state in JobState:
        since = sweep.ago(WINDOW) if state in ENDED else ""
        for record in sweep.jobs_in(state, before=sweep.now, since=since):
            known.setdefault(record.destination, {})[record.job_id] = record
    for destination in sorted(known, key=lambda one: sweep.lot(one.uri)):
        visit = partial(_visit, sweep, destination, known[destination])
        yield Look(f"destination {destination.uri}", visit)


def _visit(sweep: Sweep, destination: Destination, jobs: Jobs) -> Iterator[Action]:
    for directory, found in _directories(sweep, destination):
        if found.newest >= sweep.ago(sweep.limits.stuck) or not _asks_for_more(sweep, found):
            continue  # its events may be on their way; or it has ended, and nothing is left
        record = jobs.get(directory.job_id) or sweep.ports.ledger.job(directory.ref)
        if record is None:
            yield from _unknown_job(sweep, directory, found)
        elif record.state in ENDED:
            yield from _ended_job(sweep, directory, record, found)
    yield from _left_uploads(sweep, destination, jobs)


def _asks_for_more(sweep: Sweep, found: Contents) -> bool:
    return found.result is None or found.scratch > 0 or _is_past(sweep, found)


def _is_past(sweep: Sweep, found: Contents) -> bool:
    return found.result is not None and found.result.modified < sweep.ago(sweep.limits.retention)


def _unknown_job(sweep: Sweep, directory: JobDirectory, found: Contents) -> Iterator[Action]:
    """A job of which the ledger has no record: what an event should have brought about."""
    if found.request is not None and found.result is None:
        yield from start(sweep, found.request.modified, directory, "its request was not heard")
    elif not _is_of_here(sweep, directory):
        return
    elif found.result is None:
        yield from abort_if_silent(sweep, directory, found, "")
    elif found.scratch:
        yield from start(sweep, found.newest, directory, "it has left working objects")
    else:
        yield retirement(sweep, directory, found, None)


def _is_of_here(sweep: Sweep, directory: JobDirectory) -> bool:
    """Whether its ``job.json`` says that the job is of this place.

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
        yield from start(sweep, since, record, "it has left working objects")
    elif found.result is not None:
        yield retirement(sweep, directory, found, record)
    elif found.own and record.updated_at >= sweep.ago(sweep.limits.retention):
        yield from start(sweep, since, record, "it has no result")


def _left_uploads(sweep: Sweep, destination: Destination, jobs: Jobs) -> Iterator[Action]:
    """Ended jobs of which uploads are open: a task that had not been stopped has begun them."""
    newest: dict[str, str] = {}
    opened: dict[str, str] = {}
    uploads = sweep.ports.store.list_uploads(destination.bucket, destination.prefix)
    for upload in islice(uploads, LISTED):
        job_id = owner_of(upload.key) or ""
        record = jobs.get(job_id)
        if record is None or record.state not in ENDED:
            continue
        if job_id not in opened:
            opened[job_id] = opened_at(sweep.ports.store, record)
        # Without a job.json a name proves nothing.
        if opened[job_id] and not is_older(upload, opened[job_id]):
            newest[job_id] = max(newest.get(job_id, ""), upload.initiated)
    for job_id, since in newest.items():
        yield from start(sweep, since, jobs[job_id], "it has left open uploads")


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
