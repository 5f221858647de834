"""``s3commit show``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from s3commit.cli.advice import MEANING, console_url, next_step
from s3commit.cli.arguments import JOB, JobName, destination_option
from s3commit.cli.facts import JobFacts, read_facts, some_uploads
from s3commit.cli.human import age, amount, epoch_of, many, moment, size
from s3commit.cli.locate import locate
from s3commit.cli.render import Printer
from s3commit.cli.session import Session
from s3commit.cli.verb import table_option, verb
from s3commit.core.model import AbortRequest, CommitRequest, Destination

Pairs = Iterator[tuple[str, str]]


@verb()
@click.argument("job", type=JOB)
@table_option
@destination_option
def show(
    session: Session,
    printer: Printer,
    *,
    job: JobName,
    table: str | None,
    destination: Destination | None,
) -> None:
    """Show one job, and what happens next.

    JOB is a job id (with a table, or --destination), or the s3:// URI of a job directory, which
    works from S3 alone:

    \b
      s3commit show 7c9e6679-7425-40de-944b-e07fc1f90ae7 --table ledger
      s3commit show s3://lake/sales/__magic_job-7c9e6679-7425-40de-944b-e07fc1f90ae7/
    """  # noqa: D301 - click wants the backspace
    facts = read_facts(session, locate(session, job, table, destination))
    uploads, complete = some_uploads(session, facts.place)
    facts = replace(facts, uploads=uploads, uploads_complete=complete)
    now = session.environment.epoch()
    if printer.json:
        printer.document(_document(facts, now))
    else:
        printer.pairs(_pairs(facts, now))


def _execution(facts: JobFacts) -> str:
    if facts.record is not None and facts.record.execution:
        return facts.record.execution
    return facts.result.execution if facts.result is not None else ""


def _pairs(facts: JobFacts, now: float) -> Pairs:
    yield "job", facts.place.job_id
    yield "destination", facts.place.destination.uri
    yield "state", facts.state
    yield "state", MEANING[facts.state]
    yield from _history(facts, now)
    yield from _asked(facts)
    yield from _outcome(facts)
    execution = _execution(facts)
    if execution:
        yield "execution", execution
    url = console_url(execution)
    if url:
        yield "console", url
    for problem in facts.problems:
        yield "problem", problem
    for line in next_step(facts, now):
        yield "next", line


def _history(facts: JobFacts, now: float) -> Pairs:
    spec, record = facts.spec, facts.record
    created = spec.created_at if spec and spec.created_at else record.created_at if record else ""
    if created:
        client = f" by {spec.client}" if spec and spec.client else ""
        yield "created", f"{moment(created)}{client}"
    if record is not None:
        changed = now - epoch_of(record.updated_at)
        yield "changed", f"{moment(record.updated_at)}, {age(changed)} ago"
        yield "generation", str(record.generation)
    if spec is not None:
        parts = f", partitioned by {', '.join(spec.partition_by)}" if spec.partition_by else ""
        yield "conflict", f"{spec.conflict.value}, scope {spec.scope.value}{parts}"


def _asked(facts: JobFacts) -> Pairs:
    request = facts.request
    if isinstance(request, AbortRequest):
        yield "request", f"abort: {request.reason or 'no reason given'}"
    elif request is not None:
        yield "request", _counted(request)
    elif not facts.request_stands:
        yield "request", "none"
    yield "manifests", many(len(facts.manifests), "in S3", "in S3")
    noted = facts.noted
    if noted is not None:
        yield (
            "noted",
            f"{many(noted.attempts, 'attempt')} of {many(noted.tasks, 'task')}:"
            f" {many(noted.files, 'file')}, {size(noted.bytes)}",
        )
    if facts.record is not None and facts.record.plan is not None:
        plan = facts.record.plan
        units = f" in {many(plan.units, 'unit')}" if plan.units else ""
        yield "plan", f"{amount(plan.files, plan.bytes, plan.rows)}{units}"
    more = "" if facts.uploads_complete else " or more (too many at the destination to count)"
    yield "open uploads", f"{len(facts.uploads)}{more}"


def _counted(request: CommitRequest) -> str:
    if request.attempts is None:
        return "commit, every manifest counts"
    files = sum(attempt.files for attempt in request.attempts)
    total = sum(attempt.bytes for attempt in request.attempts)
    attempts = many(len(request.attempts), "counted attempt")
    return f"commit, {attempts}: {many(files, 'file')}, {size(total)}"


def _outcome(facts: JobFacts) -> Pairs:
    result = facts.result
    failure = result.error if result else facts.record.failure if facts.record else None
    if result is not None:
        yield "result", f"{result.outcome.value} at {moment(result.finished_at)}"
        if result.decided_at:
            yield (
                "result",
                f"{amount(result.files, result.bytes, result.rows)};"
                f" decided {moment(result.decided_at)}",
            )
    if failure is not None:
        yield "reason", f"{failure.message} [{failure.code}]"


def _document(facts: JobFacts, now: float) -> dict[str, Any]:
    record, spec, result = facts.record, facts.spec, facts.result
    failure = result.error if result else record.failure if record else None
    execution = _execution(facts)
    return {
        "jobId": facts.place.job_id,
        "destination": facts.place.destination.uri,
        "directory": facts.located.uri,
        "state": facts.state,
        "inLedger": record is not None,
        "createdAt": spec.created_at if spec else record.created_at if record else None,
        "updatedAt": record.updated_at if record else None,
        "generation": record.generation if record else None,
        "client": spec.client if spec else None,
        "conflict": spec.conflict.value if spec else None,
        "scope": spec.scope.value if spec else None,
        "partitionBy": list(spec.partition_by) if spec else None,
        "request": _request_document(facts),
        "manifests": len(facts.manifests),
        "noted": _noted_document(facts),
        "plan": _plan_document(facts),
        "result": _result_document(facts),
        "error": {"code": failure.code, "message": failure.message} if failure else None,
        "openUploads": len(facts.uploads),
        "openUploadsComplete": facts.uploads_complete,
        "execution": execution or None,
        "console": console_url(execution),
        "problems": list(facts.problems),
        "next": next_step(facts, now),
    }


def _request_document(facts: JobFacts) -> dict[str, Any] | None:
    request = facts.request
    if request is None:
        return None
    if isinstance(request, AbortRequest):
        return {"action": "abort", "reason": request.reason}
    attempts = request.attempts
    return {
        "action": "commit",
        "attempts": None if attempts is None else len(attempts),
        "files": None if attempts is None else sum(attempt.files for attempt in attempts),
        "bytes": None if attempts is None else sum(attempt.bytes for attempt in attempts),
    }


def _noted_document(facts: JobFacts) -> dict[str, Any] | None:
    noted = facts.noted
    if noted is None:
        return None
    return {
        "attempts": noted.attempts,
        "tasks": noted.tasks,
        "files": noted.files,
        "bytes": noted.bytes,
    }


def _plan_document(facts: JobFacts) -> dict[str, Any] | None:
    plan = facts.record.plan if facts.record else None
    if plan is None:
        return None
    return {"units": plan.units, "files": plan.files, "bytes": plan.bytes, "rows": plan.rows}


def _result_document(facts: JobFacts) -> dict[str, Any] | None:
    result = facts.result
    if result is None:
        return None
    return {
        "outcome": result.outcome.value,
        "files": result.files,
        "bytes": result.bytes,
        "rows": result.rows,
        "decidedAt": result.decided_at,
        "finishedAt": result.finished_at,
    }
