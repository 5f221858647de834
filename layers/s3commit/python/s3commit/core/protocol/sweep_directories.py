"""The sweep over job directories: what lies in S3 of jobs, whatever the ledger knows of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby

from s3commit.core.errors import InvalidInputError, PreconditionError
from s3commit.core.layout import MAGIC_PREFIX, JobDirectory, parse_directory
from s3commit.core.model import Destination, JobRecord
from s3commit.core.protocol.acquire import release_locks
from s3commit.core.protocol.places import places_of
from s3commit.core.protocol.sweep import DAY, Sweep, go_on, seen
from s3commit.core.protocol.sweep_jobs import abandon_if_silent
from s3commit.core.protocol.sweep_s3a import Left, report_left, report_shared
from s3commit.core.protocol.taken import says_elsewhere
from s3commit.core.protocol.tidy import tidy
from s3commit.core.states import ENDED, JobState
from s3commit.core.survey import SeenObject

DESTINATIONS_A_CALL = 500
WINDOW = 2 * DAY  # in which a sweep must have run, lest something waits for the next job there
TIDIED_HERE = 2_000  # objects; more are for an execution, which has the time


@dataclass(slots=True)
class Found:
    """What lies in a job directory; constant in size, however much that is."""

    job: SeenObject | None = None
    request: SeenObject | None = None
    result: SeenObject | None = None
    scratch: int = 0
    scratch_bytes: int = 0
    of_s3a: Left = field(default_factory=Left)
    oldest: str = ""
    newest: str = ""
    last: str = ""

    @property
    def own(self) -> tuple[SeenObject, ...]:
        """The protocol's three objects, as far as they are there; the result comes last."""
        return tuple(filter(None, (self.job, self.request, self.result)))


def read_directory(sweep: Sweep, place: JobDirectory) -> Found | None:
    """List a job's directory; None if nothing is in it."""
    return _summary(place, sweep.survey.objects(place.bucket, place.prefix))


def _summary(place: JobDirectory, objects: Iterable[SeenObject]) -> Found | None:
    found = Found()
    for listed in objects:
        if listed.key == place.job:
            found.job = listed
        elif listed.key == place.request:
            found.request = listed
        elif listed.key == place.result:
            found.result = listed
        elif listed.key.startswith(place.scratch):
            found.scratch += 1
            found.scratch_bytes += listed.length
        if listed.key.startswith(place.s3a) and listed.key != place.s3a:
            found.of_s3a.add(listed)
        found.oldest = min(found.oldest or listed.modified, listed.modified)
        found.newest = max(found.newest, listed.modified)
        found.last = listed.key
    return found if found.last else None


def tidy_job_directories(sweep: Sweep, cursor: str) -> str:
    """Tidy up behind ended jobs, and find those that nobody has heard of.

    At every destination of a job that is under way, has ended within two days, or did so as long
    ago as its documents are kept. A cursor is a destination, and the job
    directory there with which the call before ended (none: with the whole destination).
    """
    first, _, name = cursor.partition("\n")
    destinations = _destinations(sweep, first, inclusive=bool(name))
    for destination in destinations:
        after = name if destination.uri == first else ""
        if not after:
            report_shared(sweep, destination)
        stopped = _tidy_destination(sweep, destination, after)
        if stopped:
            return f"{destination.uri}\n{stopped}"
    return destinations[-1].uri if len(destinations) == DESTINATIONS_A_CALL else ""


def _destinations(sweep: Sweep, first: str, *, inclusive: bool) -> list[Destination]:
    """The next destinations in order, of those where something may be to do."""
    found: dict[str, Destination] = {}
    for record in _jobs_of_interest(sweep):
        uri = record.destination.uri
        if uri > first or (inclusive and uri == first):
            found[uri] = record.destination
        if len(found) > 2 * DESTINATIONS_A_CALL:
            found = dict(sorted(found.items())[:DESTINATIONS_A_CALL])
    return [found[uri] for uri in sorted(found)[:DESTINATIONS_A_CALL]]


def _jobs_of_interest(sweep: Sweep) -> Iterator[JobRecord]:
    """Jobs under way, those that have ended lately, and those whose documents are due.

    A ledger may keep a million ended jobs: they are not all read in each call.
    """
    due = sweep.limits.retention
    for state in JobState:
        if state not in ENDED:
            yield from sweep.pipeline.ledger.jobs_in(state, before=sweep.now)
            continue
        for since, before in ((due + WINDOW, due), (WINDOW, 0)):
            yield from sweep.pipeline.ledger.jobs_in(
                state, since=sweep.ago(since), before=sweep.ago(before)
            )


def _tidy_destination(sweep: Sweep, destination: Destination, after: str) -> str:
    """Go through the job directories; the name of the last one if the call has done enough."""
    prefix = destination.prefix + MAGIC_PREFIX
    # What comes after all keys of a directory: 0 is the character that follows the slash.
    start = f"{prefix}{after}0" if after else ""
    objects = sweep.survey.objects(destination.bucket, prefix, after=start)
    last = ""
    for name, group in groupby(objects, lambda listed: listed.key[len(prefix) :].split("/")[0]):
        if last and sweep.spent:
            return last
        last = name
        sweep.took()
        _tidy_group(sweep, destination.bucket, f"{prefix}{name}/", group)
    return ""


def _tidy_group(sweep: Sweep, bucket: str, prefix: str, group: Iterator[SeenObject]) -> None:
    try:
        place = parse_directory(bucket, prefix)
    except InvalidInputError:
        return  # of no job of ours
    found = _summary(place, group)
    with sweep.each(f"directory {place.uri}"):
        # What changes right now is not judged: somebody is at work.
        if found is not None and found.newest < sweep.ago(sweep.limits.stuck):
            _judge(sweep, place, found)


def _judge(sweep: Sweep, place: JobDirectory, found: Found) -> None:
    record = sweep.pipeline.ledger.job(place.job_id)
    if record is None or record.directory != place.prefix:
        judge_unknown(sweep, place, record, found)
    elif record.state in ENDED:
        _judge_ended(sweep, place, record, found)
    elif record.state is JobState.OPEN and not found.own:
        report_left(sweep, place, found.of_s3a)


def judge_unknown(
    sweep: Sweep, place: JobDirectory, elsewhere: JobRecord | None, found: Found
) -> None:
    """A directory of which the ledger has no record: what an event should have brought about.

    ``elsewhere`` is the record of a job with the same id at another place. A job that was asked for
    is started; one that never was is given up when it is silent. One with a result has ended.
    """
    if found.result is not None:
        if found.scratch and elsewhere is None:
            go_on(sweep, place, None, found.newest)  # the ledger is told, and TidyUp runs
        elif found.result.modified < sweep.ago(sweep.limits.retention):
            _retire(sweep, place, None, found)
    elif found.request is not None:
        go_on(sweep, place, elsewhere, found.request.modified)
    elif found.job is not None:
        since = sweep.ago(sweep.limits.abandoned)
        if found.newest < since:
            abandon_if_silent(sweep, place, None, since=since, known=found.newest)
    elif elsewhere is None:
        report_left(sweep, place, found.of_s3a)


def _judge_ended(sweep: Sweep, place: JobDirectory, record: JobRecord, found: Found) -> None:
    is_due = found.result is not None and found.result.modified < sweep.ago(sweep.limits.retention)
    # Between these two nobody lists the locations of all ended jobs with every sweep.
    asked = is_due or found.scratch > 0 or record.updated_at >= sweep.ago(WINDOW)
    places = places_of(sweep.pipeline, place, record) if asked else ()
    elsewhere = [one for at in places[1:] if (one := read_directory(sweep, at))]
    if any(one.newest >= sweep.ago(sweep.limits.stuck) for one in elsewhere):
        return  # its event may be on its way
    everywhere = (found, *elsewhere)
    scratch = sum(one.scratch for one in everywhere)
    if scratch > TIDIED_HERE:
        go_on(sweep, place, record, max(record.updated_at, *(one.newest for one in everywhere)))
        return
    if scratch:
        if not sweep.dry_run and not tidy(sweep.pipeline, place, record):
            return  # somebody still opens uploads: the next sweep comes again
        sweep.report.tidied += 1
        sweep.report.objects += scratch
        sweep.report.object_bytes += sum(one.scratch_bytes for one in everywhere)
    if is_due:
        _retire(sweep, place, record, found)
    elif found.own and found.result is None:
        go_on(sweep, place, record, record.updated_at)


def _retire(sweep: Sweep, place: JobDirectory, record: JobRecord | None, found: Found) -> None:
    """The retention time is over: nothing of the directory stays; ``_commits/`` does.

    The result goes last: while it is there, the next sweep knows that the job has ended.
    """
    if says_elsewhere(sweep.pipeline, place):
        return  # a copy of another table's directory: nothing in it is a job's of here
    gone = list(found.own)
    for one in places_of(sweep.pipeline, place, record):
        listed = sweep.survey.objects(one.bucket, one.prefix)
        # Of a job that is in the ledger TidyUp has been here.
        scratch = [] if record else [each for each in listed if each.key.startswith(one.scratch)]
        job = seen(sweep, one.bucket, one.job) if one != place else None
        gone = [*scratch, *filter(None, [job]), *gone]
    if not sweep.dry_run:
        if record is not None:
            release_locks(sweep.pipeline, record)
        for each in gone:
            with suppress(PreconditionError):  # another object by now, and not the one judged
                sweep.pipeline.store.delete(place.bucket, each.key, if_match=each.etag)
    sweep.report.retired += 1
    sweep.report.objects += len(gone)
    sweep.report.object_bytes += sum(each.length for each in gone)
