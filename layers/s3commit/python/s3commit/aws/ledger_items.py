"""The ledger's items in DynamoDB: one table, four kinds of item.

| item | pk | sk |
|---|---|---|
| job | ``JOB#<job id>`` | ``JOB`` |
| attempt | ``ATTEMPTS#<job id>#<shard>`` | ``<task id>#<attempt id>[#<location>]`` |
| unit | ``UNITS#<job id>#<shard>`` | ``<unit>`` |
| lock | ``LOCK#<bucket>/<prefix>`` | ``LOCK`` |

Attempts and units are spread over shards, by task and by number, because a partition takes about
1,000 writes a second. The index ``by-state`` (``state``, ``updated_at``) holds job items only: no
other item has its keys.
``expires_at`` is the table's TTL attribute, in seconds since 1970.

No `VersionAttribute` anywhere: generation and version are the protocol's own and are written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, cast
from zlib import crc32

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
)
from pynamodb.exceptions import PynamoDBException
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model

from s3commit.aws.failures import translate
from s3commit.core.model import AttemptRecord

SHARDS = 10
BY_STATE = "by-state"

CONNECT_TIMEOUT = 3  # seconds
READ_TIMEOUT = 10  # seconds
RETRIES = 6  # after the first attempt of a request; botocore's standard mode
MAX_POOL_CONNECTIONS = 10

_I = TypeVar("_I", bound="LedgerItem")


class ByState(GlobalSecondaryIndex["JobItem"]):  # type: ignore[no-untyped-call]
    """Jobs by state, in the order of their last update."""

    class Meta:
        """pynamodb's settings."""

        index_name = BY_STATE
        projection = AllProjection()

    state = UnicodeAttribute(hash_key=True)
    updated_at = UnicodeAttribute(range_key=True)


class LedgerItem(Model):
    """What every item has."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    expires_at = NumberAttribute(null=True)


class PlanMap(MapAttribute[str, object]):
    """`PlanFacts`."""

    sha256 = UnicodeAttribute()
    units = NumberAttribute()
    files = NumberAttribute()
    bytes = NumberAttribute()
    rows = NumberAttribute(null=True)
    partitions = UnicodeAttribute()
    nulls: MapAttribute[str, int | None] = MapAttribute()  # type: ignore[no-untyped-call]
    locations: MapAttribute[str, str] = MapAttribute(null=True)  # type: ignore[no-untyped-call]


class ReplacedMap(MapAttribute[str, object]):
    """`ReplacedFacts`."""

    sha256 = UnicodeAttribute()
    files = NumberAttribute()
    bytes = NumberAttribute()
    overwrites = BooleanAttribute()


class FailureMap(MapAttribute[str, object]):
    """`Failure`."""

    code = UnicodeAttribute()
    message = UnicodeAttribute()


class JobItem(LedgerItem):
    """`JobRecord`, and ``token``: which call wrote it last."""

    by_state = ByState()
    job_id = UnicodeAttribute()
    bucket = UnicodeAttribute()
    prefix = UnicodeAttribute()
    directory = UnicodeAttribute()
    state = UnicodeAttribute()
    generation = NumberAttribute()
    created_at = UnicodeAttribute()
    updated_at = UnicodeAttribute()
    conflict = UnicodeAttribute()
    scope = UnicodeAttribute()
    partition_by: ListAttribute[str] = ListAttribute(of=UnicodeAttribute)  # type: ignore[arg-type]
    idempotency_key = UnicodeAttribute(null=True)
    names = UnicodeAttribute()
    job_sha256 = UnicodeAttribute(null=True)
    locks: ListAttribute[str] = ListAttribute(of=UnicodeAttribute)  # type: ignore[arg-type]
    plan = PlanMap(null=True)  # type: ignore[no-untyped-call]
    replaced = ReplacedMap(null=True)  # type: ignore[no-untyped-call]
    failure = FailureMap(null=True)  # type: ignore[no-untyped-call]
    decided_at = UnicodeAttribute(null=True)
    finished_at = UnicodeAttribute(null=True)
    execution = UnicodeAttribute()
    token = UnicodeAttribute()


class AttemptItem(LedgerItem):
    """`AttemptRecord`."""

    job_id = UnicodeAttribute()
    task_id = UnicodeAttribute()
    attempt_id = UnicodeAttribute()
    manifest = UnicodeAttribute()
    sha256 = UnicodeAttribute()
    files = NumberAttribute()
    bytes = NumberAttribute()
    rows = NumberAttribute(null=True)
    location = UnicodeAttribute(null=True)


class UnitItem(LedgerItem):
    """A unit that a worker has begun; that it is there says all."""


class LockItem(LedgerItem):
    """`LockRecord`, and ``token``: which call wrote it last.

    ``holders`` maps a job's id to a mode, ``waiting`` to ``mode``, ``since`` and ``seen``.
    """

    version = NumberAttribute()
    holders: MapAttribute[str, str] = MapAttribute()  # type: ignore[no-untyped-call]
    waiting: MapAttribute[str, dict[str, str]] = MapAttribute()  # type: ignore[no-untyped-call]
    token = UnicodeAttribute()


@dataclass(frozen=True, slots=True)
class Items:
    """The kinds of item, bound to one table and sharing one connection."""

    job: type[JobItem]
    attempt: type[AttemptItem]
    unit: type[UnitItem]
    lock: type[LockItem]


def bind(table: str, *, region: str | None, host: str | None) -> Items:
    """The items of one table. ``region`` and ``host`` None: by the standard AWS configuration."""
    settings = {
        "table_name": table,
        "region": region,
        "host": host,
        "connect_timeout_seconds": CONNECT_TIMEOUT,
        "read_timeout_seconds": READ_TIMEOUT,
        "max_retry_attempts": RETRIES,
        "max_pool_connections": MAX_POOL_CONNECTIONS,
    }

    def bound(kind: type[_I]) -> type[_I]:
        # Meta belongs to a class, the table's name to the running process: hence a class for each
        meta = type("Meta", (), dict(settings))
        return cast("type[_I]", type(kind.__name__, (kind,), {"Meta": meta}))

    job = bound(JobItem)
    items = Items(job, bound(AttemptItem), bound(UnitItem), bound(LockItem))
    # One connection, so one client and one pool: the job's knows the keys and the index of all.
    for other in (items.attempt, items.unit, items.lock):
        other._connection = job._get_connection()
    return items


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise pynamodb's errors as this package's, each with ``what`` was being done."""
    try:
        yield
    except PynamoDBException as error:
        raise translate(error.cause or error, what) from error


def job_key(job_id: str) -> tuple[str, str]:
    """The keys of a job's item."""
    return f"JOB#{job_id}", "JOB"


def lock_key(node: str) -> tuple[str, str]:
    """The keys of a node's lock."""
    return f"LOCK#{node}", "LOCK"


def attempt_key(attempt: AttemptRecord) -> tuple[str, str]:
    """The keys of an attempt's item."""
    shard = crc32(attempt.task_id.encode()) % SHARDS
    there = f"#{attempt.location}" if attempt.location else ""
    return shard_key(attempt.job_id, shard), f"{attempt.task_id}#{attempt.attempt_id}{there}"


def shard_key(job_id: str, shard: int) -> str:
    """The partition key of one shard of a job's attempts."""
    return f"ATTEMPTS#{job_id}#{shard}"


def unit_key(job_id: str, unit: int) -> tuple[str, str]:
    """The keys of a unit's item."""
    return f"UNITS#{job_id}#{unit % SHARDS}", str(unit)
