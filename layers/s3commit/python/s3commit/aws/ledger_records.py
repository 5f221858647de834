"""The ledger's items as the protocol's records, and back: an attribute for each field."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, TypeVar

from pynamodb.attributes import MapAttribute

from s3commit.aws.ledger_items import (
    AttemptItem,
    JobItem,
    LedgerItem,
    attempt_key,
    job_key,
    shelf_of,
)
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.locks import KeyHolder
from s3commit.core.model.record import AttemptRecord, Healing, JobRecord

R = TypeVar("R")
_CODECS: dict[Any, Codec[Any]] = {
    kind: Codec(kind, f"{kind.__name__} in the ledger", spell=str)
    for kind in (JobRecord, AttemptRecord, KeyHolder, Healing)
}


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


def record_of(kind: type[R], item: LedgerItem, **more: Any) -> R:
    """The record of an item, whose attributes are read as JSON; ``more`` are fields of its own."""
    plain = {
        name: value.as_dict() if isinstance(value, MapAttribute) else value  # type: ignore[no-untyped-call]
        for name, value in item.attribute_values.items()
    }
    codec: Codec[R] = _CODECS[kind]
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


def attempt_item(kind: type[AttemptItem], attempt: AttemptRecord, expires_at: int) -> AttemptItem:
    """The item of an attempt."""
    return kind(*attempt_key(attempt), expires_at=expires_at, **stored(attempt))
