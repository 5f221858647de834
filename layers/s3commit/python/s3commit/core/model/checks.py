"""Checks of columns: a job's bounds, the figures of its manifests, and whether these meet them."""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from operator import gt, lt
from typing import Annotated, Any, Final

from s3commit.core.model.amounts import many
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.fields import SPARSE, Text

MAX_COLUMN_NAME: Final = 255  # characters
MAX_CHECKS: Final = 20
MAX_BOUND: Final = 256  # characters
# A text that is cut here compares with each bound as the whole one does.
MAX_FIGURE: Final = MAX_BOUND + 1

Column = Annotated[str, Text(MAX_COLUMN_NAME, least=1)]
_Bound = Annotated[str | None, Text(MAX_BOUND), SPARSE]
_Figure = Annotated[str | None, Text(MAX_FIGURE), SPARSE]
_NUMBER: Final = re.compile(r"-?([0-9]{1,80}(\.[0-9]{1,80})?(e[+-]?[0-9]{1,3})?|inf)")


class Kind(StrEnum):
    """How the values of a column compare; documents have them as texts."""

    NUMBER = "number"  # also of a boolean column: 0 or 1
    TEXT = "text"  # by code points; a date or time is one in the form of ISO 8601

    def read(self, text: str) -> Any:
        """The value that compares. Raises `ValueError`."""
        if self is Kind.TEXT:
            return text
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"{text[:80]!r} is not of the kind {self}")
        return Decimal(text)


@dataclass(frozen=True, slots=True)
class Check:
    """Bounds of a column, each None where the job sets none; a value may be equal to them.

    ``kind`` is None where only nulls are counted. Raises `InvalidInputError` (``BAD_CONDITION``).
    """

    column: Column
    kind: Annotated[Kind | None, SPARSE] = None
    min: _Bound = None
    max: _Bound = None
    nulls: Annotated[int | None, SPARSE] = None

    def __post_init__(self) -> None:
        ends = [end for end in (self.min, self.max) if end is not None]
        why = "gives no bound, or no kind of value for it"
        if bool(ends) is (self.kind is not None) and (ends or self.nulls is not None):
            why = f"at least {self.min} and at most {self.max} can't be"
            try:
                values = [self.kind.read(end) for end in ends] if self.kind else []
                if values == sorted(values):
                    return
            except ValueError as error:
                why = str(error)
        raise InvalidInputError(f"check of column {self.column!r}: {why}", code="BAD_CONDITION")


@dataclass(frozen=True, slots=True)
class Figures:
    """The facts of files about a checked column; None if a part of them does not say it.

    There is neither a ``least`` nor a ``greatest`` value if all is null; of floats that are all NaN
    or null these are ``inf`` and ``-inf``.
    """

    column: Column
    least: _Figure = None
    greatest: _Figure = None
    nulls: int | None = None


@dataclass(slots=True)
class CheckedColumn:
    """A check, and the facts about its column so far, each end beside its text."""

    check: Check
    nulls: int | None = 0
    is_known: bool = True
    least: tuple[Any, str] | None = None
    greatest: tuple[Any, str] | None = None

    def add(self, found: Figures, rows: int | None) -> None:
        """Count in files, which have ``rows``.

        Raises `JobRefusedError` (``BAD_FIELD``) for a value that is not of the check's kind.
        """
        known = self.nulls is not None and found.nulls is not None
        self.nulls = (self.nulls or 0) + (found.nulls or 0) if known else None
        kind, ends = self.check.kind, [found.least, found.greatest]
        if kind is None:
            return
        if None in ends and (found.nulls is None or found.nulls != rows):
            self.is_known = False
        try:
            least, greatest = (None if end is None else (kind.read(end), end) for end in ends)
        except ValueError as error:
            raise JobRefusedError(f"column {found.column!r}: {error}", code="BAD_FIELD") from None
        self.least = min(filter(None, (self.least, least)), default=None)
        self.greatest = max(filter(None, (self.greatest, greatest)), default=None)

    @property
    def figures(self) -> Figures:
        """The facts, for a manifest."""
        least, greatest = (
            end[1] if end and self.is_known else None for end in (self.least, self.greatest)
        )
        return Figures(self.check.column, least, greatest, self.nulls)

    def failed(self) -> str | None:
        """The first bound that is not met, with the value found; None if all are.

        A column without a value has no least and no greatest one, and meets their bounds.
        """
        check, name = self.check, f"column {self.check.column[:80]!r}"
        if not self.is_known or (check.nulls is not None and self.nulls is None):
            return f"{name} can't be checked: the files do not state its figures"
        kind, shown = check.kind, (lambda one: repr(one[:80])) if check.kind is Kind.TEXT else str
        for end, bound, fails, words in (
            (self.least, check.min, lt, "the least value {} is below the bound {}"),
            (self.greatest, check.max, gt, "the greatest value {} is above the bound {}"),
        ):
            if kind and end and bound is not None and fails(end[0], kind.read(bound)):
                return f"{name}: {words.format(shown(end[1]), shown(bound))}"
        if check.nulls is not None and (self.nulls or 0) > check.nulls:
            return f"{name} has {many(self.nulls or 0, 'null')}, more than the bound {check.nulls}"
        return None
