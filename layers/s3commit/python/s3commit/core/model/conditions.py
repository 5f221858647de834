"""What a job may ask of its own data before it is committed, judged from what the tasks counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3commit.core.model.errors import InvalidInputError

_COUNTS = {"minRows": "min_rows", "maxRows": "max_rows", "minFiles": "min_files"}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Bounds, each None where the job sets none; both ends of a range are allowed."""

    min_rows: int | None = None
    max_rows: int | None = None
    min_files: int | None = None

    def __post_init__(self) -> None:
        for name, attribute in _COUNTS.items():
            value = getattr(self, attribute)
            if value is not None and (type(value) is not int or value < 0):
                _refuse(f"{name} {value!r} is no count: give a whole number from 0")
        most = float("inf") if self.max_rows is None else self.max_rows
        if (self.min_rows or 0) > most:
            _refuse(f"minRows {self.min_rows} is more than maxRows {self.max_rows}")

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in _COUNTS.values())

    def failed(self, files: int, rows: int | None) -> str | None:
        """The first condition that the counts do not meet, with the figure; None if all are met.

        ``rows`` None means that the writer did not count.
        """
        if self.min_files is not None and files < self.min_files:
            return f"minFiles is {self.min_files}, the job has {files}"
        if self.min_rows is None and self.max_rows is None:
            return None
        if rows is None:
            return "the rows were not counted: give the writer each file's rows"
        if self.min_rows is not None and rows < self.min_rows:
            return f"minRows is {self.min_rows}, the job has {rows}"
        if self.max_rows is not None and rows > self.max_rows:
            return f"maxRows is {self.max_rows}, the job has {rows}"
        return None


def encode_conditions(conditions: Conditions) -> dict[str, Any]:
    """The conditions as ``job.json`` has them."""
    return {
        name: getattr(conditions, attribute)
        for name, attribute in _COUNTS.items()
        if getattr(conditions, attribute) is not None
    }


def decode_conditions(value: Mapping[str, Any]) -> Conditions:
    """Read them. A condition that is not known is refused: ignoring it would break a promise.

    Raises `InvalidInputError` (``BAD_CONDITION``).
    """
    unknown = sorted(set(value) - set(_COUNTS))
    if unknown:
        _refuse(f"condition {unknown[0][:80]!r} is not known; known are {', '.join(_COUNTS)}")
    return Conditions(**{attribute: value.get(name) for name, attribute in _COUNTS.items()})


def _refuse(message: str) -> None:
    raise InvalidInputError(f"conditions: {message}", code="BAD_CONDITION")
