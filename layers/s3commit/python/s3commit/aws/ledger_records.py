"""The ledger's items as the protocol's records, and back."""

from __future__ import annotations

from s3commit.aws.ledger_items import (
    AttemptItem,
    FailureMap,
    JobItem,
    PlanMap,
    attempt_key,
    job_key,
)
from s3commit.core.model import (
    AttemptRecord,
    Conflict,
    Destination,
    Failure,
    JobRecord,
    PlanFacts,
    Scope,
)
from s3commit.core.states import JobState


def plan_map(plan: PlanFacts) -> PlanMap:
    """`PlanFacts` as DynamoDB stores it."""
    return PlanMap(  # type: ignore[no-untyped-call]
        sha256=plan.sha256, units=plan.units, files=plan.files, bytes=plan.bytes, rows=plan.rows
    )


def failure_map(failure: Failure) -> FailureMap:
    """`Failure` as DynamoDB stores it."""
    return FailureMap(  # type: ignore[no-untyped-call]
        code=failure.code, message=failure.message
    )


def job_item(kind: type[JobItem], record: JobRecord, token: str) -> JobItem:
    """The item of a new record."""
    pk, sk = job_key(record.job_id)
    return kind(
        pk,
        sk,
        job_id=record.job_id,
        bucket=record.destination.bucket,
        prefix=record.destination.prefix,
        directory=record.directory,
        state=record.state.value,
        generation=record.generation,
        created_at=record.created_at,
        updated_at=record.updated_at,
        conflict=record.conflict.value,
        scope=record.scope.value,
        partition_by=list(record.partition_by),
        idempotency_key=record.idempotency_key,
        plan=plan_map(record.plan) if record.plan else None,
        failure=failure_map(record.failure) if record.failure else None,
        decided_at=record.decided_at,
        finished_at=record.finished_at,
        execution=record.execution,
        token=token,
    )


def job_record(item: JobItem) -> JobRecord:
    """The record of an item."""
    plan, failure = item.plan, item.failure
    return JobRecord(
        job_id=item.job_id,
        destination=Destination(item.bucket, item.prefix),
        directory=item.directory,
        state=JobState(item.state),
        generation=int(item.generation),
        created_at=item.created_at,
        updated_at=item.updated_at,
        conflict=Conflict(item.conflict),
        scope=Scope(item.scope),
        partition_by=tuple(item.partition_by),
        idempotency_key=item.idempotency_key,
        plan=_plan_facts(plan) if plan else None,
        failure=Failure(failure.code, failure.message) if failure else None,
        decided_at=item.decided_at,
        finished_at=item.finished_at,
        execution=item.execution,
    )


def _plan_facts(plan: PlanMap) -> PlanFacts:
    rows = None if plan.rows is None else int(plan.rows)
    return PlanFacts(plan.sha256, int(plan.units), int(plan.files), int(plan.bytes), rows)


def attempt_item(kind: type[AttemptItem], attempt: AttemptRecord, expires_at: int) -> AttemptItem:
    """The item of an attempt."""
    pk, sk = attempt_key(attempt)
    return kind(
        pk,
        sk,
        expires_at=expires_at,
        job_id=attempt.job_id,
        task_id=attempt.task_id,
        attempt_id=attempt.attempt_id,
        manifest=attempt.manifest,
        sha256=attempt.sha256,
        files=attempt.files,
        bytes=attempt.bytes,
        rows=attempt.rows,
    )


def attempt_record(item: AttemptItem) -> AttemptRecord:
    """The record of an item."""
    return AttemptRecord(
        job_id=item.job_id,
        task_id=item.task_id,
        attempt_id=item.attempt_id,
        manifest=item.manifest,
        sha256=item.sha256,
        files=int(item.files),
        bytes=int(item.bytes),
        rows=None if item.rows is None else int(item.rows),
    )
