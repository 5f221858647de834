"""All about one job as one document: facts, what they mean, and the next step."""

from __future__ import annotations

import re
from typing import Any

from s3commit.aws.arns import machine_of
from s3commit.cli.job.snapshot import REQUESTED, JobSnapshot
from s3commit.cli.job.waiting import InTheWay, LockStatus
from s3commit.cli.text import age, epoch_of, fields, many
from s3commit.core.model.codes import advice_on, advice_on_execution
from s3commit.core.model.conditions import encode_conditions
from s3commit.core.model.job import ALREADY_COMMITTED, AbortRequest, Failure, Outcome
from s3commit.core.model.limits import HOLDER_SECONDS
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.executions import Execution

PATIENCE = 3600  # seconds without a change; no step takes longer, with its retries
OPEN_PATIENCE = 86400  # an OPEN job waits for its tasks, which may take their time
SHOWN_BLOCKERS = 5
_COUNTS = ("files", "bytes", "rows")
_JAR = "s3commit-native"  # the client of Spark's own writers

MEANING: dict[str, str] = {
    JobState.OPEN: "tasks are writing; neither commit nor abort was requested yet",
    REQUESTED: "commit or abort was requested; the pipeline works on it",
    JobState.SEALED: "requested; being verified, nothing decided yet; waits an hour at most",
    JobState.COMMITTING: "decided: the files are being made visible; no abort any more",
    JobState.PUBLISHING: "all files are visible; being published",
    JobState.COMMITTED: "ended: all files are visible",
    JobState.ABORTING: "will not be committed; its uploads are being aborted",
    JobState.ABORTED: "ended: none of its files is or was visible",
    JobState.ROLLING_BACK: "a file is lost for good: being undone",
    JobState.ROLLED_BACK: "ended: undone, none of its files is visible",
}

# Of all ids in the message the last: a key may look like one.
_ID = re.compile(r"by job ([0-9a-fA-F-]{36});")


def job_document(snapshot: JobSnapshot, now: float) -> dict[str, Any]:
    """What `show` prints; ``now`` in seconds since 1970. What is not known is null."""
    record, spec, failure = snapshot.record, snapshot.spec, snapshot.failure
    plan, result = record.plan if record else None, snapshot.result
    execution, replaced = snapshot.execution_found, snapshot.replaced
    return {
        "jobId": snapshot.job_id,
        "destination": snapshot.directory.destination.uri,
        "directory": snapshot.directory.uri,
        "state": snapshot.state,
        "means": meaning_of(snapshot.state, already_by(failure)),
        "createdAt": spec.created_at if spec else record.created_at if record else None,
        "updatedAt": record.updated_at if record else None,
        "unchangedSeconds": int(now - epoch_of(record.updated_at)) if record else None,
        "inLedger": record is not None,
        "generation": record.generation if record else None,
        "client": spec.client if spec else None,
        **fields(snapshot.policy, "conflict", "scope", "partition_by", "idempotency_key"),
        # The ledger does not keep them: job.json alone says.
        "conditions": encode_conditions(spec.conditions) if spec else None,
        "request": _request(snapshot),
        "requestStands": snapshot.request_stands,
        "manifests": len(snapshot.manifests),
        "noted": snapshot.noted,
        "plan": plan and fields(plan, "units", *_COUNTS),
        "replaced": replaced and fields(replaced, "files", "bytes"),
        "locks": _locks(snapshot.locks, now) if snapshot.locks else None,
        "result": result
        and fields(result, "outcome", *_COUNTS, "replaced", "decided_at", "finished_at"),
        "error": failure and fields(failure, "code", "message"),
        "advice": failure and fields(advice_on(failure.code), "means", "do"),
        "alreadyCommittedBy": already_by(failure),
        "openUploads": len(snapshot.uploads),
        "openUploadsComplete": snapshot.uploads_complete,
        "execution": snapshot.execution or None,
        "executionStatus": execution.status if execution else None,
        "executionError": _execution_error(execution),
        "console": console_url(snapshot.execution),
        "problems": snapshot.problems,
        "next": next_step(snapshot, now),
    }


def _request(snapshot: JobSnapshot) -> dict[str, Any] | None:
    request = snapshot.request
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


def _locks(locks: LockStatus, now: float) -> dict[str, Any]:
    since = locks.since
    return {
        "holds": [fields(claim, "node", "mode") for claim in locks.holds],
        "waits": [fields(claim, "node", "mode") for claim in locks.waits],
        "waitsSince": since,
        "waitsSeconds": None if since is None else int(now - epoch_of(since)),
        "inTheWay": [_in_the_way(one, now) for one in locks.in_the_way],
        "keptWaiting": locks.kept_waiting,
    }


def _in_the_way(one: InTheWay, now: float) -> dict[str, Any]:
    record = one.record
    return {
        **fields(record, "job_id", "state"),
        **fields(one.claim, "node", "mode"),
        "holds": one.holds,
        "unchangedSeconds": int(now - epoch_of(record.updated_at)),
        "execution": record.execution or None,
        "executionStatus": one.execution.status if one.execution else None,
    }


def _execution_error(execution: Execution | None) -> dict[str, str] | None:
    failure = execution.failure if execution else None
    if failure is None:
        return None
    advice = advice_on_execution(failure.code)
    return {**fields(failure, "code", "message"), **fields(advice, "means", "do")}


def needs_attention(record: JobRecord, now: float) -> bool:
    """True for a job that has not ended and is silent for longer than it should be.

    A SEALED one that waits says so every minute, and one that holds is soon decided; of one that
    does neither others take what it claims, and nobody works on it.
    """
    if is_orphan(record):
        return True
    limits = {JobState.OPEN: OPEN_PATIENCE, JobState.SEALED: HOLDER_SECONDS}
    return now - epoch_of(record.updated_at) > limits.get(record.state, PATIENCE)


def is_orphan(record: JobRecord) -> bool:
    """True if the job was taken from its execution, and no other one has taken it over."""
    return record.state is JobState.ABORTING and not record.execution


def meaning_of(state: str, other: str | None) -> str:
    """What is true of a job in the state; ``other`` as by `already_by`."""
    if other is not None and state in {JobState.ABORTING, JobState.ABORTED}:
        return f"nothing was added: job {other} has this idempotency key"
    return MEANING[state]


def already_by(failure: Failure | None) -> str | None:
    """The job that was committed with the same idempotency key, where that is the reason."""
    if failure is None or failure.code != ALREADY_COMMITTED:
        return None
    found = _ID.findall(failure.message)
    return str(found[-1]) if found else "another"


def next_step(snapshot: JobSnapshot, now: float) -> list[str]:
    """What to do, a line each; the first one says so if that is nothing."""
    again = f"s3commit {_verb(snapshot)} {snapshot.name}"
    if snapshot.result is not None:
        return _after_the_end(snapshot)
    if snapshot.problems and snapshot.state in {JobState.OPEN, REQUESTED}:
        return ["the pipeline will refuse the document that can not be read, and abort the job"]
    if snapshot.state in {JobState.OPEN, REQUESTED} and snapshot.request_stands:
        lines = ["nothing, for some seconds"]
        if snapshot.ledger is None:
            lines.append("the ledger knows how far it is: name it with --table")
        else:
            lines.append(f"then look at RequestQueue, or start it: {again}")
        if snapshot.record is None:
            bucket = snapshot.directory.bucket
            lines.append(f"bucket {bucket} may have no pipeline: s3commit doctor says")
        return lines
    if snapshot.state == JobState.OPEN:
        return _while_open(snapshot)
    if snapshot.record is None:
        return ["nothing: its execution works on it"]
    return _while_working(snapshot, snapshot.record, now, again)


def _after_the_end(snapshot: JobSnapshot) -> list[str]:
    name, destination = snapshot.job_id, snapshot.directory.destination.uri
    failure, other = snapshot.failure, already_by(snapshot.failure)
    if snapshot.result is not None and snapshot.result.outcome is Outcome.COMMITTED:
        done = [f"nothing, it is done. Its files: s3commit ls {destination} --files {name}"]
        of_jar = snapshot.spec is not None and snapshot.spec.client.startswith(_JAR)
        return [*done, _in_a_catalog(destination)] if of_jar else done
    if other is not None:
        return [f"nothing, the data is there: s3commit ls {destination} --files {other}"]
    do = f": {advice_on(failure.code).do}" if failure else ""
    return [f"for this job nothing. To have the data takes a new job{do}"]


def _in_a_catalog(destination: str) -> str:
    return (
        "if its driver died or gave up before this: a catalog's table lacks new partitions until"
        " MSCK REPAIR TABLE, and a table that the job was to create until"
        f" CREATE TABLE ... LOCATION '{destination.replace('s3:', 's3a:', 1)}'"
    )


def _while_open(snapshot: JobSnapshot) -> list[str]:
    uri = snapshot.directory.uri
    return [
        "nothing while its driver lives",
        f"if the driver died and every task is done: s3commit commit {uri} --dry-run",
        f"to give it up: s3commit abort {uri}",
    ]


def _verb(snapshot: JobSnapshot) -> str:
    """The verb that resumes what was requested."""
    return "abort" if isinstance(snapshot.request, AbortRequest) else "commit"


def _while_working(snapshot: JobSnapshot, record: JobRecord, now: float, again: str) -> list[str]:
    execution = snapshot.execution_found
    if is_orphan(record):
        return [f"no execution works on it: {again} --state-machine ARN ends it"]
    if execution is not None and not execution.is_running:
        error = _execution_error(execution)
        first = [error["do"].replace("JOB", snapshot.name)] if error else []
        dead = f"its execution is {execution.status}: {again} starts another, which continues"
        return [*first, dead]
    if snapshot.locks is not None and snapshot.locks.in_the_way:
        return _while_waiting(snapshot.locks.in_the_way)
    if needs_attention(record, now):
        silent = age(now - epoch_of(record.updated_at))
        return [f"nothing changed for {silent}: if its execution failed, {again} starts another"]
    return ["nothing: its execution works on it"]


def _while_waiting(blockers: tuple[InTheWay, ...]) -> list[str]:
    lines = ["nothing while these jobs, which go first, have live executions"]
    for one in blockers[:SHOWN_BLOCKERS]:
        job, status = one.record.job_id, one.execution.status if one.execution else "not known"
        dead = one.execution is not None and not one.execution.is_running
        then = f"s3commit commit {job}" if dead else f"s3commit show {job}"
        lines.append(f"job {job} is {one.record.state}, its execution {status}: {then}")
    more = len(blockers) - SHOWN_BLOCKERS
    return [*lines, f"and {many(more, 'more job')}"] if more > 0 else lines


def console_url(execution: str) -> str | None:
    """The page of an execution in the AWS console, or None for what is no ARN."""
    if not machine_of(execution):
        return None
    _, partition, _, region, *_ = execution.split(":")
    host = {
        "aws-cn": "console.amazonaws.cn",
        "aws-us-gov": "console.amazonaws-us-gov.com",
    }.get(partition, "console.aws.amazon.com")
    return f"https://{region}.{host}/states/home?region={region}#/v2/executions/details/{execution}"
