"""What a filter of Spark's rules out unread: directories by their values, row groups by their ends.

Spark filters the rows all the same, so that whatever is in doubt may be let through. In doubt are
all columns whose values Python does not compare as Spark does (floating point: NaN; times;
collations), and all filters that are not named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

_COMPARED: Final = (ByteType, ShortType, IntegerType, LongType, DateType, DecimalType)


@dataclass(frozen=True, slots=True)
class Values:
    """What a column may hold in a file or a row group: nulls, and values from least to most.

    ``least`` and ``most`` None: there are no values but nulls.
    """

    least: Any
    most: Any
    nulls: bool

    @classmethod
    def only(cls, value: Any) -> Values:
        """One value, which may be null."""
        return cls(value, value, nulls=value is None)


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter, of one column: its name in lower case, and what Spark calls the comparison."""

    column: str
    name: str
    value: Any = None


def conditions_of(filters: Iterable[Any], schema: StructType) -> list[Condition]:
    """Those of Spark's filters that may rule something out."""
    kinds = {column.name.lower(): column.dataType for column in schema}
    found = []
    for one in filters:
        path: tuple[str, ...] = getattr(one, "attribute", ())
        name = type(one).__name__
        kind = kinds.get(path[0].lower()) if len(path) == 1 else None
        if name in _TESTS and kind is not None and is_compared(kind):
            found.append(Condition(path[0].lower(), name, getattr(one, "value", None)))
    return found


def is_compared(kind: DataType) -> bool:
    """Whether Python compares values of this type as Spark does."""
    return isinstance(kind, _COMPARED) or (
        isinstance(kind, StringType) and kind.simpleString() == "string"
    )


def may_hold(conditions: Iterable[Condition], values: Mapping[str, Values]) -> bool:
    """Whether there may be a row for which all conditions are true; by columns in lower case."""
    return all(_may_be_true(one, values[one.column]) for one in conditions if one.column in values)


def _may_be_true(one: Condition, values: Values) -> bool:
    if one.name == "IsNull":
        return values.nulls
    if one.name == "EqualNullSafe" and one.value is None:
        return values.nulls
    if values.least is None or values.most is None:
        return False  # a comparison with null is true of no row
    try:
        return _TESTS[one.name](values, one.value)
    except TypeError:  # of two types that Python does not compare
        return True


def _is_equal(values: Values, value: Any) -> bool:
    return value is not None and bool(values.least <= value <= values.most)


_TESTS: Final[Mapping[str, Callable[[Values, Any], bool]]] = {
    "EqualTo": _is_equal,
    "EqualNullSafe": _is_equal,
    "GreaterThan": lambda values, value: values.most > value,
    "GreaterThanOrEqual": lambda values, value: values.most >= value,
    "LessThan": lambda values, value: values.least < value,
    "LessThanOrEqual": lambda values, value: values.least <= value,
    "In": lambda values, several: any(_is_equal(values, one) for one in several),
    "IsNull": lambda values, _: values.nulls,
    "IsNotNull": lambda *_: True,
    "StringStartsWith": lambda values, start: (
        values.least[: len(start)] <= start <= values.most[: len(start)]
    ),
}
