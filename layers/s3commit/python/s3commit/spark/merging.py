"""Which types of one column readers can bring together: the rule of Spark's ``mergeSchema``.

Spark merges structs by their fields, and types that are equal but for nullability, the precision
of decimals or the ends of an interval (``StructType.merge``); an ``int`` and a ``bigint`` it does
not merge. tests/spark/test_merging.py compares this with what Spark itself does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    UserDefinedType,
)

# What a type can be written as without loss, and what Spark reads its files as from 4.0 on.
_WIDER: Final[Mapping[type[DataType], tuple[type[DataType], ...]]] = {
    ByteType: (ShortType, IntegerType, LongType, DoubleType),
    ShortType: (IntegerType, LongType, DoubleType),
    IntegerType: (LongType, DoubleType),
    FloatType: (DoubleType,),
    DateType: (TimestampNTZType,),
}
# Digits of a decimal that takes the type, by Spark's readers: files know no byte and no short.
_DIGITS: Final[Mapping[type[DataType], int]] = {
    ByteType: 10,
    ShortType: 10,
    IntegerType: 10,
    LongType: 20,
}


class UnlikeError(Exception):
    """Two types of one column that can't be brought together; ``path`` is the column's."""

    def __init__(self, path: str, ours: DataType, theirs: DataType) -> None:
        super().__init__(path)
        self.path = path
        self.ours = ours
        self.theirs = theirs


@dataclass(slots=True)
class Fitting:
    """Finds the types to write columns in, where files have other ones.

    ``widen``: a wider type on either side is taken; the columns that files have in a narrower one
    are then in ``outgrown``. ``guessed``: the files do not tell a time from one without a zone.
    """

    widen: bool = False
    guessed: bool = False
    outgrown: list[str] = field(default_factory=list)

    def fit(self, ours: DataType, theirs: DataType, path: str = "") -> DataType:
        """The type to write ``ours`` in, where files have ``theirs``. Raises `UnlikeError`.

        It is ``ours`` if readers can merge the two.
        """
        one, other = _plain(ours), _plain(theirs)
        if isinstance(one, StructType) and isinstance(other, StructType):
            return self._struct(one, other, path)
        if isinstance(one, ArrayType) and isinstance(other, ArrayType):
            kind = self.fit(one.elementType, other.elementType, f"{path}[]")
            return ArrayType(kind, one.containsNull)
        if isinstance(one, MapType) and isinstance(other, MapType):
            key = self.fit(one.keyType, other.keyType, f"{path}.key")
            value = self.fit(one.valueType, other.valueType, f"{path}.value")
            return MapType(key, value, one.valueContainsNull)
        if _alike(one, other, guessed=self.guessed):
            return ours
        if self.widen and is_wider(other, one):
            return theirs
        if self.widen and is_wider(one, other):
            self.outgrown.append(path)
            return ours
        raise UnlikeError(path, ours, theirs)

    def _struct(self, ours: StructType, theirs: StructType, path: str) -> StructType:
        there = {column.name.lower(): column.dataType for column in theirs}
        fields = []
        for column in ours:
            kind, other = column.dataType, there.get(column.name.lower())
            if other is not None:
                kind = self.fit(kind, other, f"{path}.{column.name}" if path else column.name)
            fields.append(StructField(column.name, kind, column.nullable, column.metadata))
        return StructType(fields)


def _plain(kind: DataType) -> DataType:
    return kind.sqlType() if isinstance(kind, UserDefinedType) else kind


def _alike(one: DataType, other: DataType, *, guessed: bool) -> bool:
    """Whether Spark's readers merge the two, which are neither structs, arrays nor maps."""
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        return one.scale == other.scale
    for kind in (StringType, DayTimeIntervalType):
        if isinstance(one, kind) and isinstance(other, kind):
            return True
    times = TimestampType | TimestampNTZType
    return one == other or (guessed and isinstance(one, times) and isinstance(other, times))


def is_wider(one: DataType, other: DataType) -> bool:
    """Whether each value of ``other`` is one of ``one`` as well."""
    if isinstance(other, NullType):
        return True
    if isinstance(one, DecimalType):
        digits = one.precision - one.scale
        if isinstance(other, DecimalType):
            return digits >= other.precision - other.scale and one.scale >= other.scale
        return digits >= _DIGITS.get(type(other), 39)
    return type(one) in _WIDER.get(type(other), ())
