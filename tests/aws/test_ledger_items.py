"""What the fake counts of an item against the item that the adapter writes."""

from __future__ import annotations

from typing import Any

import pytest

from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.ledger_items import LedgerItem, bind
from s3commit.aws.ledger_records import attempt_item, job_item
from s3commit.core.model.job import Conflict, Failure
from s3commit.core.model.locks import items
from s3commit.core.model.record import JobRecord, Waits
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
from tests.fakes.item_limits import BESIDE_FIELDS, beside_key, estimate

ITEMS = bind("ledger")
TOKEN = "0" * 32


def size_of(item: LedgerItem) -> int:
    """How many bytes DynamoDB counts for the item: names and values, and a few for each level.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    sent: dict[str, Any] = item.serialize(null_check=True)
    return sum(len(name.encode()) + _size(value) for name, value in sent.items())


def _size(value: dict[str, Any]) -> int:
    ((kind, one),) = value.items()
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _size(each) for name, each in one.items())
    return 3 + sum(1 + _size(each) for each in one) if kind == "L" else len(str(one).encode())


JOBS = [
    a_job(),
    a_job(job_sha256=None, partition_by=("a", "länd"), idempotency_key="ключ"),
    a_job(plan=PLAN, replaced=REPLACED, locks=("lake/a/", "lake/b/"), decided_at=T0),
    a_job(waits=Waits(T0, ("job-2-0f", "job-3-0f"))),
    a_job(plan=OTHER_PLAN, replaced=OTHER_REPLACED, failure=Failure("CODE", "what\n语")),
    a_job(plan=PLAN, state=JobState.ABORTED, finished_at=T0, execution="arn"),
]


@pytest.mark.parametrize("record", JOBS)
def test_the_item_of_a_job_is_hardly_smaller_than_the_fake_says(record: JobRecord) -> None:
    said = estimate(record)
    assert size_of(job_item(ITEMS.job, record, TOKEN)) <= said < 2 * BESIDE_FIELDS


def test_the_item_of_an_attempt_is_hardly_smaller_than_the_fake_says() -> None:
    attempt = an_attempt(1)
    said = estimate(attempt)
    assert size_of(attempt_item(ITEMS.attempt, attempt, 1)) <= said < 2 * BESIDE_FIELDS


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
@pytest.mark.parametrize("state", [JobState.COMMITTING, JobState.COMMITTED])
def test_what_stands_beside_a_job_has_the_keys_that_the_fake_looks_at(
    state: JobState, conflict: Conflict
) -> None:
    locks = (NODE, f"{NODE}länd/") if conflict is Conflict.REPLACE else ()
    record = a_job(
        state=state, conflict=conflict, idempotency_key="k", locks=locks, decided_at=T0,
        finished_at=T0 if state is JobState.COMMITTED else None,
    )  # fmt: skip
    ledger = DynamoLedger("ledger")
    assert items(record)
    for one in items(record):
        assert ledger._beside(record, one).serialize()["sk"]["S"] == beside_key(record, one)
