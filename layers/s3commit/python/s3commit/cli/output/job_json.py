"""All about one job, as a document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from s3commit.cli.codes import advice_on, advice_on_execution
from s3commit.cli.job.snapshot import JobSnapshot
from s3commit.cli.job.waiting import InTheWay
from s3commit.cli.output.advice import already_by, console_url, next_step
from s3commit.cli.text import epoch_of
from s3commit.core.formats.locations import location_uris
from s3commit.core.model.conditions import encode_conditions
from s3commit.core.model.job import AbortRequest, Failure
from s3commit.core.model.locks import Claim


def job_document(snapshot: JobSnapshot, now: float) -> dict[str, Any]:
    """What `show` prints; ``now`` in seconds since 1970. What is not known is null."""
    record, spec, failure = snapshot.record, snapshot.spec, snapshot.failure
    return {
        "jobId": snapshot.directory.job_id,
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
        "manifests": len(snapshot.manifests),
        "noted": _progress(snapshot),
        "plan": _plan(snapshot),
        "replaced": _replaced(snapshot),
        "locks": _standing(snapshot, now),
        "result": _result(snapshot),
        "error": {"code": failure.code, "message": failure.message} if failure else None,
        "advice": _advice(failure),
        "alreadyCommittedBy": already_by(failure),
        "openUploads": len(snapshot.uploads),
        "openUploadsComplete": snapshot.uploads_complete,
        "execution": snapshot.execution or None,
        "executionStatus": snapshot.execution_status,
        "executionError": _execution_error(snapshot),
        "console": console_url(snapshot.execution),
        "problems": list(snapshot.problems),
        "next": next_step(snapshot, now),
    }


def _policy(snapshot: JobSnapshot) -> dict[str, Any]:
    policy = snapshot.policy
    return {
        "conflict": policy.conflict.value if policy else None,
        "scope": policy.scope.value if policy else None,
        "partitionBy": list(policy.partition_by) if policy else None,
        "locations": location_uris(policy.locations, snapshot.directory.bucket) if policy else None,
        # The ledger does not keep them: job.json alone says.
        "conditions": encode_conditions(snapshot.spec.conditions) if snapshot.spec else None,
        "idempotencyKey": policy.idempotency_key if policy else None,
        "names": policy.names.value if policy else None,
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


def _progress(snapshot: JobSnapshot) -> dict[str, Any] | None:
    return asdict(snapshot.progress) if snapshot.progress else None


def _plan(snapshot: JobSnapshot) -> dict[str, Any] | None:
    plan = snapshot.record.plan if snapshot.record else None
    if plan is None:
        return None
    return {"units": plan.units, "files": plan.files, "bytes": plan.bytes, "rows": plan.rows}


def _replaced(snapshot: JobSnapshot) -> dict[str, Any] | None:
    replaced = snapshot.replaced
    if replaced is None:
        return None
    return {
        "files": replaced.files,
        "bytes": replaced.bytes,
        "overwritesExactNames": replaced.overwrites,
    }


def _standing(snapshot: JobSnapshot, now: float) -> dict[str, Any] | None:
    locks = snapshot.locks
    if locks is None:
        return None
    since = locks.since
    return {
        "holds": [_claim(claim) for claim in locks.holds],
        "waits": [_claim(claim) for claim in locks.waits],
        "waitsSince": since,
        "waitsSeconds": None if since is None else int(now - epoch_of(since)),
        "inTheWay": [_in_the_way(one, now) for one in locks.in_the_way],
        "keptWaiting": list(locks.kept_waiting),
    }


def _claim(claim: Claim) -> dict[str, str]:
    return {"node": claim.node, "mode": claim.mode.value}


def _in_the_way(one: InTheWay, now: float) -> dict[str, Any]:
    record = one.record
    return {
        "jobId": one.job_id,
        "node": one.node,
        "mode": one.mode.value,
        "holds": one.holds,
        "state": record.state.value,
        "unchangedSeconds": int(now - epoch_of(record.updated_at)),
        "execution": record.execution or None,
        "executionStatus": one.execution.status if one.execution else None,
    }


def _result(snapshot: JobSnapshot) -> dict[str, Any] | None:
    result = snapshot.result
    if result is None:
        return None
    return {
        "outcome": result.outcome.value,
        "files": result.files,
        "bytes": result.bytes,
        "rows": result.rows,
        "replaced": result.replaced,
        "decidedAt": result.decided_at,
        "finishedAt": result.finished_at,
    }


def _execution_error(snapshot: JobSnapshot) -> dict[str, str] | None:
    failure = snapshot.execution_failure
    if failure is None:
        return None
    advice = advice_on_execution(failure.code)
    return {
        "code": failure.code,
        "message": failure.message,
        "means": advice.means,
        "do": advice.do,
    }


def _advice(failure: Failure | None) -> dict[str, str] | None:
    if failure is None:
        return None
    advice = advice_on(failure.code)
    return {"means": advice.means, "do": advice.do}
