"""``s3commit status``."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import click

from s3commit.cli.advice import REQUEST_PATIENCE, needs_attention
from s3commit.cli.alarms import sentences, watched
from s3commit.cli.job_facts import blockers, kind_of
from s3commit.cli.job_lists import jobs_at, lister
from s3commit.cli.options import DESTINATION, table_option, with_session
from s3commit.cli.render import epoch_of, fields, took
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.past_commits import undone_by
from s3commit.core.jobs.record import committed_holder
from s3commit.core.model.amounts import many
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.outcome import ALREADY_COMMITTED
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.executions import Execution
from s3commit.core.ports.objects import listed_at
from s3commit.core.ports.parallel import together

# Executions of jobs at work, which Step Functions answers some ten a second for long; and requests.
LOOKED_AT = 50
# Alarms that fire while events wait, on their way to the ledger.
_LATE = {"EventsLost", "FunctionErrors", "FunctionThrottles", "IngestBacklog", "RequestBacklog"}
NOT_HERE = "s3commit log DESTINATION also shows jobs whose events have not arrived"
_COLUMNS = (
    "attention as !, state, ageSeconds, jobId as JOB, destination, requestedSeconds,"
    " executionFailed, waitsSeconds, waitsFor as FOR, code as WHY NOT, undoneBy as UNDONE BY"
)


@click.command()
@click.argument("destination", type=DESTINATION, required=False)
@table_option
@click.option("--all", "ended_too", is_flag=True, help="Also the jobs that have ended.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(list(JobState), case_sensitive=False),
    metavar="STATE",
    help="Only jobs in this state; may be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Jobs of each state at most: the oldest that are under way, the latest that have ended.",
)
@with_session
def status(
    session: Session,
    *,
    destination: Destination | None,
    ended_too: bool,
    states: tuple[JobState, ...],
    limit: int,
) -> None:
    """List the jobs that have not ended, of all tables or of one.

    A table includes those below it. Jobs that need attention come first, then the latest. AGE is
    the time since the job's last change of state, or since its last sign of life while it waits for
    its destination. WAITS is how long it has been blocked, FOR the jobs that block it. REQUESTED is
    how long ago the end of an OPEN job was requested. EXECUTION FAILED has the error code. A "!"
    marks a job whose execution is dead or has not begun in five minutes, and a job without progress
    for too long: 40 minutes in SEALED, an hour in later states, a day while its tasks write. WHY
    NOT is the code of a job that was not committed, or can't be. UNDONE BY has the first digits of
    the id of the undo that has undone the job. Run `s3commit show JOB` for the next step, `s3commit
    log DESTINATION` for what has ended at a table. Last come the deployment's alarms that fire, its
    dead letters, and whether it is paused, if the caller has the rights to read them
    (cloudwatch:DescribeAlarms, sqs:GetQueueAttributes, lambda:GetEventSourceMapping,
    events:DescribeRule).
    """
    table, now = session.table(), session.clock.now()
    jobs_in = lister(session.ledger(table))
    of_all = [state for state in JobState if ended_too or state not in ENDED]
    wanted = list(dict.fromkeys(states)) or of_all

    def in_state(state: JobState) -> tuple[list[JobRecord], str]:
        # Of those under way the oldest are the ones in trouble.
        return jobs_at(jobs_in, state, now, destination, limit, latest_first=state in ENDED)

    looks = (partial(in_state, one) for one in wanted)
    seen, *found = together(session.parallel, partial(watched, session, table), *looks)
    records = [record for of_state, _ in found for record in of_state]
    document = jobs_document(session, table, records, seen)
    document["complete"] = not any(stopped for _, stopped in found)
    session.out.table(document, "jobs", _COLUMNS)
    at = f" at {destination.uri}" if destination else ""
    none = f"no jobs under way{at}; --all adds those that have ended"
    if ended_too or states:
        none = f"no jobs{at}"
    if document["unheard"] or document["disabled"] or _LATE & {*(document["alarms"] or ())}:
        none = "no job to show has reached the ledger, but events are held up: see below"
    summary = _summary(document["jobs"], document["counts"]) or f"{none}; {NOT_HERE}"
    session.out.note(summary, *sentences(document))
    if not document["complete"]:
        session.out.note("there are more: raise --limit, or name a --state")
    session.out.note(*document["problems"])


def jobs_document(
    session: Session,
    table: str,
    records: list[JobRecord],
    seen: tuple[dict[str, Any], list[str]],
    later: Iterable[JobRecord] = (),
) -> dict[str, Any]:
    """The rows of the jobs, those that need attention first, then the latest; and what fires.

    ``seen`` is the answer of `watched`. Undos of the jobs are looked for among themselves, and
    among the ``later`` jobs.
    """
    ledger, now = session.ledger(table), session.epoch()
    waits = dict(session.parallel(lambda record: (record.ref, blockers(ledger, record)), records))
    blocking = [other for others in waits.values() for other in others]
    at_work = _oldest(record for record in records if record.state not in {*ENDED, JobState.OPEN})
    executions, problems = session.read_executions(one.execution for one in blocking + at_work)
    still_open = [one for one in records if one.state is JobState.OPEN and one.idempotency_key]
    taken = {one.ref for one in _oldest(still_open) if committed_holder(ledger, one)}
    requests, unseen = _read_requests(session, records)
    ended = [one for one in (*records, *later) if one.state is JobState.COMMITTED]
    undos = [one for one in ended if one.undoes]
    leaving = {_name(one) for one in undos if not (one.replaced and one.replaced.restores_all)}
    undone = undone_by(((_name(one), _name(one, one.undoes)) for one in undos), leaving)
    jobs = [
        _document(one, waits, executions, requests, now, taken=taken)
        | {"undoneBy": undone.get(_name(one), (None, None))[1]}
        for one in records
    ]
    jobs.sort(key=lambda job: (job["attention"], job["updatedAt"]), reverse=True)
    found, unwatched = seen
    return {
        "table": table,
        "counts": Counter(job["state"] for job in jobs),
        "problems": problems + unseen + unwatched,
        "jobs": jobs,
        **found,
    }


def _name(record: JobRecord, job_id: str = "") -> tuple[str, str]:
    return record.destination.uri, job_id or record.job_id


def _read_requests(
    session: Session, records: list[JobRecord]
) -> tuple[dict[str, str | None], list[str]]:
    """When the requests of OPEN jobs were put, by the jobs' refs, and what went wrong with asking.

    A listing each, of those that were silent for the longest time.
    """
    still_open = _oldest(record for record in records if record.state is JobState.OPEN)
    if not still_open:
        return {}, []
    store = session.store  # made here, since the workers would make one each

    def look(record: JobRecord) -> tuple[str, str | None]:
        directory = JobDirectory.of(record)
        request = listed_at(store, directory.bucket, directory.request)
        return record.ref, request.modified if request else None

    try:
        return dict(session.parallel(look, still_open)), []
    except S3CommitError as error:
        return {}, [f"requests cannot be read: {error.message}"]


def _oldest(records: Iterable[JobRecord]) -> list[JobRecord]:
    return sorted(records, key=lambda one: one.updated_at)[:LOOKED_AT]


def _document(
    record: JobRecord,
    waits: dict[str, list[JobRecord]],
    executions: dict[str, Execution],
    requests: dict[str, str | None],
    now: float,
    *,
    taken: set[str],
) -> dict[str, Any]:
    waits_for, execution = waits[record.ref], executions.get(record.execution)
    requested_at = requests.get(record.ref)
    failed = None  # also of an execution that has just succeeded: it has ended the job
    if execution and not execution.is_running and execution.status != "SUCCEEDED":
        failed = execution.failure.code if execution.failure else execution.status
    requested = int(now - epoch_of(requested_at)) if requested_at else None
    lost = (requested or 0) > REQUEST_PATIENCE
    silent = record.state not in ENDED and needs_attention(record, now)
    seconds = int(now - epoch_of(record.waits.since)) if record.waits and waits_for else None
    is_taken = ALREADY_COMMITTED if record.ref in taken else None
    return {
        **fields(record, "job_id", "state", "created_at", "updated_at", "note", "labels"),
        "attention": silent or lost or failed is not None,
        "ageSeconds": int(now - epoch_of(record.updated_at)),
        "requestedSeconds": requested,
        "waitsSeconds": seconds,
        "waitsFor": [other.job_id for other in waits_for],
        "destination": record.destination.uri,
        "kind": kind_of(record),
        "undoes": record.undoes or None,
        "tookSeconds": took(record.opened_at or record.created_at, record.finished_at),
        "idempotencyKey": record.idempotency_key,
        # The files that a job has planned and not committed were never there.
        **fields(None if record.failure else record.plan, "files", "bytes", "rows"),
        "execution": record.execution or None,
        "executionStatus": execution.status if execution else None,
        "executionFailed": failed,
        "code": record.failure.code if record.failure else is_taken,
    }


def _summary(jobs: list[dict[str, Any]], counts: Counter[str]) -> str:
    if not jobs:
        return ""
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    alarming = sum(job["attention"] for job in jobs)
    attention = f"; {many(alarming, 'needs', 'need')} attention (!)" if alarming else ""
    return f"{many(len(jobs), 'job')}: {each}{attention}"
