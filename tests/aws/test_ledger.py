"""How the ledger lies in DynamoDB, and what it makes of lost and refused requests."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from s3commit.aws import ledger_notes
from s3commit.aws.ledger import JOB_DAYS, DynamoLedger
from s3commit.aws.ledger_items import SHELVES
from s3commit.aws.ledger_notes import NOTE_DAYS, REMEMBERED
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import NeedsOperatorError, TransientError
from s3commit.core.model.locks import ENDED_SECONDS, Lock, key_digest
from s3commit.core.model.record import JobRecord, Waits
from s3commit.core.model.states import JobState
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.contract.ledger_jobs import (
    KEY,
    NODE,
    PLAN,
    T0,
    T1,
    a_job,
    abort,
    an_attempt,
    bring_to,
    decided,
    locked,
    ref_of,
)
from tests.fakes.memory import ManualClock

DAY = 86400
REF = ref_of("job-1")
JOB_KEY = ("JOB#job-1", REF.removeprefix("job-1-"))
OTHER = ref_of("job-2")
EPOCH_OF_T0 = 1795298400  # 2026-11-21T22:00:00Z

Items = Callable[[], dict[tuple[str, str], dict[str, Any]]]
_TABLES = itertools.count()


@pytest.fixture
def table(moto_endpoint: str) -> str:
    name = f"layout-{next(_TABLES)}"
    create_table(name, moto_endpoint)
    return name


@pytest.fixture
def ledger(
    table: str, moto_endpoint: str, sessions: list[Any], monkeypatch: pytest.MonkeyPatch
) -> DynamoLedger:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    return DynamoLedger(table, clock=ManualClock(T0))


@pytest.fixture
def events(ledger: DynamoLedger, sessions: list[Any]) -> Any:
    """The hooks of the ledger's own client."""
    return sessions[0].made.meta.events


@pytest.fixture
def items(table: str, moto_endpoint: str) -> Items:
    client = boto3.resource("dynamodb", endpoint_url=moto_endpoint, region_name=REGION)

    def read() -> dict[tuple[str, str], dict[str, Any]]:
        found = client.Table(table).scan()["Items"]
        return {(str(item["pk"]), str(item["sk"])): dict(item) for item in found}

    return read


def lose_first_answer(events: Any, operation: str) -> list[int]:
    """Let botocore send the first request again, as if its answer had been lost."""
    sent: list[int] = []

    def again(attempts: int, **_: Any) -> int | None:
        sent.append(attempts)
        return 0 if attempts == 1 else None

    events.register_first(f"needs-retry.dynamodb.{operation}", again)
    return sent


def test_items_have_the_keys_of_the_contract(ledger: DynamoLedger, items: Items) -> None:
    day = f"{NODE}dt=1/"
    how = {"conflict": Conflict.REPLACE, "idempotency_key": KEY}
    bring_to(ledger, JobState.COMMITTING, nodes=(NODE, day), **how)
    bring_to(ledger, JobState.COMMITTING, "job-2")
    ledger.record_attempt(an_attempt(3))
    ledger.healing("lake", now=T0)
    found = items()
    assert set(found) == {
        JOB_KEY,
        ("JOB#job-2", OTHER.removeprefix("job-2-")),
        (f"ATTEMPTS#{REF}#3", "task-3#attempt-0"),
        ("LOCKS#lake/table/", NODE),
        ("LOCKS#lake/table/", day),
        ("KEYS#lake/table/", key_digest(KEY)),
        ("APPENDS#lake/table/", f"{NODE}/{OTHER}"),
        ("HEALING", "lake"),
    }
    in_index = [key for key, item in found.items() if {"shelf", "updated_at"} <= set(item)]
    assert {pk for pk, _ in in_index} == {"JOB#job-1", "JOB#job-2"}


def test_only_what_has_ended_expires(ledger: DynamoLedger, items: Items) -> None:
    """The key of a committed job never does, nor does anything of a job that is under way."""
    bring_to(ledger, JobState.ROLLING_BACK)
    bring_to(ledger, JobState.COMMITTED, "job-2", now=T0, idempotency_key=KEY)
    bring_to(ledger, JobState.COMMITTING, "job-3", nodes=(f"{NODE}x/",), conflict=Conflict.REPLACE)
    ledger.open_job(a_job("job-4", state=JobState.ABORTED))  # before the ledger knew it
    ledger.record_attempt(an_attempt(3))
    expiry = {key: int(item["expires_at"]) for key, item in items().items() if "expires_at" in item}
    assert expiry == {
        ("JOB#job-2", OTHER.removeprefix("job-2-")): EPOCH_OF_T0 + JOB_DAYS * DAY,
        ("JOB#job-4", ref_of("job-4").removeprefix("job-4-")): EPOCH_OF_T0 + JOB_DAYS * DAY,
        (f"ENDED#lake/table/#{T0[:15]}", f"{NODE}/{OTHER}"): EPOCH_OF_T0 + ENDED_SECONDS,
        (f"ATTEMPTS#{REF}#3", "task-3#attempt-0"): EPOCH_OF_T0 + NOTE_DAYS * DAY,
    }


def test_a_job_goes_to_the_shelf_of_its_state(ledger: DynamoLedger, items: Items) -> None:
    """The index's hash key: by state alone it would be one partition, of 1,000 writes a second."""
    for number in range(100):
        bring_to(ledger, JobState.SEALED, f"job-{number}")
    ledger.note(a_job("job-0"), plan=PLAN, now=T0)
    decided(ledger, "job-0")
    shelves = {job["job_id"]: job["shelf"] for job in items().values() if "shelf" in job}
    state, _, number = shelves.pop("job-0").partition("#")
    assert (state, len(number)) == ("COMMITTING", 2)
    assert {shelf.partition("#")[0] for shelf in shelves.values()} == {"SEALED"}
    assert len(set(shelves.values())) == SHELVES


def _take_over(ledger: DynamoLedger) -> JobRecord:
    return ledger.take_over(a_job(), execution="second", now=T1)


def _wait(ledger: DynamoLedger) -> JobRecord:
    return ledger.note(a_job(), waits=Waits(T1, ("job-2-0f",)), now=T1)


def _lock(ledger: DynamoLedger) -> JobRecord:
    return locked(ledger, f"{NODE}dt=2/", f"{NODE}dt=3/")


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (_take_over, "UpdateItem"),
        (_wait, "UpdateItem"),
        (_lock, "TransactWriteItems"),
        (decided, "TransactWriteItems"),
        (abort, "TransactWriteItems"),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_i6_a_change_whose_answer_is_lost_is_known_as_ones_own(
    ledger: DynamoLedger,
    events: Any,
    change: Callable[[DynamoLedger], JobRecord],
    operation: str,
    is_late: bool,
) -> None:
    """DynamoDB knows the token of a transaction for ten minutes, and the record that of a write.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    bring_to(ledger, JobState.SEALED, nodes=(f"{NODE}dt=1/",), idempotency_key=KEY)
    ledger.note(a_job(), plan=PLAN, now=T0)
    if is_late:
        forget = "provide-client-params.dynamodb.TransactWriteItems"
        events.register_first(forget, _without_token)
    sent = lose_first_answer(events, operation)
    changed = change(ledger)
    assert sent == [1, 2]
    assert changed == ledger.job(REF)


def _without_token(params: dict[str, Any], **_: Any) -> dict[str, Any]:
    return {name: one for name, one in params.items() if name != "ClientRequestToken"}


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "InternalServerError"]
)
def test_throttling_is_transient(ledger: DynamoLedger, events: Any, code: str) -> None:
    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "too much"}}, "Any")

    events.register_first("before-call.dynamodb.*", throttled)
    for call in (
        lambda: ledger.job(ref_of("job-1")),
        lambda: ledger.open_job(a_job()),
        lambda: ledger.take_over(a_job(), execution="e", now=T1),
        lambda: ledger.record_attempt(an_attempt(1)),
        lambda: list(ledger.attempts(ref_of("job-1"))),
        lambda: ledger.note(a_job(), plan=PLAN, now=T1),
        lambda: locked(ledger, NODE),
        lambda: list(ledger.locks([NODE])),
        lambda: list(ledger.locks_below(NODE)),
        lambda: ledger.unlock(Lock(NODE, REF)),
        lambda: ledger.key_holder(a_job().destination, KEY),
        lambda: list(ledger.appends(NODE, below=True)),
        lambda: list(ledger.jobs_in(JobState.OPEN, before=T1)),
    ):
        with pytest.raises(TransientError):
            call()


def test_i8_no_restored_table_is_used(ledger: DynamoLedger, table: str, moto_endpoint: str) -> None:
    first = ledger.healing("lake", now=T0)
    ledger.note_healing("lake", replace(first, whole=True))
    client = boto3.client("dynamodb", region_name=REGION, endpoint_url=moto_endpoint)
    client.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName=f"{table}-restored", UseLatestRestorableTime=True
    )
    restored = DynamoLedger(f"{table}-restored")
    for look in (partial(restored.healing, "lake", now=T1), restored.peek_healing) * 2:
        with pytest.raises(NeedsOperatorError, match="restored from a backup") as raised:
            look()
        assert raised.value.code == "LEDGER_RESTORED"
    assert ledger.healing("lake", now=T1).whole


def test_the_tables_id_is_remembered(
    ledger: DynamoLedger, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for once a minute."""
    asked, now = list[str](), [1000.0]
    monkeypatch.setattr(ledger_notes, "time", SimpleNamespace(monotonic=lambda: now[0]))
    events.register("before-call.dynamodb.DescribeTable", lambda model, **_: asked.append(model))
    ledger.healing("lake", now=T0)
    begun = len(asked)
    for later, more in ((0.0, 0), (REMEMBERED - 1, 0), (1.0, 1), (0.0, 1)):
        now[0] += later
        ledger.healing("lake", now=T0)
        assert len(asked) == begun + more


def test_an_empty_table_is_seen(ledger: DynamoLedger, table: str, moto_endpoint: str) -> None:
    ledger.note_healing("lake", replace(ledger.healing("lake", now=T0), whole=True))
    boto3.client("dynamodb", region_name=REGION, endpoint_url=moto_endpoint).delete_table(
        TableName=table
    )
    create_table(table, moto_endpoint)
    assert not ledger.healing("lake", now=T1).whole
    assert not ledger.healing("lake", now=T1).whole
