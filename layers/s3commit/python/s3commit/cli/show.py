"""``s3commit show``."""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import click

from s3commit.aws.executions import machine_of
from s3commit.cli.advice import meaning_of, next_step
from s3commit.cli.follow import COUNTS, follow, noted_attempts
from s3commit.cli.job_facts import (
    JobFacts,
    blockers,
    locate,
    own_uploads,
    read_job,
    read_manifest,
    read_manifests,
    unreadable,
)
from s3commit.cli.options import NamedJob, age_option, job_options, with_session
from s3commit.cli.render import epoch_of, fields
from s3commit.cli.session import Session
from s3commit.cli.show_history import COLUMNS, history_document
from s3commit.cli.undone import fate_of
from s3commit.core.documents.catalog_note import CATALOG_NOTE
from s3commit.core.documents.job_json import Who, encode_conditions
from s3commit.core.documents.request_json import AbortRequest
from s3commit.core.jobs.record import committed_holder
from s3commit.core.model.codes import Advice, advice_on, advice_on_execution
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError, S3CommitError
from s3commit.core.model.outcome import Failure
from s3commit.core.model.states import ENDED, JobState
from s3commit.writer.requests import require_committed

SCANNED_UPLOADS = 20_000  # of the destination: 20 requests, then it stops counting
_UNCOUNTED = "only some of the destination's open uploads were read: this job may have more"
_BY_NOBODY = (
    "not known: S3's event was lost or does not say (the embedded runtime's never does), or the"
    " ledger was not read"
)
_NO_EXECUTION = (
    "no execution is known: none has started, or the ledger was not read, or has forgotten the job"
)
_REGION = re.compile("[a-z0-9-]+")
_MODES = {Conflict.APPEND: "append", Conflict.FAIL: "error", Conflict.REPLACE: "overwrite"}
# Members that no next step needs, or that another member contains.
_INNER = {"generation", "scope", "undoneBy"}
_CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}


@click.command()
@job_options
@click.option("--follow", "following", is_flag=True, help="Print each change until the job ends.")
@click.option("--history", is_flag=True, help="The states of its execution, one a line.")
@age_option("--timeout", default="15m", about="With --follow: how long to wait: 90s, 15m, 2h.")
@with_session
def show(session: Session, *, job: NamedJob, following: bool, history: bool, timeout: int) -> None:
    """Show one job and what to do about it.

    Prints the job's state, its locks, the jobs that block it, its error, and the next step. JOB is
    a job id, its first 8 digits or more, or the s3:// URI of a job directory. With a URI the
    command needs S3 alone, but only the ledger knows which jobs a job waits for:

    \b
      s3commit show 7c9e6679-7425-40de-944b-e07fc1f90ae7
      s3commit show s3://lake/sales/__magic_job-7c9e6679-7425-40de-944b-e07fc1f90ae7/

    --follow prints a line for each change of state and of what the tasks have written, and for
    each job that blocks this one. It exits with 0 if the job is committed, or if another job with
    its idempotency key was; with 3 if it is aborted or rolled back; with 4 if its execution has
    died, or after --timeout.
    """  # noqa: D301 - click needs the backspace
    find = cache(partial(locate, session, job))
    if following:
        require_committed(follow(session, lambda: read_job(session, *find()), timeout))
    elif history:
        found = history_document(session, read_job(session, *find()).execution)
        session.out.table(found, "states", COLUMNS)
        unknown = [] if found["execution"] else [_NO_EXECUTION]
        session.out.note(*found["problems"], *unknown)
    else:
        document = job_document(session, read_job(session, *find()))
        session.out.facts(document if session.out.json else for_people(document))


def for_people(document: dict[str, Any]) -> dict[str, Any]:
    """The same under the names that people know, without what only a pipeline reads."""
    mode, scope, listed = (document[name] for name in ("conflict", "scope", "uploadsComplete"))
    within = " of its partitions" * (scope == Scope.PARTITION and mode == Conflict.REPLACE)
    asked = document["request"] or document["result"]
    names = {"conflict": "mode", "uploadsComplete": "uploadsListed"}
    told: dict[str, Any] = {
        **document,
        "requestedBy": document["requestedBy"] or (asked and _BY_NOBODY),
        "manifests": None if document["result"] else document["manifests"],  # its end deletes them
        "conflict": "undo" if document["undoes"] else mode and f"{_MODES[mode]}{within}",
        "uploadsComplete": "all" if listed else "some",
    }
    return {names.get(name, name): one for name, one in told.items() if name not in _INNER}


def job_document(
    session: Session,
    job: JobFacts,
    scanned_uploads: int = SCANNED_UPLOADS,
    listed_manifests: int | None = None,
) -> dict[str, Any]:
    """All about the job: its record, its documents and counts. An unknown member is null.

    With more manifests than ``listed_manifests`` neither they nor what they say is counted.
    """
    now, record, spec, failure = session.epoch(), job.record, job.spec, job.failure
    uploads, complete = own_uploads(session, job, scanned_uploads)
    manifests, all_listed = read_manifests(session, job, listed_manifests)
    locks = _locks(job, now)
    in_the_way = locks["inTheWay"] if locks else []
    at_work = job.result is None
    known = record is not None or not at_work or job.header is not None  # by a pipeline
    has_pipeline = None if known else session.has_pipeline(job.directory.bucket)
    arns = [job.execution] * at_work + [one["execution"] for one in in_the_way]
    executions, problems = session.read_executions(arns)
    problems += _catalog(session, job)
    for one in in_the_way:
        other = executions.get(one["execution"])
        one["executionStatus"] = other.status if other else None
        one["executionRuns"] = other.is_running if other else None
    execution = executions.get(job.execution)
    is_open = record is not None and record.state is JobState.OPEN
    holder = committed_holder(job.ledger, record) if job.ledger and record and is_open else ""
    fate = fate_of(session, job.directory) if job.state == JobState.COMMITTED else None
    problems += [fate.problem] if fate and fate.problem else []
    return {
        "jobId": job.job_id,
        "destination": job.directory.destination.uri,
        "directory": job.directory.uri,
        "state": job.state,
        "means": (fate and fate.means) or meaning_of(job, execution),
        "undoneBy": (fate and fate.by) or None,
        "keyCommittedBy": holder or None,
        "createdAt": spec.created_at if spec else record.created_at if record else None,
        "updatedAt": record.updated_at if record else None,
        "unchangedSeconds": int(now - epoch_of(record.updated_at)) if record else None,
        "generation": record.generation if record else None,
        "client": spec.client if spec else None,
        "who": spec.who and fields(spec.who, *Who.__slots__) if spec else None,
        "requestedBy": record.requested_by or None if record else None,
        **fields(spec or record or job.header, "note", "labels"),
        **fields(spec or record, "conflict", "scope", "partition_by", "idempotency_key"),
        "undoes": job.undoes or None,
        # The ledger does not keep them: _job.json alone says.
        "conditions": encode_conditions(spec.conditions) if spec else None,
        "request": _request(job),
        "manifests": len(manifests) if all_listed else None,
        "tasks": _tasks(session, job, manifests) if all_listed else None,
        "noted": noted_attempts(job) if all_listed and at_work else None,
        "plan": record and record.plan and fields(record.plan, "units", *COUNTS),
        "replaced": record and record.replaced and fields(record.replaced, "files", "bytes"),
        "locks": locks,
        "result": job.result
        and fields(job.result, "outcome", *COUNTS, "replaced", "decided_at", "finished_at"),
        "error": _error(failure, advice_on),
        "openUploads": len(uploads),
        "uploadsComplete": complete,
        "execution": job.execution or None,
        "executionStatus": execution.status if execution else None,
        "executionError": _error(execution.failure if execution else None, advice_on_execution),
        "console": console_url(job.execution) if job.execution and session.has_console() else None,
        "problems": [*job.problems.values(), *problems, *(() if complete else (_UNCOUNTED,))],
        "next": next_step(
            job, execution, in_the_way, now, has_pipeline, key_holder=holder, fate=fate
        ),
    }


def _tasks(session: Session, job: JobFacts, manifests: list[str]) -> dict[str, int] | None:
    """How many tasks of an OPEN job are done, of how many; None if the first manifest has no say.

    Some may have no rows, and never get a manifest.
    """
    if job.state != JobState.OPEN or not manifests:
        return None
    try:
        pending, _ = read_manifest(session, job, manifests[0])
    except S3CommitError as error:
        name = manifests[0][len(job.directory.prefix) :]
        job.problems[name] = unreadable(name, error)
        return None
    done = {key[len(job.directory.tasks) :].partition("/")[0] for key in manifests}
    return {"done": len(done), "of": pending.task_count} if pending.task_count else None


def _catalog(session: Session, job: JobFacts) -> list[str]:
    """That a table of the catalog does not know the committed job; none if that is not known."""
    if job.state != JobState.COMMITTED:
        return []
    try:
        key, most = job.directory.catalog, CATALOG_NOTE.max_bytes
        note = CATALOG_NOTE.decode(
            session.store.get(job.directory.bucket, key, max_bytes=most).body
        )
    except (NotFoundError, AccessError):
        return []
    except InvalidInputError as error:
        return [f"{key} can't be read: {error.message}"]
    why = note.error or "the notification is under way, or died"
    return [
        f"table {note.table} of the catalog was not notified of this job: {why}. It is tried again;"
        " after five tries: s3commit redrive Catalogs"
    ]


def _request(job: JobFacts) -> dict[str, Any] | None:
    request = job.request
    if request is None:
        return None
    if isinstance(request, AbortRequest):
        return {"action": "abort", "reason": request.reason}
    return {
        "action": "commit",
        "attempts": len(request.attempts),
        "files": request.files,
        "bytes": sum(attempt.bytes for attempt in request.attempts),
    }


def _locks(job: JobFacts, now: float) -> dict[str, Any] | None:
    """The nodes that the job has locked, and the jobs it waits for; None if neither."""
    record, others = job.record, blockers(job.ledger, job.record)
    if record is None or record.state in ENDED or not (record.locks or others):
        return None
    waits = record.waits if others else None
    return {
        "nodes": record.locks,
        "waitsSeconds": int(now - epoch_of(waits.since)) if waits else None,
        "inTheWay": [
            {
                **fields(other, "job_id", "state"),
                "destination": other.destination.uri,
                "nodes": other.locks,
                "unchangedSeconds": int(now - epoch_of(other.updated_at)),
                "execution": other.execution,
            }
            for other in others
        ],
    }


def _error(failure: Failure | None, advice_of: Callable[[str], Advice]) -> dict[str, str] | None:
    if failure is None:
        return None
    return {**fields(failure, "code", "message"), **fields(advice_of(failure.code), "means", "do")}


def console_url(execution: str) -> str | None:
    """The page of an execution in the AWS console; None for any other ARN or partition."""
    if not machine_of(execution):
        return None
    _, partition, _, region, *_ = execution.split(":")
    if not _REGION.fullmatch(region):  # a stranger's result may name any host there
        return None
    host = _CONSOLES.get(partition)
    page = f"states/home?region={region}#/v2/executions/details/{execution}"
    return host and f"https://{region}.{host}/{page}"
