"""What a job costs DynamoDB, by the sizes of its items and the calls that it makes; no timing.

A partition takes 1,000 write and 3,000 read units a second:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

import pytest

from s3commit.aws.ledger_items import SHELVES, Items, bind
from s3commit.aws.ledger_records import claim_item, job_item
from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.limits import SHORTEST_WAIT
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.record import JobRecord, PlanFacts, Stage, Turn
from s3commit.core.model.states import JobState
from tests.conftest import REGION
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.faults import Call

WRITES, READS = 1000, 3000  # units of a partition, a second
APPENDS = 100  # a second
HOLDERS = 1000
PREFIX = "warehouse/sales.db/orders/"
REF = 53  # bytes of a job's ref
ITEMS: Items = bind("units", region=REGION, host=None)


def size(values: Any) -> int:
    """An item's bytes, as DynamoDB counts them: names and values, and a few for each level.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    total = 0
    for kind, value in values.items():
        if kind in {"S", "N"}:
            total += len(value.encode())
        elif kind == "M":
            total += 3 + sum(1 + len(name.encode()) + size(one) for name, one in value.items())
        elif kind == "L":
            total += 3 + sum(1 + size(one) for one in value)
        else:
            total += 1
    return total


def job_bytes(record: JobRecord) -> int:
    return size({"M": job_item(ITEMS.job, record, "0" * 32).serialize()})


def claim_bytes(claim: Claim, *, waits: bool = False) -> int:
    asked = "2026-11-21T22:00:00.000Z" if waits else ""
    one = Claimed(claim, "x" * REF, waits, asked, epoch=1_800_000_000)
    return size({"M": claim_item(ITEMS.claim, one, 1_800_000_000).serialize()})


def crowded() -> World:
    """A thousand appends that hold: a hundred of them at the job's own table."""
    world = World()
    for number in range(HOLDERS):
        prefix = PREFIX if number % 10 == 0 else f"warehouse/sales.db/t{number}/"
        claim = Claim(f"lake/{prefix}", LockMode.SHARED)
        other = job_directory(f"{number:08d}-0000-4000-8000-000000000000", prefix)
        world.ledger.put_claim(Claimed(claim, other.ref))
    directory = job_directory(prefix=PREFIX)
    world.request(directory, world.attempt(directory, "t0"))
    return world


def committed(world: World) -> JobRecord:
    directory = job_directory(prefix=PREFIX)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    return world.record(directory)


def calls(world: World, *verbs: str) -> list[Call]:
    return [call for call in world.plan.calls if call.verb in verbs]


def test_a_hundred_appends_a_second_fit_below_one_directory_with_a_thousand_holders() -> None:
    world = crowded()
    record = committed(world)
    claim = Claim(f"lake/{PREFIX}", LockMode.SHARED)
    writes = ceil(claim_bytes(claim) / 1024) * len(calls(world, "put_claim", "drop_claim"))
    looks = calls(world, "claims")
    read = Counter(call.arguments["claim"].mode for call in looks)
    assert read == {LockMode.EXCLUSIVE: 3}  # its table and the two above, one unit each
    print(f"claims: {writes} write units, {len(looks)} read units a job")
    assert APPENDS * writes <= WRITES / 4
    assert APPENDS * len(looks) <= READS / 4
    per_write = ceil(job_bytes(record) / 1024)
    own = calls(world, "take_over", "advance", "note", "take_turn", "decide", "open_job")
    print(f"record: {len(own)} writes of {per_write} units, and twice that in the index")
    # A change of the index's sort key is a delete and a put. At worst all are in one state.
    index = 2 * per_write * len(own)
    assert APPENDS * index / SHELVES <= WRITES / 2
    assert APPENDS * index > WRITES  # without shelves they would not fit


def test_a_claim_is_as_large_with_a_thousand_holders_as_with_one() -> None:
    assert claim_bytes(Claim(f"{'b' * 63}/{'x/' * 400}", LockMode.SHARED)) <= 2 * 1024
    assert claim_bytes(Claim(f"lake/{PREFIX}", LockMode.SHARED)) < 200


def test_a_replace_reads_a_thousand_claims_in_a_few_units() -> None:
    one = claim_bytes(Claim(f"lake/{PREFIX}", LockMode.SHARED))
    assert ceil(HOLDERS * one / 4096) <= 50


def test_a_replace_finds_its_turn_though_a_hundred_a_second_come_behind_it_for_five_minutes() -> (
    None
):
    """It looks at all claims no sooner than `SHORTEST_WAIT` after the last time."""
    one = claim_bytes(Claim(f"lake/{PREFIX}", LockMode.SHARED), waits=True)
    units = ceil((HOLDERS + 300 * APPENDS) * one / 4096)
    print(f"a replace, {HOLDERS} holders, {300 * APPENDS} behind it: {units} read units a look")
    assert units / SHORTEST_WAIT <= READS / 4


@pytest.mark.parametrize("minutes", [1, 5])
def test_a_hundred_appends_a_second_wait_behind_a_replace_within_its_partitions_units(
    minutes: int,
) -> None:
    """Whoever waits reads the one record that it waits for, all of them the same."""
    world = World()
    held = replacing(world)
    directory = job_directory(prefix=PREFIX)
    world.request(directory, world.attempt(directory, "t0"))
    ticket = Ticket(directory.job_id, BUCKET, directory.prefix, execution="one")
    ticket = verify_manifests(world.ports, seal_job(world.ports, ticket))
    ticket = acquire_destination(world.ports, ticket)
    first = len(calls(world, "claims"))
    asks, waited = 0, ticket.pause
    while waited < 60 * minutes:
        world.clock.advance(ticket.pause)
        ticket = acquire_destination(world.ports, ticket)
        assert not ticket.acquired
        asks, waited = asks + 1, waited + ticket.pause
    assert len(calls(world, "claims")) == first  # none but when it came
    of_one = [call for call in calls(world, "job") if call.arguments["ref"] == held.ref]
    assert asks <= len(of_one) <= asks + 2
    a_second = APPENDS * len(of_one) * ceil(job_bytes(held) / 4096)
    print(f"behind a replace of {minutes} minutes: {a_second} read units a second at its record")
    assert a_second <= READS * 3 / 4


def replacing(world: World) -> JobRecord:
    """A job that replaces the directory above, and holds it."""
    directory = job_directory("00000000-0000-4000-8000-00000000ffff", "warehouse/")
    now = world.clock.now()
    node = "lake/warehouse/"
    record = JobRecord(
        directory.job_id,
        directory.destination,
        JobState.PUBLISHING,
        1,
        now,
        now,
        conflict=Conflict.REPLACE,
        plan=PlanFacts("0" * 64, 1, 1, 1, 1),
        locks=(node,),
        turn=Turn(Stage.HELD, now, 1),
    )
    world.ledger.open_job(record)
    world.ledger.put_claim(Claimed(Claim(node, LockMode.EXCLUSIVE), record.ref, epoch=1))
    return record


def test_two_thousand_waiting_jobs_write_less_than_their_partitions_take() -> None:
    """Each is noted as seen once in the longest of its waits, behind many."""
    record = committed(crowded())
    a_second = 2000 / 20  # at most: every WAITER_REFRESH_SECONDS
    assert a_second * 2 * ceil(job_bytes(record) / 1024) / SHELVES <= WRITES / 10
