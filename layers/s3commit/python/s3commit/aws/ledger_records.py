"""The ledger's items as the protocol's records, and back."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import MapAttribute

from s3commit.aws.ledger_items import (
    AttemptItem,
    ClaimItem,
    FailureMap,
    JobItem,
    PlanMap,
    ReplacedMap,
    TurnMap,
    attempt_key,
    claim_key,
    job_key,
    shelf_of,
)
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import Conflict, Destination, Failure, Names, Scope
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.record import (
    AttemptRecord,
    JobRecord,
    PlanFacts,
    ReplacedFacts,
    Stage,
    Turn,
)
from s3commit.core.model.states import JobState


def plan_map(plan: PlanFacts) -> PlanMap:
    """`PlanFacts` as DynamoDB stores it."""
    return PlanMap(  # type: ignore[no-untyped-call]
        sha256=plan.sha256,
        units=plan.units,
        files=plan.files,
        bytes=plan.bytes,
        rows=plan.rows,
        partitions=plan.partitions,
        nulls=dict(plan.nulls),
        locations=dict(plan.locations) or None,
        visible_before=plan.visible_before,
    )


def replaced_map(replaced: ReplacedFacts) -> ReplacedMap:
    """`ReplacedFacts` as DynamoDB stores it."""
    return ReplacedMap(  # type: ignore[no-untyped-call]
        sha256=replaced.sha256,
        files=replaced.files,
        bytes=replaced.bytes,
        overwrites=replaced.overwrites,
    )


def failure_map(failure: Failure) -> FailureMap:
    """`Failure` as DynamoDB stores it."""
    return FailureMap(  # type: ignore[no-untyped-call]
        code=failure.code, message=failure.message
    )


def turn_map(turn: Turn) -> TurnMap:
    """`Turn` as DynamoDB stores it."""
    return TurnMap(  # type: ignore[no-untyped-call]
        stage=turn.stage.value, since=turn.since, epoch=turn.epoch
    )


def job_item(kind: type[JobItem], record: JobRecord, token: str) -> JobItem:
    """The item of a new record."""
    pk, sk = job_key(record.ref)
    return kind(
        pk,
        sk,
        job_id=record.job_id,
        bucket=record.destination.bucket,
        prefix=record.destination.prefix,
        directory=JobDirectory.of(record).prefix,
        state=record.state.value,
        shelf=shelf_of(record.ref, record.state),
        generation=record.generation,
        created_at=record.created_at,
        updated_at=record.updated_at,
        conflict=record.conflict.value,
        scope=record.scope.value,
        partition_by=list(record.partition_by),
        idempotency_key=record.idempotency_key,
        names=record.names.value,
        job_sha256=record.job_sha256,
        locks=list(record.locks),
        turn=turn_map(record.turn),
        plan=plan_map(record.plan) if record.plan else None,
        replaced=replaced_map(record.replaced) if record.replaced else None,
        failure=failure_map(record.failure) if record.failure else None,
        decided_at=record.decided_at,
        finished_at=record.finished_at,
        execution=record.execution,
        opened_at=record.opened_at,
        token=token,
    )


def job_record(item: JobItem) -> JobRecord:
    """The record of an item."""
    plan, replaced, failure = item.plan, item.replaced, item.failure
    return JobRecord(
        job_id=item.job_id,
        destination=Destination(item.bucket, item.prefix),
        state=JobState(item.state),
        generation=int(item.generation),
        created_at=item.created_at,
        updated_at=item.updated_at,
        conflict=Conflict(item.conflict),
        scope=Scope(item.scope),
        partition_by=tuple(item.partition_by),
        idempotency_key=item.idempotency_key,
        names=Names(item.names),
        job_sha256=item.job_sha256,
        locks=tuple(item.locks),
        turn=Turn(Stage(item.turn.stage), item.turn.since, int(item.turn.epoch)),
        plan=_plan_facts(plan) if plan else None,
        replaced=_replaced_facts(replaced) if replaced else None,
        failure=Failure(failure.code, failure.message) if failure else None,
        decided_at=item.decided_at,
        finished_at=item.finished_at,
        execution=item.execution,
        opened_at=item.opened_at,
    )


def _plan_facts(plan: PlanMap) -> PlanFacts:
    return PlanFacts(
        sha256=plan.sha256,
        units=int(plan.units),
        files=int(plan.files),
        bytes=int(plan.bytes),
        rows=_count(plan.rows),
        partitions=plan.partitions,
        nulls={column: _count(nulls) for column, nulls in _plain(plan.nulls).items()},
        locations=_plain(plan.locations) if plan.locations else {},
        visible_before=int(plan.visible_before),
    )


def _replaced_facts(replaced: ReplacedMap) -> ReplacedFacts:
    return ReplacedFacts(
        sha256=replaced.sha256,
        files=int(replaced.files),
        bytes=int(replaced.bytes),
        overwrites=bool(replaced.overwrites),
    )


def claim_item(kind: type[ClaimItem], claimed: Claimed, expires_at: int) -> ClaimItem:
    """The item of a claim."""
    pk, sk = claim_key(claimed.ref, claimed.claim)
    return kind(
        pk,
        sk,
        expires_at=expires_at,
        waits=claimed.waits or None,
        asked=(claimed.waits and claimed.asked) or None,
        epoch=claimed.epoch,
    )


def claim_record(mode: LockMode, item: ClaimItem) -> Claimed:
    """The record of an item."""
    node, _, ref = item.sk.rpartition("/")
    epoch = int(item.epoch or 0)
    return Claimed(Claim(node, mode), ref, bool(item.waits), item.asked or "", epoch)


def attempt_item(kind: type[AttemptItem], attempt: AttemptRecord, expires_at: int) -> AttemptItem:
    """The item of an attempt."""
    pk, sk = attempt_key(attempt)
    return kind(
        pk,
        sk,
        expires_at=expires_at,
        ref=attempt.ref,
        task_id=attempt.task_id,
        attempt_id=attempt.attempt_id,
        manifest=attempt.manifest,
        sha256=attempt.sha256,
        files=attempt.files,
        bytes=attempt.bytes,
        rows=attempt.rows,
        location=attempt.location or None,
    )


def attempt_record(item: AttemptItem) -> AttemptRecord:
    """The record of an item."""
    return AttemptRecord(
        ref=item.ref,
        task_id=item.task_id,
        attempt_id=item.attempt_id,
        manifest=item.manifest,
        sha256=item.sha256,
        files=int(item.files),
        bytes=int(item.bytes),
        rows=_count(item.rows),
        location=item.location or "",
    )


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)


def _plain(values: MapAttribute[str, Any]) -> dict[str, Any]:
    return dict(values.as_dict())  # type: ignore[no-untyped-call]
