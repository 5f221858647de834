"""What lies at a destination, read as Spark reads a partitioned directory.

Partition values are text in directory names; their types are inferred by Spark's rules
(`PartitioningUtils.inferPartitionColumnValue`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from s3commit.core.formats.layout import is_hidden
from s3commit.core.formats.locations import relative_in_table
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.spark.partitions import DEFAULT_PARTITION, unescape
from s3commit.spark.zones import microseconds

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
# What Java's Double.parseDouble takes, without hexadecimal forms.
_DOUBLE = re.compile(
    r"\s*[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?))\s*", re.ASCII
)
# What Spark infers a time from; it takes more of it where the type is given.
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One data file; ``texts`` are its partition values, unescaped, None for null."""

    key: str
    length: int
    etag: str
    names: tuple[str, ...]
    texts: tuple[str | None, ...]


def data_files(
    destination: Destination,
    objects: Iterable[tuple[str, int, str]],
    locations: Mapping[str, str] | None = None,
) -> list[FoundFile]:
    """The data files among ``objects`` (key, length, etag), in their order.

    A file at one of the ``locations`` is of the partition that lies there. Hidden names and empty
    objects (directory markers) are no data. Raises `InvalidInputError`: ``BAD_LAYOUT`` if two files
    have other partition columns, ``BAD_LOCATION`` if one lies neither here nor at a location.
    """
    found: list[FoundFile] = []
    for key, length, etag in objects:
        relative = relative_in_table(locations or {}, destination, key)
        if not length or is_hidden(relative):
            continue
        pairs = [part.partition("=") for part in relative.split("/")[:-1] if "=" in part]
        names = tuple(unescape(name) for name, _, _ in pairs)
        texts = tuple(None if raw == DEFAULT_PARTITION else unescape(raw) for _, _, raw in pairs)
        file = FoundFile(key, length, etag, names, texts)
        if found and found[0].names != names:
            raise InvalidInputError(
                f"files at {destination.uri} have different partition columns: "
                f"{found[0].key} and {key}; read their directories one by one",
                code="BAD_LAYOUT",
            )
        found.append(file)
    return found


def partition_schema(files: list[FoundFile]) -> StructType:
    """The partition columns and their types, as Spark infers them from all values."""
    if not files:
        return StructType()
    fields = []
    for position, name in enumerate(files[0].names):
        texts = {file.texts[position] for file in files}
        fields.append(StructField(name, infer_type(texts), nullable=True))
    return StructType(fields)


def infer_type(texts: Iterable[str | None]) -> DataType:
    """The type that takes all of the texts; a column of nulls alone is void, as for Spark."""
    nothing: DataType = NullType()
    return reduce(_wider, map(_kind_of, texts), nothing)


def _kind_of(text: str | None) -> DataType:
    if text is None:
        return NullType()
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**31) <= number < 2**31:
            return IntegerType()
        if -(2**63) <= number < 2**63:
            return LongType()
    if _DECIMAL.fullmatch(text) and (digits := _whole_digits(Decimal(text))):
        return DecimalType(digits, 0)
    if _DOUBLE.fullmatch(text):
        return DoubleType()
    if _DATE.fullmatch(text):
        try:
            dt.date.fromisoformat(text)
        except ValueError:
            return StringType()
        return DateType()
    if _TIME.fullmatch(text):
        try:
            microseconds(text, None)
        except ValueError:
            return StringType()
        return TimestampType()
    return StringType()


def _whole_digits(number: Decimal) -> int | None:
    """The digits of a number written without decimals (``1e3`` too), if Spark's decimal has them.

    As in Java's BigDecimal it is the notation that counts: ``1.0`` has a decimal.
    """
    exponent = number.as_tuple().exponent
    digits = max(1, number.adjusted() + 1)
    return digits if isinstance(exponent, int) and exponent >= 0 and digits <= 38 else None


def _wider(one: DataType, other: DataType) -> DataType:
    if one == other or isinstance(other, NullType):
        return one
    if isinstance(one, NullType):
        return other
    kinds = {type(one), type(other)}
    if kinds == {IntegerType, LongType}:
        return LongType()
    if kinds == {IntegerType, DoubleType}:
        return DoubleType()
    if kinds == {DateType, TimestampType}:
        return TimestampType()
    if DecimalType in kinds and kinds <= {IntegerType, LongType, DecimalType}:
        return DecimalType(max(_digits(one), _digits(other)), 0)
    return StringType()


def _digits(kind: DataType) -> int:
    """The digits of an integral type, as Spark counts them when it widens to a decimal."""
    if isinstance(kind, DecimalType):
        return kind.precision
    return 20 if isinstance(kind, LongType) else 10


def typed(text: str | None, kind: DataType, name: str, zone: dt.tzinfo = dt.UTC) -> Any:
    """The value that ``text``, in the time zone ``zone``, stands for in a column of type ``kind``.

    Times come as microseconds since 1970. Raises `InvalidInputError` (code ``BAD_PARTITION``) if
    it stands for none.
    """
    if text is None or isinstance(kind, StringType):
        return text
    try:
        return _value(text, kind, zone)
    except (ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"partition value {name}={text[:80]!r} is no {kind.simpleString()}; read the column "
            "as a string",
            code="BAD_PARTITION",
        ) from error


def _value(text: str, kind: DataType, zone: dt.tzinfo) -> Any:
    if isinstance(kind, ByteType | ShortType | IntegerType | LongType):
        return int(text)
    if isinstance(kind, DoubleType | FloatType):
        return float(text.strip().rstrip("fFdD") if text.strip()[-1:] in "fFdD" else text)
    if isinstance(kind, DecimalType):
        return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale))
    if isinstance(kind, DateType):
        return dt.date.fromisoformat(text)
    if isinstance(kind, BooleanType) and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if isinstance(kind, TimestampType | TimestampNTZType):
        return microseconds(text, zone if isinstance(kind, TimestampType) else None)
    raise ValueError(text)
