"""The ledger's items in DynamoDB, and the records of the protocol as items.

An item has an attribute for each field of its record. One table has nine kinds of item.

| item | pk | sk |
|---|---|---|
| job | ``JOB#<job id>`` | ``<the rest of its ref>`` |
| attempt | ``ATTEMPTS#<ref>#<shard>`` | ``<task id>#<attempt id>`` |
| healing | ``HEALING`` | ``<bucket>`` |
| lock | ``LOCKS#<bucket>/<first element>/`` | ``<node>`` |
| append under way | ``APPENDS#<bucket>/<first element>/`` | ``<node>/<ref>`` |
| ended append | ``ENDED#<bucket>/<first element>/#<ten minutes>`` | ``<node>/<ref>`` |
| key | ``KEYS#<bucket>/<prefix>`` | ``<digest of the key>`` |
| turn requested | ``ASKED#<bucket>/<first element>/`` | ``<requested at>#<ref>`` |
| turn done | ``DONE#<bucket>/<first element>/#<day of the request>`` | ``<requested at>#<ref>`` |

Attempts are spread over shards, by task, because a partition takes about 1,000 writes a second; the
index ``by-state`` (``shelf``, ``updated_at``) is, by job, for the same reason. It holds job items
only: no other item has its keys, nor has a job's whose documents were deleted.

A node ends with a slash, and no path has two in a row (`s3commit.core.formats.layout.bad_element`):
so ``node/`` finds the appends at the node itself, and ``node`` those below it as well. DynamoDB may
keep an item for days when its time to live is over, so ended appends are in a partition for each
ten minutes, and old ones are never read. ``expires_at`` is the table's TTL attribute, in seconds
since 1970.

No `VersionAttribute` anywhere: generation and version are the protocol's own and are written out.
"""

from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any, TypeVar
from zlib import crc32

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
)
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model

from s3commit.aws import env
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.locks import ItemKind, KeyHolder, Turn, ten_minutes
from s3commit.core.model.record import AttemptRecord, Healing, JobRecord
from s3commit.core.model.states import JobState

SHARDS = 10
SHELVES = 16  # of jobs in one state, in the index
HEALING = "HEALING"  # the partition key of what is known of the buckets

CONNECT_TIMEOUT = 3  # seconds
READ_TIMEOUT = 10  # seconds
RETRIES = 6  # after the first attempt of a request; botocore's standard mode
MAX_POOL_CONNECTIONS = 10

AnyItem = TypeVar("AnyItem", bound="LedgerItem")
AnyRecord = TypeVar("AnyRecord")
_CODECS: dict[Any, Codec[Any]] = {
    kind: Codec(kind, f"{kind.__name__} in the ledger", spell=str)
    for kind in (JobRecord, AttemptRecord, KeyHolder, Healing)
}


class ByState(GlobalSecondaryIndex["JobItem"]):  # type: ignore[no-untyped-call]
    """Jobs by state, in the order of their last update."""

    class Meta:
        """pynamodb's settings."""

        index_name = env.BY_STATE
        projection = AllProjection()

    shelf = UnicodeAttribute(hash_key=True)
    updated_at = UnicodeAttribute(range_key=True)


class LedgerItem(Model):
    """The attributes of every item."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    expires_at = NumberAttribute(null=True)


class JobItem(LedgerItem):
    """`JobRecord`; ``shelf``, its place in the index; ``token``: which call wrote it last."""

    by_state = ByState()
    job_id = UnicodeAttribute()
    bucket = UnicodeAttribute()
    prefix = UnicodeAttribute()
    directory = UnicodeAttribute()
    state = UnicodeAttribute()
    shelf = UnicodeAttribute(null=True)
    generation = NumberAttribute()
    created_at = UnicodeAttribute()
    updated_at = UnicodeAttribute()
    conflict = UnicodeAttribute()
    scope = UnicodeAttribute()
    partition_by: ListAttribute[str] = ListAttribute(of=UnicodeAttribute)  # type: ignore[arg-type]
    idempotency_key = UnicodeAttribute(null=True)
    job_sha256 = UnicodeAttribute(null=True)
    locks: ListAttribute[str] = ListAttribute(of=UnicodeAttribute)  # type: ignore[arg-type]
    locked_at = UnicodeAttribute()
    waits: MapAttribute[str, Any] = MapAttribute(null=True)  # type: ignore[no-untyped-call]
    plan: MapAttribute[str, Any] = MapAttribute(null=True)  # type: ignore[no-untyped-call]
    replaced: MapAttribute[str, Any] = MapAttribute(null=True)  # type: ignore[no-untyped-call]
    failure: MapAttribute[str, Any] = MapAttribute(null=True)  # type: ignore[no-untyped-call]
    decided_at = UnicodeAttribute(null=True)
    finished_at = UnicodeAttribute(null=True)
    execution = UnicodeAttribute()
    opened_at = UnicodeAttribute()
    requested_at = UnicodeAttribute()
    requested_by = UnicodeAttribute()
    undoes = UnicodeAttribute()
    note = UnicodeAttribute()
    labels: ListAttribute[str] = ListAttribute(of=UnicodeAttribute)  # type: ignore[arg-type]
    token = UnicodeAttribute()


class AttemptItem(LedgerItem):
    """`AttemptRecord`."""

    ref = UnicodeAttribute()
    task_id = UnicodeAttribute()
    attempt_id = UnicodeAttribute()
    manifest = UnicodeAttribute()
    sha256 = UnicodeAttribute()
    files = NumberAttribute()
    bytes = NumberAttribute()
    rows = NumberAttribute(null=True)


class LockItem(LedgerItem):
    """`Lock`; the sort key is the node."""

    ref = UnicodeAttribute()


class KeyItem(LedgerItem):
    """`KeyHolder`."""

    job_id = UnicodeAttribute()
    files = NumberAttribute()
    rows = NumberAttribute(null=True)
    directories = UnicodeAttribute(null=True)


class TurnItem(LedgerItem):
    """`Turn`."""

    node = UnicodeAttribute()


class HealingItem(LedgerItem):
    """`Healing`; the sort key is the bucket."""

    table = UnicodeAttribute()
    since = UnicodeAttribute()
    until = UnicodeAttribute()
    whole = BooleanAttribute()
    unread: ListAttribute[str] = ListAttribute(of=UnicodeAttribute, null=True)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Items:
    """The kinds of item, bound to one table and sharing one connection."""

    connection: Any  # pynamodb's own, one for all: no public name leads to it
    job: type[JobItem]
    attempt: type[AttemptItem]
    lock: type[LockItem]
    append: type[LedgerItem]  # `Append`; its keys say all of it
    key: type[KeyItem]
    turn: type[TurnItem]
    healing: type[HealingItem]


def bind(table: str) -> Items:
    """The items of one table, by the standard AWS configuration."""
    settings = {
        "table_name": table,
        "connect_timeout_seconds": CONNECT_TIMEOUT,
        "read_timeout_seconds": READ_TIMEOUT,
        "max_retry_attempts": RETRIES,
        "max_pool_connections": MAX_POOL_CONNECTIONS,
    }

    def bound(kind: Any, connection: Any = None) -> Any:
        # Meta belongs to a class, the table's name to the running process: hence a class for each
        own = {"Meta": type("Meta", (), dict(settings)), "_connection": connection}
        return type(kind.__name__, (kind,), own)

    job = bound(JobItem)
    # One connection, so one client and one pool: the job's knows the keys and the index of all.
    shared = job._get_connection()
    others = (AttemptItem, LockItem, LedgerItem, KeyItem, TurnItem, HealingItem)
    return Items(shared, job, *(bound(kind, shared) for kind in others))


def job_key(ref: str) -> tuple[str, str]:
    """The keys of a job's item: those of one id are side by side."""
    job_id, _, where = ref.rpartition("-")
    return id_key(job_id), where


def id_key(job_id: str) -> str:
    """The partition key of all jobs with the id."""
    return f"JOB#{job_id}"


def shelf_of(ref: str, state: JobState) -> str:
    """Where the index has a job."""
    return shelf(state, crc32(ref.encode()) % SHELVES)


def shelf(state: JobState, number: int) -> str:
    """One of the index's partitions of jobs in a state."""
    return f"{state.value}#{number:02d}"


def lock_key(node: str) -> tuple[str, str]:
    """The keys of the lock of a node."""
    return f"LOCKS#{_top(node)}", node


def append_key(node: str, ref: str) -> tuple[str, str]:
    """The keys of an append; without a ref, the beginning of those of all jobs at the node."""
    return f"APPENDS#{_top(node)}", f"{node}/{ref}"


def ended_key(node: str, ref: str, ended: str) -> tuple[str, str]:
    """The same, of an append that has ended at that moment (RFC 3339, UTC)."""
    return f"ENDED#{_top(node)}#{ten_minutes(ended)}", f"{node}/{ref}"


def idempotency_item_key(node: str, digest: str) -> tuple[str, str]:
    """The keys of an idempotency key at a destination."""
    return f"KEYS#{node}", digest


def turn_key(kind: ItemKind, turn: Turn) -> tuple[str, str]:
    """The keys of a turn."""
    day = f"#{turn.requested_at[:10]}" if kind is ItemKind.DONE else ""
    return f"{kind}#{_top(turn.node)}{day}", f"{turn.requested_at}#{turn.ref}"


def _top(node: str) -> str:
    """The highest node above it: all that may meet it are there."""
    bucket, first, _ = node.split("/", 2)
    return f"{bucket}/{first}/"


def attempt_key(attempt: AttemptRecord) -> tuple[str, str]:
    """The keys of an attempt's item."""
    shard = crc32(attempt.task_id.encode()) % SHARDS
    return shard_key(attempt.ref, shard), f"{attempt.task_id}#{attempt.attempt_id}"


def shard_key(ref: str, shard: int) -> str:
    """The partition key of one shard of a job's attempts."""
    return f"ATTEMPTS#{ref}#{shard}"


def stored(value: Any) -> Any:
    """A value of a record as DynamoDB has it; fields that are None have no attribute."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return list(value)
    if not is_dataclass(value):
        return value
    found = {field.name: stored(getattr(value, field.name)) for field in fields(value)}
    return {name: one for name, one in found.items() if one is not None}


def record_of(kind: type[AnyRecord], item: LedgerItem, **more: Any) -> AnyRecord:
    """The record of an item, whose attributes are read as JSON; ``more`` are fields of its own."""
    plain = {
        name: value.as_dict() if isinstance(value, MapAttribute) else value  # type: ignore[no-untyped-call]
        for name, value in item.attribute_values.items()
    }
    codec: Codec[AnyRecord] = _CODECS[kind]
    return codec.read({**plain, **more})


def job_item(kind: type[JobItem], record: JobRecord, token: str) -> JobItem:
    """The item of a new record."""
    attributes = stored(record)
    attributes |= attributes.pop("destination")
    return kind(
        *job_key(record.ref),
        directory=JobDirectory.of(record).prefix,
        shelf=shelf_of(record.ref, record.state),
        token=token,
        **attributes,
    )


def job_record(item: JobItem) -> JobRecord:
    """The record of a job's item."""
    return record_of(JobRecord, item, destination={"bucket": item.bucket, "prefix": item.prefix})
