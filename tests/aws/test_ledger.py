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
from s3commit.aws.ledger_items import SHELVES, claim_key
from s3commit.aws.ledger_notes import NOTE_DAYS
from s3commit.aws.locks import CLAIM_DAYS
from s3commit.core.model.errors import NotFoundError, TransientError
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.record import Stage, Turn
from s3commit.core.model.states import JobState
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.contract.ledger_jobs import (
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
    ref_of,
)
from tests.contract.locking import enter, hold, move
from tests.fakes.memory import ManualClock

DAY = 86400
REF = ref_of("job-1")
JOB_KEY = ("JOB#job-1", REF.removeprefix("job-1-"))
A_CLAIM = Claim(NODE, LockMode.SHARED)
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
    for node, mode in ((NODE, "S"), ("lake/table/dt=1/", "X"), ("lake/table/?once=0f", "K")):
        ledger.put_claim(Claimed(Claim(node, LockMode(mode)), REF))

    found = items()

    assert set(found) == {
        JOB_KEY,
        (f"ATTEMPTS#{REF}#3", "task-3#attempt-0"),
        ("CLAIMS#S#lake/table/", f"lake/table//{REF}"),
        ("CLAIMS#X#lake/table/", f"lake/table/dt=1//{REF}"),
        ("CLAIMS#K#lake/table/", f"lake/table/?once=0f/{REF}"),
    }
    in_index = [key for key, item in found.items() if {"shelf", "updated_at"} <= set(item)]
    assert in_index == [JOB_KEY]


def test_items_can_be_read_without_this_code(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    turn = Turn(Stage.WAITING, T0, 2)
    ledger.open_job(a_job(plan=OTHER_PLAN, replaced=REPLACED, locks=("lake/", NODE), turn=turn))

    job = items()[JOB_KEY]

    assert job["locks"] == ["lake/", NODE]
    assert job["replaced"] == {
        "sha256": REPLACED.sha256,
        "files": 4,
        "bytes": 9876,
    }
    assert job["turn"] == {"stage": "WAITING", "since": T0, "epoch": 2}


def test_i6_a_claim_of_an_earlier_version_is_replaced_by_one_who_enters_alone(
    ledger: DynamoLedger, table: str, moto_endpoint: str
) -> None:
    """It has no epoch, so nobody can tell whether a job that holds has put it."""
    pk, sk = claim_key(REF, A_CLAIM)
    client = boto3.resource("dynamodb", endpoint_url=moto_endpoint, region_name=REGION)
    client.Table(table).put_item(Item={"pk": pk, "sk": sk, "expires_at": 1, "waits": True})
    stands = Claimed(A_CLAIM, REF, waits=True)

    ledger.put_claim(Claimed(A_CLAIM, REF, waits=True, asked=T0, epoch=5))
    assert list(ledger.claims(A_CLAIM, below=False, asked="2000-01-01T00:00:00.000Z")) == [stands]
    ledger.put_claim(Claimed(A_CLAIM, REF, epoch=5))
    assert list(ledger.claims(A_CLAIM, below=False)) == [Claimed(A_CLAIM, REF, epoch=5)]


def test_only_what_has_ended_expires(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    bring_to(ledger, JobState.ABORTING)
    assert "expires_at" not in items()[JOB_KEY]
    ledger.advance(
        ref_of("job-1"), source=JobState.ABORTING, target=JobState.ABORTED, generation=0, now=T0
    )
    ledger.record_attempts([an_attempt(3)])
    ledger.put_claim(Claimed(A_CLAIM, ref_of("job-1")))

    expiry = {pk: item.get("expires_at") for (pk, _), item in items().items()}

    assert expiry == {
        JOB_KEY[0]: EPOCH_OF_T0 + JOB_DAYS * DAY,
        f"ATTEMPTS#{REF}#3": EPOCH_OF_T0 + NOTE_DAYS * DAY,
        "CLAIMS#S#lake/table/": EPOCH_OF_T0 + CLAIM_DAYS * DAY,
    }


def test_a_job_that_had_ended_before_the_ledger_knew_it_expires_as_well(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    ledger.open_job(replace(a_job(), state=JobState.ABORTED))
    expires_at = items()[JOB_KEY]["expires_at"]
    assert expires_at == EPOCH_OF_T0 + JOB_DAYS * DAY


def test_attempts_are_spread_over_ten_partitions(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    ledger.record_attempts(an_attempt(task) for task in range(100))

    assert len({pk for pk, _ in items()}) == 10


def test_a_job_goes_to_the_shelf_of_its_state(
    ledger: DynamoLedger, items: Callable[[], dict[tuple[str, str], dict[str, Any]]]
) -> None:
    """The index's hash key: by state alone it would be one partition, of 1,000 writes a second."""
    for number in range(100):
        bring_to(ledger, JobState.SEALED, f"job-{number}")
    ledger.note(ref_of("job-0"), generation=0, plan=PLAN, now=T0)
    hold(ledger, ref_of("job-0"), NODE)
    decided(ledger, "job-0")

    shelves = {job["job_id"]: job["shelf"] for job in items().values() if "shelf" in job}

    state, _, number = shelves.pop("job-0").partition("#")
    assert (state, len(number)) == ("COMMITTING", 2)
    assert {shelf.partition("#")[0] for shelf in shelves.values()} == {"SEALED"}
    assert len(set(shelves.values())) == SHELVES


def test_a_transition_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    ledger.open_job(a_job())
    sent = lose_first_answer(ledger, "UpdateItem")

    sealed = ledger.advance(
        ref_of("job-1"), source=JobState.OPEN, target=JobState.SEALED, generation=0, now=T1
    )

    assert sent == [1, 2]
    assert sealed == ledger.job(ref_of("job-1"))
    assert sealed.state is JobState.SEALED


def test_a_take_over_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    ledger.open_job(a_job())
    sent = lose_first_answer(ledger, "UpdateItem")

    taken = ledger.take_over(ref_of("job-1"), generation=0, execution="second", now=T1)

    assert sent == [1, 2]
    assert (taken.generation, taken.execution) == (1, "second")


def test_a_decision_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    bring_to(ledger, JobState.SEALED)
    ledger.note(ref_of("job-1"), generation=0, plan=PLAN, now=T0)
    hold(ledger, ref_of("job-1"), NODE)
    sent = lose_first_answer(ledger, "UpdateItem")

    record = decided(ledger)

    assert sent == [1, 2]
    assert record == ledger.job(ref_of("job-1"))


def test_i6_a_turn_whose_answer_is_lost_is_known_as_ones_own(ledger: DynamoLedger) -> None:
    bring_to(ledger, JobState.SEALED)
    entering = enter(ledger, ref_of("job-1"), NODE)
    sent = lose_first_answer(ledger, "UpdateItem")

    assert move(ledger, entering, Stage.HELD) == ledger.job(ref_of("job-1"))
    assert sent == [1, 2]


def test_notes_whose_answer_is_lost_are_noted_once(ledger: DynamoLedger) -> None:
    sent = lose_first_answer(ledger, "TransactWriteItems")

    ledger.record_attempts([an_attempt(1), an_attempt(2)])

    assert sent == [1, 2]
    assert len(list(ledger.attempts(ref_of("job-1")))) == 2


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "InternalServerError"]
)
def test_throttling_is_transient(ledger: DynamoLedger, code: str) -> None:
    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "too much"}}, "Any")

    events_of(ledger).register_first("before-call.dynamodb.*", throttled)

    for call in (
        lambda: ledger.job(ref_of("job-1")),
        lambda: ledger.open_job(a_job()),
        lambda: ledger.take_over(ref_of("job-1"), generation=0, execution="e", now=T1),
        lambda: ledger.record_attempts([an_attempt(1)]),
        lambda: list(ledger.attempts(ref_of("job-1"))),
        lambda: ledger.note(ref_of("job-1"), generation=0, plan=PLAN, now=T1),
        lambda: ledger.take_turn(
            ref_of("job-1"), generation=0, before=Turn(), after=Turn(Stage.WAITING), now=T1
        ),
        lambda: list(ledger.claims(A_CLAIM, below=True)),
        lambda: ledger.put_claim(Claimed(A_CLAIM, ref_of("job-1"))),
        lambda: ledger.drop_claim(ref_of("job-1"), A_CLAIM),
        lambda: list(ledger.jobs_in(JobState.OPEN, before=T1)),
    ):
        with pytest.raises(TransientError):
            call()


def test_a_table_that_is_not_there_is_said_to_be_missing(moto_endpoint: str) -> None:
    ledger = DynamoLedger("no-such-table", region=REGION, host=moto_endpoint)

    with pytest.raises(NotFoundError) as caught:
        ledger.job(ref_of("job-1"))

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

    assert other.job(ref_of("job-1")) is None
    assert [*other.jobs_in(JobState.OPEN, before=T1)] == []
    assert [*ledger.jobs_in(JobState.OPEN, before=T1)] == [a_job()]


def test_the_system_clock_speaks_rfc_3339_with_milliseconds() -> None:
    now = SystemClock().now()

    assert len(now) == len(T0)
    assert now.endswith("Z")
