"""How the ledger lies in DynamoDB, and what it makes of lost and refused requests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from s3commit.aws.ledger import JOB_DAYS, DynamoLedger
from s3commit.aws.ledger_items import SHELVES
from s3commit.aws.ledger_notes import CLAIM_DAYS, NOTE_DAYS, REMEMBERED
from s3commit.core.model.errors import NeedsOperatorError, NotFoundError, TransientError
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.record import JobRecord, Stage, Turn
from s3commit.core.model.states import JobState
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.contract.ledger_jobs import (
    NODE,
    PLAN,
    T0,
    T1,
    a_job,
    an_attempt,
    bring_to,
    decided,
    ref_of,
)
from tests.contract.locking import hold, move
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


def _advance(ledger: DynamoLedger) -> JobRecord:
    return ledger.advance(
        REF, source=JobState.SEALED, target=JobState.ABORTING, generation=0, now=T1
    )


def _take_over(ledger: DynamoLedger) -> JobRecord:
    return ledger.take_over(REF, generation=0, execution="second", now=T1)


def _turn(ledger: DynamoLedger) -> JobRecord:
    found = ledger.job(REF)
    assert found is not None
    return move(ledger, found, Stage.WAITING)


@pytest.mark.parametrize("change", [_advance, _take_over, decided, _turn])
def test_i6_a_change_whose_answer_is_lost_is_known_as_ones_own(
    ledger: DynamoLedger, change: Callable[[DynamoLedger], JobRecord]
) -> None:
    bring_to(ledger, JobState.SEALED)
    ledger.note(REF, generation=0, plan=PLAN, now=T0)
    hold(ledger, REF, NODE)
    sent = lose_first_answer(ledger, "UpdateItem")

    changed = change(ledger)

    assert sent == [1, 2]
    assert changed == ledger.job(REF)


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


def test_i8_a_table_that_was_restored_is_refused(
    ledger: DynamoLedger, table: str, moto_endpoint: str
) -> None:
    first = ledger.healing("lake", now=T0)
    ledger.note_healing("lake", replace(first, whole=True))
    client = boto3.client("dynamodb", region_name=REGION, endpoint_url=moto_endpoint)
    client.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName=f"{table}-restored", UseLatestRestorableTime=True
    )
    restored = DynamoLedger(f"{table}-restored", region=REGION, host=moto_endpoint)
    for _ in range(2):
        with pytest.raises(NeedsOperatorError, match="restored from a backup") as raised:
            restored.healing("lake", now=T1)
        assert raised.value.code == "LEDGER_RESTORED"
    assert ledger.healing("lake", now=T1).whole


def test_the_id_of_the_table_is_asked_for_once_a_minute(
    ledger: DynamoLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    table_id = ledger._table_id

    def ask() -> str:
        asked.append(table_id())
        return asked[-1]

    monkeypatch.setattr(ledger, "_table_id", ask)
    for _ in range(3):
        ledger.healing("lake", now=T0)
    assert len(asked) == 1
    known, then = ledger._known
    ledger._known = known, then - REMEMBERED
    ledger.healing("lake", now=T0)
    assert len(asked) == 2


def test_an_empty_table_in_its_place_is_seen_at_once(
    ledger: DynamoLedger, table: str, moto_endpoint: str
) -> None:
    ledger.note_healing("lake", replace(ledger.healing("lake", now=T0), whole=True))
    boto3.client("dynamodb", region_name=REGION, endpoint_url=moto_endpoint).delete_table(
        TableName=table
    )
    create_table(table, moto_endpoint)
    assert not ledger.healing("lake", now=T1).whole
    assert not ledger.healing("lake", now=T1).whole
