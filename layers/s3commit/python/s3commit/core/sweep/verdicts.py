"""The verdicts of a sweep on one job: start an execution, abort it, or delete its documents."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from s3commit.core.documents.request_json import AbortRequest, encode_request, first_put_at
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.rounds import start_execution
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import NOT_READABLE, PreconditionError
from s3commit.core.model.moments import seconds, shifted
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.objects import ListedObject
from s3commit.core.sweep.actions import Action, SweepReport
from s3commit.core.sweep.sweep import DAY, HOUR, Sweep

LISTED: Final = 100_000  # objects of one directory: a hundred requests
LONGEST_PAUSE: Final = DAY  # between two executions of a job that fails again and again
LEFT_OBJECTS: Final = "it has left working objects"


@dataclass(slots=True)
class Contents:
    """The contents of a job directory; constant in size, however much that is.

    ``asked`` is when the job was requested first, ``newest`` the newest of all. ``is_all`` is False
    where there is more: then ``newest`` may be wrong.
    """

    job: ListedObject | None = None
    request: ListedObject | None = None
    result: ListedObject | None = None
    scratch: int = 0
    newest: str = ""
    asked: str = ""
    is_all: bool = True


def start(
    sweep: Sweep, since: str, job: JobRecord | JobDirectory, why: str, *, tidies: bool = False
) -> Iterator[Action]:
    """Start an execution for a job on which none has worked since ``since``, if a try is due.

    The pause before the first try is `Limits.stuck`; it doubles with each, up to a day. Two sweeps
    that see the same start one.
    """
    record = job if isinstance(job, JobRecord) else None
    directory = JobDirectory.of(job) if isinstance(job, JobRecord) else job
    due = try_due(since, sweep.now, sweep.limits.stuck)
    execution = (record and record.execution) or directory.ref
    if due and not sweep.executions.describe(execution).is_running:
        silent = spelled(int(seconds(since, sweep.now)))

        def carry_out() -> bool:
            return start_execution(sweep.executions, directory, due) is not None

        line = f"{_job(directory)}: {why}, silent for {silent}; an execution starts"
        counts = SweepReport(started=1, tidied=int(tidies))
        yield Action(f"start {due}", directory, line, counts, carry_out)


def try_due(since: str, now: str, pause: int) -> str:
    """The moment at which the last try fell due; empty: none has."""
    due, pause, silent = 0, max(1, pause), seconds(since, now)
    longest = max(pause, LONGEST_PAUSE)
    while due + pause <= silent:
        due, pause = due + pause, min(2 * pause, longest)
    return shifted(since, due) if due else ""


def abort_if_silent(
    sweep: Sweep, directory: JobDirectory, found: Contents, last_known: str, holder: str = ""
) -> Iterator[Action]:
    """Request the abort of a job if nothing was put into its directory for `Limits.abandoned`.

    For `Limits.stuck`, if ``holder`` is committed with its key: it can add nothing. A driver that
    wakes finds the request.

    ``last_known`` is when the ledger last noted something of it. A directory of more than `LISTED`
    objects may have got one that was not seen.
    """
    last = max(found.newest, last_known)
    limit = sweep.limits.stuck if holder else sweep.limits.abandoned
    if not found.is_all or last >= sweep.ago(limit):
        return
    why, silent = "abandoned", spelled(int(seconds(last, sweep.now)))
    reason = (
        f"abandoned: no task has ended since {last}, for {silent}, and the sweep gave the job up;"
        " run it again. If its tasks take so long, raise abandonedHours first: it is"
        f" {spelled(sweep.limits.abandoned)} now"
    )
    if holder:
        why = f"its idempotencyKey was committed by job {holder}"
        reason = f"{why}, so this job can add nothing, and the sweep gave it up"

    def carry_out() -> bool:
        body = encode_request(AbortRequest(directory.job_id, reason, abandoned=True))
        sweep.ports.store.put(directory.bucket, directory.request, body, if_absent=True)
        return True

    line = f"{_job(directory)}: {why}, no sign of life since {last}; its abort is requested"
    yield Action("abort", directory, line, SweepReport(aborted=1), carry_out)


def retirement(
    sweep: Sweep, directory: JobDirectory, found: Contents, record: JobRecord | None
) -> Action:
    """The documents of a job and all that the pipeline keeps of it; ``_commits/`` stays.

    ``_job.json`` goes behind the others, so that who stops in between leaves a job that can be
    read; and the decision last: while it is there, a late manifest does not open the job again.
    """
    kept = islice(sweep.ports.store.list(directory.bucket, directory.pipeline_prefix), LISTED)
    own = sorted(kept, key=lambda one: one.key == directory.decision)
    documents = [*filter(None, (found.request, found.result, found.job)), *own]

    def carry_out() -> bool:
        for one in documents:
            with suppress(PreconditionError):  # it was replaced since, and stays
                sweep.ports.store.delete(directory.bucket, one.key, if_match=one.etag)
        if record is not None:
            sweep.ports.ledger.unlist(record.ref)
        return True

    line = f"{_job(directory)}: its documents are past their time and go"
    counts = SweepReport(expired=1, documents_deleted=len(documents))
    return Action("retire", directory, line, counts, carry_out)


def _job(directory: JobDirectory) -> str:
    return f"job {directory.job_id} at {directory.destination.uri}"


def contents(sweep: Sweep, directory: JobDirectory, listing: Iterable[ListedObject]) -> Contents:
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
        if listed.key != directory.request:
            found.newest = max(found.newest, listed.modified)
    if found.request is not None:
        found.asked = asked_at(sweep, directory, found.request)
        found.newest = max(found.newest, found.asked)
    return found


def asked_at(sweep: Sweep, directory: JobDirectory, request: ListedObject) -> str:
    """When the job was requested: a request that was put again counts from its first time."""
    if request.modified >= sweep.ago(sweep.limits.stuck):
        with suppress(*NOT_READABLE):
            facts = sweep.ports.store.head(directory.bucket, directory.request)
            return request.modified if facts is None else first_put_at(facts)
    return request.modified


def spelled(duration: int) -> str:
    """A duration in seconds for people, in its largest whole unit up to hours."""
    for unit, name in ((HOUR, "hour"), (60, "minute")):
        if duration >= unit:
            return many(duration // unit, name)
    return many(duration, "second")


def is_past(sweep: Sweep, result: ListedObject) -> bool:
    """True if the documents of a job with this result are past their time."""
    return result.modified < sweep.ago(sweep.limits.retention)


def judge_ended(
    sweep: Sweep, directory: JobDirectory, record: JobRecord, found: Contents
) -> Iterator[Action]:
    """Finish an ended job that has left something, or delete its documents after their time."""
    since = max(record.updated_at, found.newest)
    if found.scratch:
        yield from start(sweep, since, record, LEFT_OBJECTS, tidies=True)
    elif found.result is None and record.updated_at >= sweep.ago(sweep.limits.retention):
        if found.job or found.request:
            yield from start(sweep, since, record, "it has no result")
    elif found.result is None or is_past(sweep, found.result):
        yield retirement(sweep, directory, found, record)
