"""All about one job, as a document for programs; `job_text` makes the text for people of it."""

from __future__ import annotations

from typing import Any

from s3commit.cli.codes import advice_on, advice_on_execution
from s3commit.cli.job.snapshot import JobSnapshot
from s3commit.cli.job.waiting import InTheWay, LockStatus
from s3commit.cli.output.advice import already_by, console_url, next_step
from s3commit.cli.text import epoch_of, fields
from s3commit.core.model.conditions import encode_conditions
from s3commit.core.model.job import AbortRequest
from s3commit.core.ports.executions import Execution


def job_document(snapshot: JobSnapshot, now: float) -> dict[str, Any]:
    """What `show` prints; ``now`` in seconds since 1970. What is not known is null."""
    record, spec, failure = snapshot.record, snapshot.spec, snapshot.failure
    plan, result = record.plan if record else None, snapshot.result
    execution = snapshot.execution_found
    counts = ("files", "bytes", "rows")
    return {
        "jobId": snapshot.job_id,
        "destination": snapshot.directory.destination.uri,
        "directory": snapshot.directory.uri,
        "state": snapshot.state,
        "inLedger": record is not None,
        "createdAt": spec.created_at if spec else record.created_at if record else None,
        "updatedAt": record.updated_at if record else None,
        "generation": record.generation if record else None,
        "client": spec.client if spec else None,
        **_policy(snapshot),
        "request": _request(snapshot),
        "requestStands": snapshot.request_stands,
        "manifests": len(snapshot.manifests),
        "noted": snapshot.noted,
        "plan": plan and fields(plan, "units", *counts),
        "replaced": _replaced(snapshot),
        "locks": _locks(snapshot.locks, now) if snapshot.locks else None,
        "result": result
        and fields(result, "outcome", *counts, "replaced", "decided_at", "finished_at"),
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


def _policy(snapshot: JobSnapshot) -> dict[str, Any]:
    policy, spec = snapshot.policy, snapshot.spec
    names = ("conflict", "scope", "partition_by", "idempotency_key", "names")
    return {
        **fields(policy, *names),
        # The ledger does not keep them: job.json alone says.
        "conditions": encode_conditions(spec.conditions) if spec else None,
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


def _replaced(snapshot: JobSnapshot) -> dict[str, Any] | None:
    replaced = snapshot.replaced
    if replaced is None:
        return None
    return {**fields(replaced, "files", "bytes"), "overwritesExactNames": replaced.overwrites}


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
        **fields(one.claim, "node", "mode"),
        **fields(record, "job_id", "state"),
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
