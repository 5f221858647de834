"""The ledger's records as DynamoDB's items, and which of them DynamoDB refuses by size.

`s3commit.aws.ledger_records` makes the real items; tests/aws compares the two. Sources:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html (items, keys),
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html (how
sizes are counted; that of a number is approximate).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.locks import Item as Beside
from s3commit.core.model.locks import Kind, destination_node
from s3commit.core.model.record import AttemptRecord, JobRecord
from s3commit.core.model.states import ENDED

MAX_ITEM_BYTES = 400 * 1024
MAX_PARTITION_KEY_BYTES = 2048
MAX_SORT_KEY_BYTES = 1024

_TOKEN = "0" * 32  # every write leaves one
_EXPIRES_AT = 1_795_305_599  # a time to live, of ten digits for two centuries yet

Item = dict[str, Any]


def job_item(record: JobRecord) -> Item:
    """The item of a job's record."""
    fields = _fields(record) | _fields(record.destination)
    del fields["destination"]
    fields["directory"] = JobDirectory.of(record).prefix
    fields["shelf"] = f"{record.state}#{crc32(record.ref.encode()) % 16:02d}"
    for name in ("waits", "plan", "replaced", "failure"):
        if fields[name] is not None:
            fields[name] = _stored(_fields(fields[name]))
    if record.state in ENDED:
        fields["expires_at"] = _EXPIRES_AT
    where = record.ref.rpartition("-")[2]
    return _item(f"JOB#{record.job_id}", where, token=_TOKEN, **fields)


def attempt_item(attempt: AttemptRecord) -> Item:
    """The item of an attempt's record."""
    shard = crc32(attempt.task_id.encode()) % 10
    return _item(
        f"ATTEMPTS#{attempt.ref}#{shard}",
        f"{attempt.task_id}#{attempt.attempt_id}",
        expires_at=_EXPIRES_AT,
        **_fields(attempt),
    )


def beside_item(record: JobRecord, one: Beside) -> Item:
    """An item that stands beside the record."""
    node = destination_node(record.destination)
    top = "/".join(node.split("/", 2)[:2]) + "/"
    if one.kind is Kind.LOCK:
        return _item(f"LOCKS#{top}", one.name, ref=record.ref)
    if one.kind is Kind.APPEND:
        return _item(f"APPENDS#{top}", f"{node}/{record.ref}")
    if one.kind is Kind.ENDED:
        ended = (record.finished_at or record.updated_at)[: len("2026-11-21T22:0")]
        return _item(f"ENDED#{top}#{ended}", f"{node}/{record.ref}", expires_at=_EXPIRES_AT)
    plan = record.plan
    files, rows = (plan.files, plan.rows) if plan else (0, None)
    return _item(f"KEYS#{node}", one.name, job_id=record.job_id, files=files, rows=rows)


def item_size(item: Mapping[str, Any]) -> int:
    """How many bytes DynamoDB counts for the item."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def check_item(item: Mapping[str, Any]) -> None:
    """Raise `InvalidInputError` for an item or a key larger than DynamoDB takes.

    DynamoDB calls both a ValidationException.
    """
    for key, most in (("pk", MAX_PARTITION_KEY_BYTES), ("sk", MAX_SORT_KEY_BYTES)):
        if not 1 <= len(item[key].encode()) <= most:
            raise InvalidInputError(f"{item['pk'][:200]}: {key} has more than {most} bytes")
    if 4 * len(repr(item)) <= MAX_ITEM_BYTES:
        return  # nearly all: a character has four bytes at most, and to count takes its time
    size = item_size(item)
    if size > MAX_ITEM_BYTES:
        raise InvalidInputError(
            f"{item['pk'][:200]}: the item has {size} bytes; at most {MAX_ITEM_BYTES} are taken"
        )


def _item(pk: str, sk: str, **fields: Any) -> Item:
    return {"pk": pk, "sk": sk, **_stored(fields)}


def _fields(record: Any) -> Item:
    """The fields of a record, as they are: `dataclasses.asdict` copies each, and takes its time."""
    return {name: getattr(record, name) for name in record.__slots__}


def _stored(fields: Mapping[str, Any]) -> Item:
    """The fields without those that are None: an item has no attribute for them."""
    return {name: value for name, value in fields.items() if value is not None}


def _size(value: Any) -> int:
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, int):
        return 1 + -(-len(str(abs(value)).strip("0")) // 2)
    if isinstance(value, Mapping):
        return 3 + sum(1 + len(name.encode()) + _size(one) for name, one in value.items())
    return 3 + sum(1 + _size(one) for one in value)
