"""What a job costs DynamoDB, by the sizes of its items and the calls that it makes; no timing.

A partition takes 1,000 write and 3,000 read units a second:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from types import SimpleNamespace
from typing import Any

import pytest

from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.ledger_items import SHELVES, bind, job_item
from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.limits import (
    APPEND_SECONDS,
    MAX_APPENDS,
    MAX_NODES,
    SHORTEST_WAIT,
    WAITER_REFRESH_SECONDS,
)
from s3commit.core.model.locks import Item, ItemKind, opened_items
from s3commit.core.model.outcome import Failure, Outcome
from s3commit.core.model.record import JobRecord, Waits
from s3commit.core.model.states import JobState
from tests.contract.ledger_jobs import NODE, OTHER_PLAN, OTHER_REPLACED, PLAN, REPLACED, T0, a_job
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.faults import Call
from tests.fakes.item_limits import BESIDE_FIELDS, beside_key, estimate

WRITES, READS = 1000, 3000  # units of a partition, a second
APPENDS = 100  # a second
WAITING = 1000
TRANSACTION = 2  # times the units of a write by itself
PREFIX = "warehouse/sales.db/orders/"
OTHER = "00000000-0000-4000-8000-00000000ffff"
RECORD = ("open_job", "take_over", "note", "lock", "decide", "advance")
ITEMS, TOKEN = bind("ledger"), "0" * 32
Sent = dict[str, dict[str, Any]]
Beside = Callable[[JobRecord], dict[Item, Sent]]


def job_bytes(record: JobRecord) -> int:
    return size_of(job_item(ITEMS.job, record, TOKEN).serialize(null_check=True))


@pytest.fixture
def beside(sessions: list[Any]) -> Beside:
    """What a ledger puts beside the record of a job, as it is sent."""
    ledger, sent = DynamoLedger("units"), list[Any]()
    events = sessions[0].made.meta.events
    called = "provide-client-params.dynamodb.TransactWriteItems"
    events.register(called, lambda params, **_: sent.extend(params["TransactItems"]))
    events.register("before-call.dynamodb", lambda **_: (SimpleNamespace(status_code=200), {}))

    def put(record: JobRecord) -> dict[Item, Sent]:
        sent.clear()
        ledger.open_job(record)
        others = [one["Put"]["Item"] for one in sent][1:]
        return dict(zip(opened_items(record), others, strict=True))

    return put


def committed(**policy: Any) -> tuple[World, JobRecord]:
    world, directory = World(), job_directory(prefix=PREFIX)
    world.ask(directory, **policy)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    return world, world.record(directory)


def calls(world: World, *verbs: str) -> list[Call]:
    return [call for call in world.plan.calls if call.verb in verbs]


def test_a_hundred_appends_a_second_fit_below_one_directory(beside: Beside) -> None:
    world, record = committed()
    assert calls(world, "lock", "locks", "locks_below", "unlock", "key_holder", "appends") == []
    (append,) = beside(record).values()
    writes = 2 * TRANSACTION * ceil(size_of(append) / 1024)  # decided, ended
    print(f"append: {writes} write units a job")
    assert APPENDS * writes <= WRITES / 2
    per_write = ceil(job_bytes(record) / 1024)
    own = len(calls(world, *RECORD))
    print(f"record: {own} writes of {per_write} units, and twice that in the index")
    # A change of the index's sort key is a delete and a put. At worst all are in one state.
    index = 2 * per_write * own
    assert APPENDS * index / SHELVES <= WRITES / 2
    assert APPENDS * index >= WRITES  # without shelves they would take a whole partition


def test_a_replace_reads_the_appends_of_an_hour_within_its_units(beside: Beside) -> None:
    """It reads them three times at least. No more are read than `MAX_APPENDS`."""
    _, record = committed()
    (append,) = beside(record).values()
    a_second = 25
    listed = a_second * APPEND_SECONDS
    units = ceil(listed * size_of(append) / 4096)
    print(f"a replace beside {listed} appends: {units} read units a reading")
    assert listed <= MAX_APPENDS
    assert 3 * units / READS <= 5  # seconds


def test_a_replace_of_many_partitions_locks_them_within_its_units(beside: Beside) -> None:
    _, appended = committed()
    nodes = tuple(f"{BUCKET}/{PREFIX}day={number:02d}/" for number in range(MAX_NODES))
    record = replace(
        appended, conflict=Conflict.REPLACE, state=JobState.SEALED, decided_at=None, locks=nodes
    )
    locks = [sent for one, sent in beside(record).items() if one.kind is ItemKind.LOCK]
    units = sum(TRANSACTION * ceil(size_of(one) / 1024) for one in locks)
    assert len(locks) == MAX_NODES
    print(f"{len(locks)} locks: {units} write units, and again when they go")
    assert 2 * units <= WRITES / 2


def test_a_thousand_jobs_wait_for_one_within_its_partitions_units() -> None:
    """Each asks for the locks in its way, and reads the record of who has them."""
    world, holder = World(), job_directory(OTHER, "warehouse/")
    policy: Any = {"conflict": Conflict.REPLACE, "scope": Scope.DIRECTORY}
    directory = job_directory(prefix=PREFIX)
    for each in (holder, directory):
        world.ask(each, **policy)
    acquired(world, holder)
    ticket = acquired(world, directory)
    assert not ticket.acquired
    before = len(world.plan.calls)
    acquire_destination(world.ports, ticket)
    asked = world.plan.calls[before:]
    (looked,) = [call for call in asked if call.verb == "locks"]
    a_second = WAITING / SHORTEST_WAIT
    locks = len(looked.arguments["nodes"])  # a unit each, found or not
    of_one = [c for c in asked if c.verb == "job" and c.arguments["ref"] == holder.ref]
    records = len(of_one) * ceil(job_bytes(world.record(holder)) / 4096)
    print(f"{WAITING} waiting jobs: {locks * a_second} + {records * a_second} read units a second")
    assert locks * a_second <= READS / 2
    assert records * a_second <= READS / 4
    written = 2 * ceil(job_bytes(world.record(directory)) / 1024)
    assert WAITING / WAITER_REFRESH_SECONDS * written / SHELVES <= WRITES / 10


def acquired(world: World, directory: JobDirectory) -> Ticket:
    ticket = Ticket(directory.job_id, BUCKET, directory.prefix, execution="one")
    ticket = verify_manifests(world.ports, seal_job(world.ports, ticket))
    return acquire_destination(world.ports, ticket)


# What the fake counts of an item


def size_of(sent: Sent) -> int:
    """How many bytes DynamoDB counts for the item: names and values, and a few for each level.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
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
    assert job_bytes(record) <= said < 2 * BESIDE_FIELDS


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
@pytest.mark.parametrize("state", [JobState.COMMITTING, JobState.COMMITTED])
def test_the_fake_has_the_keys_beside(beside: Beside, state: JobState, conflict: Conflict) -> None:
    locks = (NODE, f"{NODE}länd/") if conflict is Conflict.REPLACE else ()
    record = a_job(
        state=state, conflict=conflict, idempotency_key="k", locks=locks, decided_at=T0,
        finished_at=T0 if state is JobState.COMMITTED else None,
    )  # fmt: skip
    found = beside(record)
    assert bool(found) is (state is JobState.COMMITTING or conflict is Conflict.APPEND)
    for one, sent in found.items():
        assert sent["sk"]["S"] == beside_key(record, one)
