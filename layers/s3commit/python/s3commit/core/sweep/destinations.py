"""The question what is left, at destinations where jobs are or have just been.

Requests that no event has announced, and working objects and uploads that an ended job's tasks have
left. Each destination costs two bounded listings, and a read of the ledger for few of the jobs.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain, groupby, islice, takewhile
from typing import Final

from s3commit.core.documents.job_json import opened_at, read_spec
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, owner_of, parse_directory
from s3commit.core.jobs.listings import random_key
from s3commit.core.jobs.ownership import uploads_of_job
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import ListedObject, OpenUpload
from s3commit.core.sweep.actions import Action
from s3commit.core.sweep.sweep import DAY, Sweep, Visit
from s3commit.core.sweep.verdicts import (
    LEFT_OBJECTS,
    LISTED,
    Contents,
    abort_if_silent,
    contents,
    is_past,
    judge_ended,
    retirement,
    start,
)

WINDOW: Final = 2 * DAY  # so long after its last job has ended a destination is visited
Jobs = dict[str, JobRecord]  # by their ids


def known_destinations(sweep: Sweep) -> Iterator[Visit]:
    """The destinations of jobs that are under way or have ended within `WINDOW`."""
    known: dict[Destination, Jobs] = {}
    for record in sweep.jobs_in(*JobState, before=sweep.now, ended_since=sweep.ago(WINDOW)):
        if sweep.ports.serves(record.destination.prefix):
            known.setdefault(record.destination, {})[record.job_id] = record
    for destination in sorted(known, key=lambda one: sweep.lot(one.uri)):
        visit = partial(_look_around, sweep, destination, known[destination])
        yield Visit(f"destination {destination.uri}", visit)


def _look_around(sweep: Sweep, destination: Destination, jobs: Jobs) -> Iterator[Action]:
    for directory, found in _directories(sweep, destination):
        if found.newest >= sweep.ago(sweep.limits.stuck):
            continue  # its events may be on their way
        if found.result is not None and not found.scratch and not is_past(sweep, found.result):
            continue  # it has ended, and nothing is left
        record = jobs.get(directory.job_id) or sweep.ports.ledger.job(directory.ref)
        if record is None:
            yield from _unknown_job(sweep, directory, found)
        elif record.state in ENDED:
            yield from judge_ended(sweep, directory, record, found)
    yield from _left_uploads(sweep, destination, jobs)


def _unknown_job(sweep: Sweep, directory: JobDirectory, found: Contents) -> Iterator[Action]:
    """A job of which the ledger has no record: what an event should have brought about."""
    if found.request is not None and found.result is None:
        yield from start(sweep, found.asked, directory, "its request has no result")
    elif not _is_of_here(sweep, directory):
        return
    elif found.result is None:
        yield from abort_if_silent(sweep, directory, found, "")
    elif found.scratch:
        yield from start(sweep, found.newest, directory, LEFT_OBJECTS, tidies=True)
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
            yield from start(sweep, since, record, "it has left open uploads", tidies=True)


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
        yield directory, contents(sweep, directory, found)
