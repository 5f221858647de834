"""What fsck says of a file, a job or a document, and how a decision table comes to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Generic, TypeVar

T = TypeVar("T")


class Level(StrEnum):
    """How much a verdict matters: a finding makes the exit code 1, a note is only told."""

    FINE = "fine"
    NOTE = "note"
    FINDING = "finding"


class Action(StrEnum):
    """A repair; each is conditional, and repeating it does no harm."""

    ABORT_UPLOAD = "abort-upload"
    DELETE_OBJECT = "delete-object"
    START_EXECUTION = "start-execution"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Its name, what is true, what is to be done about it, and what a repair does of that."""

    name: str
    level: Level
    means: str
    do: str
    action: Action | None = None


def finding(name: str, means: str, do: str, action: Action | None = None) -> Verdict:
    """Something that needs a repair, by fsck or by a person."""
    return Verdict(name, Level.FINDING, means, do, action)


def note(name: str, means: str, do: str) -> Verdict:
    """Something that is worth knowing."""
    return Verdict(name, Level.NOTE, means, do)


def fine(name: str, means: str, do: str = "Nothing") -> Verdict:
    """Nothing to be said of."""
    return Verdict(name, Level.FINE, means, do)


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """One row of a decision table: the values of each column that it is about, and its answer."""

    verdict: Verdict
    values: tuple[frozenset[StrEnum], ...]
    answer: T

    def fits(self, combination: tuple[StrEnum, ...]) -> bool:
        """Whether the row is about the combination."""
        return all(one in values for one, values in zip(combination, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class DecisionTable(Generic[T]):
    """Rows over columns, each with all of its values. The first row that fits counts."""

    columns: Mapping[str, tuple[StrEnum, ...]]
    rows: tuple[Row[T], ...]

    def row(self, *combination: StrEnum) -> Row[T]:
        """The row that decides the combination."""
        return next(row for row in self.rows if row.fits(combination))

    def combinations(self) -> list[tuple[StrEnum, ...]]:
        """All combinations, in the order of the values."""
        return list(product(*self.columns.values()))
