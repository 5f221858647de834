"""The fake's idea of an item against the item that the adapter writes."""

from __future__ import annotations

from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer

from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.ledger_items import LedgerItem, bind
from s3commit.aws.ledger_records import attempt_item, job_item
from s3commit.core.model.job import Conflict, Failure
from s3commit.core.model.locks import items
from s3commit.core.model.record import JobRecord, PlanFacts, Waits
from s3commit.core.model.states import JobState
from tests.contract.ledger_jobs import (
    NODE,
    OTHER_PLAN,
    OTHER_REPLACED,
    PLAN,
    REPLACED,
    T0,
    a_job,
    an_attempt,
)
from tests.fakes import item_limits

NOWHERE = "http://127.0.0.1:9"
ITEMS = bind("ledger", region="eu-central-1", host=NOWHERE)
TOKEN = "0" * 32
EXPIRES_AT = item_limits.attempt_item(an_attempt(1))["expires_at"]


def written(item: LedgerItem) -> dict[str, Any]:
    """The item's attributes as DynamoDB is sent them, as values of Python."""
    read = TypeDeserializer().deserialize
    sent: dict[str, Any] = item.serialize(null_check=True)
    return {name: read(value) for name, value in sent.items()}


JOBS = [
    a_job(),
    a_job(job_sha256=None, partition_by=("a", "länd"), idempotency_key="ключ"),
    a_job(plan=PLAN, replaced=REPLACED, locks=("lake/a/", "lake/b/"), decided_at=T0),
    a_job(waits=Waits(T0, ("job-2-0f", "job-3-0f"))),
    a_job(plan=OTHER_PLAN, replaced=OTHER_REPLACED, failure=Failure("CODE", "what\n语")),
    a_job(plan=PLAN, state=JobState.ABORTED, finished_at=T0, execution="arn"),
]


@pytest.mark.parametrize("record", JOBS)
def test_the_item_of_a_job_is_what_the_fake_counts(record: JobRecord) -> None:
    item = job_item(ITEMS.job, record, TOKEN)
    if record.state is JobState.ABORTED:
        item.expires_at = EXPIRES_AT

    assert written(item) == as_sent(item_limits.job_item(record))


def test_the_item_of_an_attempt_is_what_the_fake_counts() -> None:
    for task in (1, 2):
        attempt = an_attempt(task)
        item = attempt_item(ITEMS.attempt, attempt, EXPIRES_AT)

        assert written(item) == as_sent(item_limits.attempt_item(attempt))


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
@pytest.mark.parametrize("plan", [PLAN, OTHER_PLAN])
@pytest.mark.parametrize("state", [JobState.COMMITTING, JobState.COMMITTED])
def test_what_stands_beside_a_job_is_what_the_fake_counts(
    state: JobState, plan: PlanFacts, conflict: Conflict
) -> None:
    locks = (NODE, f"{NODE}länd/") if conflict is Conflict.REPLACE else ()
    record = a_job(
        state=state,
        conflict=conflict,
        idempotency_key="k",
        plan=plan,
        locks=locks,
        decided_at=T0,
        finished_at=T0 if state is JobState.COMMITTED else None,
    )
    ledger = DynamoLedger("ledger", region="eu-central-1", host=NOWHERE)
    assert items(record)

    for one in items(record):
        item = ledger._beside(record, one)
        if item.expires_at is not None:
            item.expires_at = EXPIRES_AT
        assert written(item) == as_sent(item_limits.beside_item(record, one))


def as_sent(item: dict[str, Any]) -> dict[str, Any]:
    """With lists for tuples, which are the same to DynamoDB."""
    found = {}
    for name, one in item.items():
        plain = as_sent(one) if isinstance(one, dict) else one
        found[name] = list(plain) if isinstance(plain, tuple) else plain
    return found
