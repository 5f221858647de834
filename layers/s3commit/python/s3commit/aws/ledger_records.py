"""The ledger's items as the protocol's records, and back: an attribute for each field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from s3commit.aws.ledger_items import (
    AttemptItem,
    ClaimItem,
    JobItem,
    attempt_key,
    claim_key,
    job_key,
    shelf_of,
)
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import Conflict, Destination, Failure, Scope
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.record import (
    AttemptRecord,
    JobRecord,
    PlanFacts,
    ReplacedFacts,
    Stage,
    Turn,
)
from s3commit.core.model.states import JobState

R = TypeVar("R")

# How a field is read whose value is neither a text nor a number in the record.
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "state": JobState,
    "conflict": Conflict,
    "scope": Scope,
    "stage": Stage,
    "partition_by": tuple,
    "locks": tuple,
    "turn": lambda found: _record(Turn, found.as_dict()),
    "plan": lambda found: _record(PlanFacts, found.as_dict()),
    "replaced": lambda found: _record(ReplacedFacts, found.as_dict()),
    "failure": lambda found: _record(Failure, found.as_dict()),
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


def _record(kind: type[R], attributes: Mapping[str, Any]) -> R:
    """The record of that kind; a field without an attribute has its default, or is None."""
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        value = attributes.get(field.name)
        if value is not None and field.name in _READ:
            value = _READ[field.name](value)
        if value is not None or field.default is field.default_factory is MISSING:
            values[field.name] = value
    return kind(**values)


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
    destination = Destination(item.bucket, item.prefix)
    return _record(JobRecord, item.attribute_values | {"destination": destination})


def claim_item(kind: type[ClaimItem], claimed: Claimed, expires_at: int) -> ClaimItem:
    """The item of a claim."""
    pk, sk = claim_key(claimed.ref, claimed.claim)
    return kind(
        pk,
        sk,
        expires_at=expires_at,
        waits=claimed.waits or None,
        asked=(claimed.waits and claimed.asked) or None,
        epoch=claimed.epoch,
    )


def claim_record(mode: LockMode, item: ClaimItem) -> Claimed:
    """The record of an item."""
    node, _, ref = item.sk.rpartition("/")
    epoch = int(item.epoch or 0)
    return Claimed(Claim(node, mode), ref, bool(item.waits), item.asked or "", epoch)


def attempt_item(kind: type[AttemptItem], attempt: AttemptRecord, expires_at: int) -> AttemptItem:
    """The item of an attempt."""
    return kind(*attempt_key(attempt), expires_at=expires_at, **stored(attempt))


def attempt_record(item: AttemptItem) -> AttemptRecord:
    """The record of an item."""
    return _record(AttemptRecord, item.attribute_values)
