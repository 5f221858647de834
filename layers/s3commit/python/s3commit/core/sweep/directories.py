"""The sweep over job directories: what lies in S3 of jobs, whatever the ledger knows of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, groupby, islice

from s3commit.core.ending.leftovers import own_leftovers, tidy
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, parse_directory
from s3commit.core.job.claims import release_locks
from s3commit.core.job.contents import Contents
from s3commit.core.job.documents import says_elsewhere
from s3commit.core.model.errors import InvalidInputError, PreconditionError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import ListedObject, listed_at
from s3commit.core.sweep.jobs import abandon_if_silent, is_resting
from s3commit.core.sweep.sweep import DAY, Sweep, restart

DESTINATIONS_A_CALL = 500
LISTED = 100_000  # objects of a directory; one that has more is judged by these and its documents
WINDOW = 2 * DAY  # in which a sweep must have run, lest something waits for the next job there
# More is for an execution, which has the time: objects, and bytes of manifests, some 300 for each
# upload that they name.
TIDIED_HERE = 2_000
TIDIED_BYTES = TIDIED_HERE * 300

# So many times `stuck` after a job's end its place in _s3commit/ is listed: somebody late may have
# put something there, and nothing into the job's directory. A day, with 15
# minutes; the next time, after three days, is beyond `WINDOW`.
LISTED_AFTER = 96


def read_directory(sweep: Sweep, directory: JobDirectory) -> Contents | None:
    """List a job's directory, as far as `LISTED`; None if nothing is in it."""
    return _summary(sweep, directory, sweep.ports.store.list(directory.bucket, directory.prefix))


def _summary(
    sweep: Sweep, directory: JobDirectory, objects: Iterable[ListedObject]
) -> Contents | None:
    found = Contents()
    for number, listed in enumerate(objects):
        if number == LISTED:
            found.is_all = False
            found.job = listed_at(sweep.ports.store, directory.bucket, directory.job)
            found.request = listed_at(sweep.ports.store, directory.bucket, directory.request)
            found.result = listed_at(sweep.ports.store, directory.bucket, directory.result)
            break
        found.add(directory, listed)
    return found if found.last else None


def tidy_job_directories(sweep: Sweep, cursor: str) -> str:
    """Tidy up behind ended jobs, and find those that nobody has heard of.

    At every destination of a job that is under way, has ended within two days, or did so as long
    ago as its documents are kept. A cursor is a destination, and the job
    directory there with which the call before ended (none: with the whole destination). A
    destination below a directory whose share is up is put off.
    """
    first, inclusive, name = cursor.partition("\n")
    destinations = _destinations(sweep, first, inclusive=bool(inclusive))
    for destination in destinations:
        uri = destination.uri
        if sweep.alone and uri != first:
            break
        if not sweep.alone and uri in sweep.put_off:
            continue
        after = name if uri == first else ""
        stopped = _tidy_destination(sweep, destination, after)
        if stopped is None:
            continue
        if not sweep.alone and sweep.spent:
            return f"{uri}\n{stopped}"
        sweep.postpone(uri, f"{uri}\n{stopped}")
    if sweep.alone or len(destinations) < DESTINATIONS_A_CALL:
        return ""
    return destinations[-1].uri


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
            for record in sweep.ports.ledger.jobs_in(state, before=sweep.now):
                if not is_resting(sweep, record):
                    yield record
            continue
        for since, before in ((due + WINDOW, due), (WINDOW, 0)):
            yield from sweep.ports.ledger.jobs_in(
                state, since=sweep.ago(since), before=sweep.ago(before)
            )


def _tidy_destination(sweep: Sweep, destination: Destination, after: str) -> str | None:
    """Go through the job directories behind ``after``; None if all of them are done.

    Else the name of the last one: the call has done enough, or the destination has to wait.
    """
    prefix = destination.prefix + MAGIC_PREFIX
    last, looked, goes_on = after, False, True
    while goes_on:
        # What comes after all keys of a directory: 0 is the character that follows the slash.
        start = f"{prefix}{last}0" if last else ""
        objects = sweep.ports.store.list(destination.bucket, prefix, after=start)
        goes_on = False
        for name, group in groupby(objects, lambda listed: listed.key[len(prefix) :].split("/")[0]):
            has_to_wait = not sweep.alone and sweep.cost.overspent(destination.prefix)
            if has_to_wait or (looked and sweep.spent):
                return last
            last, looked = name, True
            if not _tidy_group(sweep, destination.bucket, f"{prefix}{name}/", group):
                goes_on = True  # the rest of the directory is not listed
                break
    return None


def _tidy_group(sweep: Sweep, bucket: str, prefix: str, group: Iterator[ListedObject]) -> bool:
    """Judge a directory; whether all of it has been listed."""
    is_all = False
    with sweep.each(f"directory s3://{bucket}/{prefix}", prefix):
        try:
            directory = parse_directory(bucket, prefix)
        except InvalidInputError:
            sweep.took()
            return sum(1 for _ in islice(group, LISTED)) < LISTED  # of no job of ours
        found = _summary(sweep, directory, group)
        is_all = found is None or found.is_all
        if found is not None and not _has_nothing_to_do(sweep, found):
            sweep.took()
            _judge(sweep, directory, found)
        else:
            sweep.report.looked += 1
    return is_all


def _has_nothing_to_do(sweep: Sweep, found: Contents) -> bool:
    """Whether the listing alone tells that nothing is to be done, whatever the ledger says.

    What changes right now is not judged: somebody is at work. A job with a result and without
    scratch has ended, and was tidied up behind; if a client has put that result, the ledger's
    record leads to the job (`s3commit.core.sweep.jobs`).
    """
    if found.newest >= sweep.ago(sweep.limits.stuck):
        return True
    if found.result is None or found.scratch or not found.is_all or _is_due(sweep, found):
        return False
    return not _may_have_left_more(sweep, found.result.modified)


def _is_due(sweep: Sweep, found: Contents) -> bool:
    return found.result is not None and found.result.modified < sweep.ago(sweep.limits.retention)


def _may_have_left_more(sweep: Sweep, since: str) -> bool:
    """Whether places other than its directory are to be listed for a job that ended then."""
    pause = min(LISTED_AFTER * sweep.limits.stuck, WINDOW)
    return since >= sweep.ago(WINDOW) and sweep.is_due(since, pause, WINDOW)


def _judge(sweep: Sweep, directory: JobDirectory, found: Contents) -> None:
    record = sweep.ports.ledger.job(directory.ref)
    if record is None:
        judge_unknown(sweep, directory, found)
    elif record.state in ENDED:
        _judge_ended(sweep, directory, record, found)
    elif record.state is JobState.OPEN and found.request is not None:
        restart(sweep, directory, record, max(found.request.modified, record.updated_at))


def judge_unknown(sweep: Sweep, directory: JobDirectory, found: Contents) -> None:
    """A directory of which the ledger has no record: what an event should have brought about.

    A job that was asked for is started; one that never was is given up when it is silent. One with
    a result has ended.
    """
    if found.result is not None:
        if found.scratch:
            restart(sweep, directory, None, found.newest)  # the ledger is told, and TidyUp runs
        elif found.result.modified < sweep.ago(sweep.limits.retention):
            _retire(sweep, directory, None, found)
    elif found.request is not None:
        restart(sweep, directory, None, found.request.modified)
    elif found.job is not None and found.is_all:
        since = sweep.ago(sweep.limits.abandoned)
        if found.newest < since:
            abandon_if_silent(sweep, directory, None, since=since, known=found.newest)


def _judge_ended(sweep: Sweep, directory: JobDirectory, record: JobRecord, found: Contents) -> None:
    is_due = _is_due(sweep, found)
    # Between these nobody lists the places of all ended jobs with every sweep.
    ended = found.result.modified if found.result else record.updated_at
    asked = is_due or found.scratch > 0 or _may_have_left_more(sweep, ended)
    own = own_leftovers(sweep.ports.store, directory) if asked else []
    scratch = found.scratch + len(own)
    scratch_bytes = found.scratch_bytes
    if scratch > TIDIED_HERE or scratch_bytes > TIDIED_BYTES:
        restart(sweep, directory, record, max(record.updated_at, found.newest))
        return
    if scratch and found.is_all:
        if not sweep.dry_run and not tidy(sweep.ports, directory, record):
            return  # somebody still opens uploads: the next sweep comes again
        sweep.report.tidied += 1
        sweep.report.objects += scratch
        sweep.report.object_bytes += scratch_bytes
        sweep.report.object_bytes += sum(one.length for one in own)
    if is_due:
        _retire(sweep, directory, record, found)
    elif found.own and found.result is None:
        restart(sweep, directory, record, record.updated_at)


def _retire(
    sweep: Sweep, directory: JobDirectory, record: JobRecord | None, found: Contents
) -> None:
    """The retention time is over: nothing of the directory stays; ``_commits/`` does.

    The decision goes last, behind the result: while one of the two is there, a late manifest does
    not open the job again.
    """
    if says_elsewhere(sweep.ports, directory):
        return  # a copy of another table's directory: nothing in it is a job's of here
    decision = listed_at(sweep.ports.store, directory.bucket, directory.decision)
    gone = [*found.own, *filter(None, [decision])]
    # Of a job that is in the ledger TidyUp has been here.
    scratch = [] if record else _scratch(sweep, directory)
    # With more the next sweep goes on: as long as the documents are there it finds them.
    gone = scratch if len(scratch) == TIDIED_HERE else [*scratch, *gone]
    if not sweep.dry_run:
        if record is not None:
            release_locks(sweep.ports, record)
        for each in gone:
            with suppress(PreconditionError):  # another object by now, and not the one judged
                sweep.ports.store.delete(directory.bucket, each.key, if_match=each.etag)
    sweep.report.retired += 1
    sweep.report.objects += len(gone)
    sweep.report.object_bytes += sum(each.length for each in gone)


def _scratch(sweep: Sweep, directory: JobDirectory) -> list[ListedObject]:
    """What an ended job needs no more; `TIDIED_HERE` objects at most."""
    listed = chain.from_iterable(
        sweep.ports.store.list(directory.bucket, prefix)
        for prefix in (directory.tasks, directory.pipeline_prefix)
    )
    return list(islice((one for one in listed if one.key != directory.decision), TIDIED_HERE))
