"""The sweep over the ledger: jobs that nobody writes any more, and those nobody works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.documents import read_spec
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import listed_at
from s3commit.core.sweep.signs_of_life import Suspect, last_sign
from s3commit.core.sweep.sweep import DAY, Sweep, abort_abandoned, restart, shifted

# In these somebody has to work on a job, or wait for its destination.
AT_WORK = (
    JobState.SEALED,
    JobState.COMMITTING,
    JobState.PUBLISHING,
    JobState.ABORTING,
    JobState.ROLLING_BACK,
)

LONGEST_SILENCE = DAY // 4  # between two looks for a sign of life of a job that may be dead
LONGEST_REST = DAY  # between two looks at a job that nothing but S3A's committer can end
FORGOTTEN_REST = 7 * DAY  # ... that is older than documents are kept


def look_at_open_jobs(sweep: Sweep, cursor: str) -> str:
    """Jobs in OPEN: start those whose request nobody heard, and give up those that are abandoned.

    A job of S3A's, without ``job.json``, is never given up: that its driver is dead can't be read
    in S3. Its record goes when its directory has gone, which its own committer sees to. Anybody can
    make such records, so old ones are looked at ever more seldom.
    """
    before = sweep.ago(sweep.limits.stuck)
    return _each_job(sweep, [JobState.OPEN], cursor, partial(_look, sweep), before)


def go_on_with_stuck_jobs(sweep: Sweep, cursor: str) -> str:
    """Start an execution for each job that was asked for and that no execution works on.

    Ended ones whose client has no result are found by their directories.
    """
    before = sweep.ago(sweep.limits.stuck)

    def visit(record: JobRecord, _left: str) -> str:
        restart(sweep, JobDirectory.of(record), record, record.updated_at)
        return ""

    return _each_job(sweep, AT_WORK, cursor, visit, before)


def _each_job(
    sweep: Sweep,
    states: Iterable[JobState],
    cursor: str,
    visit: Callable[[JobRecord, str], str],
    before: str,
) -> str:
    """Visit the jobs in ``states`` not updated since ``before``, from the cursor on.

    A cursor is a state and a moment. A call stops between two moments, so that jobs of one moment
    are visited together and the next call begins with the next moment. A job of which a visit left
    something is put off: its cursor names the job as well, and what is left.
    """
    at, since, job, left = (*cursor.split(" ", 3), "", "", "", "")[:4]
    for state in states:
        if at and state != at:
            continue
        first, at, last = (since if at else ""), "", ""
        for record in sweep.ports.ledger.jobs_in(state, since=first, before=before):
            if last not in {"", record.updated_at} and (sweep.spent or sweep.alone):
                return "" if sweep.alone else f"{state} {record.updated_at}"
            last = record.updated_at
            if sweep.alone != (record.ref == job) or not _has_its_turn(sweep, record):
                continue
            sweep.took()
            cursor = f"{state} {record.updated_at} {record.ref} "
            with sweep.each(f"job {record.job_id}", JobDirectory.of(record).prefix, cursor=cursor):
                more = visit(record, left)
                if more:
                    sweep.postpone(JobDirectory.of(record).prefix, cursor + more)
    return ""


def _has_its_turn(sweep: Sweep, record: JobRecord) -> bool:
    """Whether the job is visited now: not if it is put off, or its directory's share is up."""
    if sweep.alone:
        return True
    if JobDirectory.of(record).prefix in sweep.put_off or is_resting(sweep, record):
        return False
    if sweep.cost.overspent(JobDirectory.of(record).prefix):
        sweep.report.postponed += 1
        return False
    return True


def is_resting(sweep: Sweep, record: JobRecord) -> bool:
    """Whether an old OPEN job without a ``job.json`` need not be looked at in this walk."""
    if record.state is not JobState.OPEN or record.opened_at:
        return False
    since = shifted(_last_heard(record), sweep.limits.abandoned)
    if sweep.began < since:
        return False
    is_old = shifted(since, sweep.limits.retention) < sweep.began
    longest = FORGOTTEN_REST if is_old else LONGEST_REST
    return not sweep.is_due(since, sweep.limits.stuck, longest)


def _last_heard(record: JobRecord) -> str:
    return max(record.updated_at, record.created_at)


def _look(sweep: Sweep, record: JobRecord, left: str) -> str:
    directory = JobDirectory.of(record)
    request = listed_at(sweep.ports.store, directory.bucket, directory.request)
    if request is not None:
        restart(sweep, directory, record, max(request.modified, record.updated_at))
    elif _last_heard(record) < sweep.ago(sweep.limits.abandoned):
        since = shifted(_last_heard(record), sweep.limits.abandoned)
        if left or sweep.is_due(since, sweep.limits.stuck, LONGEST_SILENCE):
            return _judge_silent(sweep, directory, record, left)
    return ""


def _judge_silent(sweep: Sweep, directory: JobDirectory, record: JobRecord, left: str) -> str:
    since = sweep.ago(sweep.limits.abandoned)
    newest, is_ours = "", False
    for listed in sweep.ports.store.list(directory.bucket, directory.prefix):
        newest = max(newest, listed.modified)
        if newest >= since:
            return ""
        is_ours = is_ours or listed.key == directory.job
    if is_ours or (not newest and record.opened_at):
        return abandon_if_silent(sweep, directory, record, since=since, known=newest, left=left)
    if not newest and (
        sweep.dry_run or sweep.ports.ledger.forget(record.ref, generation=record.generation)
    ):
        # Its committer has deleted the directory: committed or aborted, and none of our business.
        sweep.report.forgotten += 1
    return ""


def abandon_if_silent(
    sweep: Sweep,
    directory: JobDirectory,
    record: JobRecord | None,
    *,
    since: str,
    known: str,
    left: str = "",
) -> str:
    """Abort a job of ours whose directory is silent, unless it is still uploading.

    ``known`` is when something was last put into the directory. Returns what is left to be asked,
    as `last_sign` takes it.
    """
    try:
        spec = read_spec(sweep.ports, directory)
    except InvalidInputError:
        return ""  # a copy of another table's directory: no job of here
    heard = _last_heard(record) if record is not None else ""
    opened_at = (record.opened_at if record else "") or spec.put_at
    suspect = Suspect(directory, opened_at, since)
    life = last_sign(sweep, suspect, known=max(known, heard), left=left)
    if not life.left and life.last < since:
        abort_abandoned(sweep, directory, life.last)
    return life.left
