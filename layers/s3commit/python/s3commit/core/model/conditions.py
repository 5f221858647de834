"""What a job may ask of its own data before it is committed, judged from what the tasks counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from s3commit.core.model.errors import InvalidInputError

MAX_COLUMNS = 100
MAX_COLUMN_NAME = 255  # characters; a column becomes a key in the ledger
_COUNTS = {"minRows": "min_rows", "maxRows": "max_rows", "minFiles": "min_files"}
_NULLS = "maxNullFraction"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Bounds, each None or absent where the job sets none; both ends of a range are allowed.

    ``max_null_fraction`` maps a column to the largest share of nulls, from 0 to 1. A job without
    rows has no share of nulls, and meets it.
    """

    min_rows: int | None = None
    max_rows: int | None = None
    min_files: int | None = None
    max_null_fraction: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, attribute in _COUNTS.items():
            value = getattr(self, attribute)
            if value is not None and (type(value) is not int or value < 0):
                _refuse(f"{name} {value!r} is no count: give a whole number from 0")
        most = float("inf") if self.max_rows is None else self.max_rows
        if (self.min_rows or 0) > most:
            _refuse(f"minRows {self.min_rows} is more than maxRows {self.max_rows}")
        if len(self.max_null_fraction) > MAX_COLUMNS:
            _refuse(f"{_NULLS} names more than {MAX_COLUMNS} columns")
        for column, share in self.max_null_fraction.items():
            if not 1 <= len(column) <= MAX_COLUMN_NAME:
                _refuse(f"{_NULLS}: a column's name has 1 to {MAX_COLUMN_NAME} characters")
            if not _is_share(share):
                _refuse(f"{_NULLS}.{column[:80]} {share!r} is no share: give a number from 0 to 1")

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in _COUNTS.values()) or bool(
            self.max_null_fraction
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose nulls the tasks have to count."""
        return tuple(sorted(self.max_null_fraction))

    def failed(self, files: int, rows: int | None, nulls: Mapping[str, int | None]) -> str | None:
        """The first condition that the counts do not meet, with the figure; None if all are met.

        ``rows`` None and a column that ``nulls`` lacks mean that the writer did not count.
        """
        if self.min_files is not None and files < self.min_files:
            return f"minFiles is {self.min_files}, the job has {files}"
        if (self.min_rows, self.max_rows, len(self.max_null_fraction)) == (None, None, 0):
            return None
        if rows is None:
            return "the rows were not counted: give the writer each file's rows"
        if self.min_rows is not None and rows < self.min_rows:
            return f"minRows is {self.min_rows}, the job has {rows}"
        if self.max_rows is not None and rows > self.max_rows:
            return f"maxRows is {self.max_rows}, the job has {rows}"
        for column, share in sorted(self.max_null_fraction.items()) if rows else ():
            count = nulls.get(column)
            if count is None:
                return f"the nulls of column {column!r} were not counted"
            if count / rows > share:
                return (
                    f"{_NULLS}.{column} is {share:g}, the job has {count / rows:.4g}"
                    f" ({count} of {rows} rows)"
                )
        return None


def encode_conditions(conditions: Conditions) -> dict[str, Any]:
    """The conditions as ``job.json`` has them."""
    encoded: dict[str, Any] = {
        name: getattr(conditions, attribute)
        for name, attribute in _COUNTS.items()
        if getattr(conditions, attribute) is not None
    }
    if conditions.max_null_fraction:
        encoded[_NULLS] = dict(conditions.max_null_fraction)
    return encoded


def decode_conditions(value: Mapping[str, Any]) -> Conditions:
    """Read them. A condition that is not known is refused: ignoring it would break a promise.

    Raises `InvalidInputError` (``BAD_CONDITION``).
    """
    unknown = sorted(set(value) - set(_COUNTS) - {_NULLS})
    if unknown:
        known = ", ".join([*_COUNTS, f"{_NULLS}.<column>"])
        _refuse(f"condition {unknown[0][:80]!r} is not known; known are {known}")
    shares = value.get(_NULLS, {})
    if not isinstance(shares, dict) or not all(isinstance(column, str) for column in shares):
        _refuse(f"{_NULLS} must map columns to numbers")
    counts = {attribute: value.get(name) for name, attribute in _COUNTS.items()}
    return Conditions(**counts, max_null_fraction=shares)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _refuse(message: str) -> None:
    raise InvalidInputError(f"conditions: {message}", code="BAD_CONDITION")
