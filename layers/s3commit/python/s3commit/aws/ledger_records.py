"""The ledger's items as the protocol's records, and back: an attribute for each field."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, Final

from pynamodb.attributes import MapAttribute

from s3commit.aws.ledger_items import (
    HEALING,
    AttemptItem,
    HealingItem,
    JobItem,
    LedgerItem,
    attempt_key,
    job_key,
    shelf_of,
)
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.record import AttemptRecord, Healing, JobRecord

_JOB: Final = Codec(JobRecord, "the job's item", spell=str)
_ATTEMPT: Final = Codec(AttemptRecord, "the attempt's item", spell=str)
_HEALING: Final = Codec(Healing, "the bucket's item", spell=str)


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


def _plain(item: LedgerItem) -> dict[str, Any]:
    """The values of an item's attributes, as JSON would have them."""
    return {
        name: value.as_dict() if isinstance(value, MapAttribute) else value  # type: ignore[no-untyped-call]
        for name, value in item.attribute_values.items()
    }


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
    """The record of an item."""
    destination = {"bucket": item.bucket, "prefix": item.prefix}
    return _JOB.read({**_plain(item), "destination": destination})


def healing_item(kind: type[HealingItem], bucket: str, healing: Healing) -> HealingItem:
    """The item of a bucket."""
    return kind(HEALING, bucket, **stored(healing))


def healing_record(item: HealingItem) -> Healing:
    """The record of an item."""
    return _HEALING.read(_plain(item))


def attempt_item(kind: type[AttemptItem], attempt: AttemptRecord, expires_at: int) -> AttemptItem:
    """The item of an attempt."""
    return kind(*attempt_key(attempt), expires_at=expires_at, **stored(attempt))


def attempt_record(item: AttemptItem) -> AttemptRecord:
    """The record of an item."""
    return _ATTEMPT.read(_plain(item))
