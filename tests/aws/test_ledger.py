"""How the ledger lies in DynamoDB, and what it makes of lost and refused requests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import JOB_DAYS, DynamoLedger
from s3commit.aws.ledger_notes import NOTE_DAYS
from s3commit.aws.ledger_table import CONFLICT_TRIES
from s3commit.aws.locks import FREE_DAYS
from s3commit.core.errors import InvalidInputError, NotFoundError, TransientError
from s3commit.core.locks import LockMode, LockRecord, Waiting, ask, let_go
from s3commit.core.states import JobState
from s3commit.testing.memory import ManualClock
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.contract.locking import give_back, take
from tests.contract.test_ledger import (
    NODE,
    OTHER_PLAN,
    PLAN,
    REPLACED,
    T0,
    T1,
    a_job,
    an_attempt,
    bring_to,
    decided,
)

DAY = 86400
EPOCH_OF_T0 = 1795298400  # 2026-11-21T22:00:00Z

_TABLES = itertools.count()


@pytest.fixture
def table(moto_endpoint: str) -> str:
    name = f"layout-{next(_TABLES)}"
    create_table(name, moto_endpoint)
    return name


@pytest.fixture
def ledger(table: str, moto_endpoint: str) -> DynamoLedger:
    return DynamoLedger(table, region=REGION, host=moto_endpoint, clock=ManualClock(T0))


@pytest.fixture
def items(table: str, moto_endpoint: str) -> Callable[[], dict[tuple[str, str], dict[str, Any]]]:
    client = boto3.resource("dynamodb", endpoint_url=moto_endpoint, region_name=REGION)

    def read() -> dict[tuple[str, str], dict[str, Any]]:
        found = client.Table(table).scan()["Items"]
        return {(str(item["pk"]), str(item["sk"])): dict(item) for item in found}

    return read


def events_of(ledger: DynamoLedger) -> Any:
    """The hooks of the ledger's own client."""
    return ledger._items.job._get_connection().connection.client.meta.events


def lose_first_answer(ledger: DynamoLedger, operation: str) -> list[int]:
    """Let botocore send the first request again, as if its answer had been lost."""
    sent: list[int] = []

    def again(attempts: int, **_: Any) -> int | None:
        sent.append(attempts)
        return 0 if attempts == 1 else None

    events_of(ledger).register_first(f"needs-retry.dynamodb.{operation}", again)
    return sent


def test_items_have_the_keys_of_the_contract(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    ledger.open_job(a_job())
    ledger.record_attempts([an_attempt(3)])
    ledger.begin_unit("job-1", 12)
    take(ledger, NODE, "job-1", LockMode.SHARED)

    found = items()

    assert set(found) == {
        ("JOB#job-1", "JOB"),
        ("ATTEMPTS#job-1#3", "task-3#attempt-0"),
        ("UNITS#job-1#2", "12"),
        ("LOCK#lake/table/", "LOCK"),
    }
    in_index = [key for key, item in found.items() if {"state", "updated_at"} <= set(item)]
    assert in_index == [("JOB#job-1", "JOB")]


def test_items_can_be_read_without_this_code(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    ledger.open_job(a_job(plan=OTHER_PLAN, replaced=REPLACED, locks=("lake/", NODE)))
    ledger.put_lock(
        LockRecord(NODE, 0, {"one": LockMode.SHARED}, {"two": Waiting(LockMode.EXCLUSIVE, T0, T1)})
    )

    found = items()

    job, lock = found["JOB#job-1", "JOB"], found["LOCK#lake/table/", "LOCK"]
    assert (job["names"], job["locks"]) == ("unique", ["lake/", NODE])
    assert job["plan"]["nulls"] == {"id": 0, "länd.name": 17, "not counted": None}
    assert job["replaced"] == {
        "sha256": REPLACED.sha256,
        "files": 4,
        "bytes": 9876,
        "overwrites": False,
    }
    assert (lock["version"], lock["holders"]) == (1, {"one": "S"})
    assert lock["waiting"] == {"two": {"mode": "X", "since": T0, "seen": T1}}


def test_only_what_has_ended_expires(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    bring_to(ledger, JobState.ABORTING)
    assert "expires_at" not in items()["JOB#job-1", "JOB"]
    ledger.advance("job-1", source=JobState.ABORTING, target=JobState.ABORTED, generation=0, now=T0)
    ledger.record_attempts([an_attempt(3)])
    ledger.begin_unit("job-1", 12)
    take(ledger, NODE, "job-1", LockMode.SHARED)

    expiry = {pk: item.get("expires_at") for (pk, _), item in items().items()}

    assert expiry == {
        "JOB#job-1": EPOCH_OF_T0 + JOB_DAYS * DAY,
        "ATTEMPTS#job-1#3": EPOCH_OF_T0 + NOTE_DAYS * DAY,
        "UNITS#job-1#2": EPOCH_OF_T0 + NOTE_DAYS * DAY,
        "LOCK#lake/table/": None,
    }


def test_a_job_that_had_ended_before_the_ledger_knew_it_expires_as_well(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    ledger.open_job(replace(a_job(), state=JobState.ABORTED))
    expires_at = items()["JOB#job-1", "JOB"]["expires_at"]
    assert expires_at == EPOCH_OF_T0 + JOB_DAYS * DAY


def test_attempts_are_spread_over_ten_partitions(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    ledger.record_attempts(an_attempt(task) for task in range(100))

    assert len({pk for pk, _ in items()}) == 10


def test_a_lock_expires_only_while_nobody_holds_it(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    def expiry() -> int | None:
        found = items()["LOCK#lake/table/", "LOCK"].get("expires_at")
        return None if found is None else int(found)

    take(ledger, NODE, "one", LockMode.SHARED)
    assert expiry() is None
    take(ledger, NODE, "two", LockMode.EXCLUSIVE)
    assert expiry() is None
    give_back(ledger, NODE, "one")
    assert expiry() == EPOCH_OF_T0 + FREE_DAYS * DAY
    give_back(ledger, NODE, "two")
    assert expiry() == EPOCH_OF_T0 + FREE_DAYS * DAY
    take(ledger, NODE, "three", LockMode.EXCLUSIVE)
    assert expiry() is None
    assert ledger.lock(NODE).version == 5


def test_a_transition_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    ledger.open_job(a_job())
    sent = lose_first_answer(ledger, "UpdateItem")

    sealed = ledger.advance(
        "job-1", source=JobState.OPEN, target=JobState.SEALED, generation=0, now=T1
    )

    assert sent == [1, 2]
    assert sealed == ledger.job("job-1")
    assert sealed.state is JobState.SEALED


def test_a_take_over_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    ledger.open_job(a_job())
    sent = lose_first_answer(ledger, "UpdateItem")

    taken = ledger.take_over("job-1", generation=0, execution="second", now=T1)

    assert sent == [1, 2]
    assert (taken.generation, taken.execution) == (1, "second")


def test_a_decision_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    bring_to(ledger, JobState.SEALED)
    ledger.note("job-1", generation=0, plan=PLAN, now=T0)
    take(ledger, NODE, "job-1", LockMode.EXCLUSIVE)
    sent = lose_first_answer(ledger, "TransactWriteItems")

    record = decided(ledger)

    assert sent == [1, 2]
    assert record == ledger.job("job-1")


def test_i6_a_lock_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    sent = lose_first_answer(ledger, "PutItem")

    assert ledger.put_lock(LockRecord(NODE, 0, {"job-1": LockMode.EXCLUSIVE}))

    assert sent == [1, 2]
    assert ledger.lock(NODE) == LockRecord(NODE, 1, {"job-1": LockMode.EXCLUSIVE})


def test_i6_locks_whose_answer_is_lost_are_known_as_ones_own(ledger: DynamoLedger) -> None:
    sent = lose_first_answer(ledger, "TransactWriteItems")
    records = [LockRecord(node, 0, {"job-1": LockMode.EXCLUSIVE}) for node in (NODE, "lake/b/")]

    assert ledger.put_locks(records)

    assert sent == [1, 2]
    assert ledger.lock("lake/b/") == LockRecord("lake/b/", 1, {"job-1": LockMode.EXCLUSIVE})


def test_i6_a_lock_that_another_took_while_the_answer_was_lost_is_not_ones_own(
    ledger: DynamoLedger,
) -> None:
    """What was lost is asked for again, and then the job finds itself where it left itself."""

    def another_asks(attempts: int, **_: Any) -> int | None:
        if attempts > 1:
            return None
        events_of(ledger).unregister("needs-retry.dynamodb.PutItem", another_asks)
        take(ledger, NODE, "job-2", LockMode.EXCLUSIVE)
        return 0

    events_of(ledger).register_first("needs-retry.dynamodb.PutItem", another_asks)
    mine, _ = ask(ledger.lock(NODE), "job-1", LockMode.SHARED, since=T0, now=T0)

    assert not ledger.put_lock(mine)
    assert ledger.lock(NODE).holders == {"job-1": LockMode.SHARED}
    assert set(ledger.lock(NODE).waiting) == {"job-2"}
    assert take(ledger, NODE, "job-1", LockMode.SHARED, since=T0)


def test_notes_whose_answer_is_lost_are_noted_once(ledger: DynamoLedger) -> None:
    sent = lose_first_answer(ledger, "TransactWriteItems")

    ledger.record_attempts([an_attempt(1), an_attempt(2)])

    assert sent == [1, 2]
    assert len(list(ledger.attempts("job-1"))) == 2


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "InternalServerError"]
)
def test_throttling_is_transient(ledger: DynamoLedger, code: str) -> None:
    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "too much"}}, "Any")

    events_of(ledger).register_first("before-call.dynamodb.*", throttled)

    for call in (
        lambda: ledger.job("job-1"),
        lambda: ledger.open_job(a_job()),
        lambda: ledger.take_over("job-1", generation=0, execution="e", now=T1),
        lambda: ledger.record_attempts([an_attempt(1)]),
        lambda: list(ledger.attempts("job-1")),
        lambda: ledger.begin_unit("job-1", 1),
        lambda: ledger.note("job-1", generation=0, plan=PLAN, now=T1),
        lambda: ledger.lock(NODE),
        lambda: ledger.put_lock(let_go(LockRecord(NODE), "job-1")),
        lambda: list(ledger.jobs_in(JobState.OPEN, before=T1)),
    ):
        with pytest.raises(TransientError):
            call()


def conflict(ledger: DynamoLedger, operation: str, times: int) -> list[int]:
    """Refuse the first ``times`` requests as DynamoDB does while a transaction is under way."""
    refused: list[int] = []

    def under_way(**_: Any) -> None:
        if len(refused) == times:
            return
        refused.append(1)
        cancelled = operation == "TransactWriteItems"
        code = "TransactionCanceledException" if cancelled else "TransactionConflictException"
        reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
        answer: Any = {"Error": {"Code": code, "Message": "m"}, "CancellationReasons": reasons}
        raise ClientError(answer, operation)

    events_of(ledger).register_first(f"before-call.dynamodb.{operation}", under_way)
    return refused


@pytest.fixture
def patient(table: str, moto_endpoint: str) -> tuple[DynamoLedger, list[float]]:
    """A ledger, and the pauses that it would have made."""
    pauses: list[float] = []
    ledger = DynamoLedger(
        table, region=REGION, host=moto_endpoint, clock=ManualClock(T0), sleep=pauses.append
    )
    return ledger, pauses


def test_a_decision_that_meets_anothers_is_repeated(
    patient: tuple[DynamoLedger, list[float]],
) -> None:
    ledger, pauses = patient
    bring_to(ledger, JobState.SEALED)
    ledger.note("job-1", generation=0, plan=PLAN, now=T0)
    take(ledger, NODE, "job-1", LockMode.SHARED)
    conflict(ledger, "TransactWriteItems", 3)

    assert decided(ledger) == ledger.job("job-1")
    assert pauses == [0.05, 0.1, 0.2]


def test_a_decision_that_is_said_to_be_in_progress_and_was_taken_is_known_as_ones_own(
    patient: tuple[DynamoLedger, list[float]],
) -> None:
    ledger, pauses = patient
    bring_to(ledger, JobState.SEALED)
    ledger.note("job-1", generation=0, plan=PLAN, now=T0)
    take(ledger, NODE, "job-1", LockMode.SHARED)

    def in_progress(**_: Any) -> None:
        events_of(ledger).unregister("after-call.dynamodb.TransactWriteItems", in_progress)
        answer: Any = {"Error": {"Code": "TransactionInProgressException", "Message": "m"}}
        raise ClientError(answer, "TransactWriteItems")

    events_of(ledger).register_first("after-call.dynamodb.TransactWriteItems", in_progress)

    assert decided(ledger) == ledger.job("job-1")
    assert pauses == [0.05]


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        ("PutItem", lambda ledger: take(ledger, NODE, "job-1", LockMode.SHARED)),
        (
            "UpdateItem",
            lambda ledger: ledger.take_over("job-1", generation=0, execution="e", now=T1),
        ),
    ],
)
def test_a_write_that_meets_a_transaction_is_repeated(
    patient: tuple[DynamoLedger, list[float]],
    operation: str,
    write: Callable[[DynamoLedger], object],
) -> None:
    ledger, pauses = patient
    ledger.open_job(a_job())
    conflict(ledger, operation, 2)

    assert write(ledger)
    assert pauses == [0.05, 0.1]


def test_a_conflict_without_end_is_transient(patient: tuple[DynamoLedger, list[float]]) -> None:
    ledger, pauses = patient
    refused = conflict(ledger, "PutItem", 100)

    with pytest.raises(TransientError) as caught:
        take(ledger, NODE, "job-1", LockMode.SHARED)

    assert caught.value.code == "CONFLICT"
    assert len(refused) == CONFLICT_TRIES == len(pauses) + 1


def test_more_locks_than_a_transaction_takes_are_refused(ledger: DynamoLedger) -> None:
    bring_to(ledger, JobState.SEALED)
    stands = ledger.note("job-1", generation=0, plan=PLAN, now=T0)

    with pytest.raises(InvalidInputError):
        decided(ledger, locks=[f"lake/{number}/" for number in range(101)])

    assert ledger.job("job-1") == stands


def test_a_table_that_is_not_there_is_said_to_be_missing(moto_endpoint: str) -> None:
    ledger = DynamoLedger("no-such-table", region=REGION, host=moto_endpoint)

    with pytest.raises(NotFoundError) as caught:
        ledger.job("job-1")

    assert caught.value.code == "NO_TABLE"


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"])
def test_the_standard_configuration_finds_the_endpoint(
    table: str, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, moto_endpoint)

    assert DynamoLedger(table).open_job(a_job()) == a_job()


def test_two_tables_in_one_process_stay_apart(ledger: DynamoLedger, moto_endpoint: str) -> None:
    name = f"layout-{next(_TABLES)}"
    create_table(name, moto_endpoint)
    other = DynamoLedger(name, region=REGION, host=moto_endpoint)

    ledger.open_job(a_job())

    assert other.job("job-1") is None
    assert [*other.jobs_in(JobState.OPEN, before=T1)] == []
    assert [*ledger.jobs_in(JobState.OPEN, before=T1)] == [a_job()]


def test_the_system_clock_speaks_rfc_3339_with_milliseconds() -> None:
    now = SystemClock().now()

    assert len(now) == len(T0)
    assert now.endswith("Z")
