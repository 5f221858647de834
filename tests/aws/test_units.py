"""What a job costs DynamoDB, by the sizes of its items and the calls that it makes; no timing.

A partition takes 1,000 write and 3,000 read units a second:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

from s3commit.aws.ledger_items import SHELVES, Items, bind, claim_key
from s3commit.aws.ledger_records import job_item
from s3commit.core.model.job import Outcome
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.record import JobRecord
from s3commit.testing.faults import Call
from tests.conftest import REGION
from tests.core.world import World, job_directory

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


def claim_bytes(claim: Claim) -> int:
    pk, sk = claim_key("x" * REF, claim)
    return size({"M": ITEMS.claim(pk, sk, expires_at=1_800_000_000).serialize()})


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


def test_two_thousand_waiting_jobs_write_less_than_their_partitions_take() -> None:
    """Each is noted as seen once in the longest of its waits, behind many."""
    record = committed(crowded())
    a_second = 2000 / 20  # at most: every WAITER_REFRESH_SECONDS
    assert a_second * 2 * ceil(job_bytes(record) / 1024) / SHELVES <= WRITES / 10
