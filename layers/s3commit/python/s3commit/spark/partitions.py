"""Partition directories as Spark names them, and rows cut where the directory changes.

The names follow Spark's `ExternalCatalogUtils.getPartitionPathString`: the value cast to a string
(in the session's time zone), then escaped; a null or an empty string is a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.schema import running_release

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

# org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.charToEscape
_ESCAPED: Final = frozenset(map(chr, range(1, 0x20))) | frozenset("\"#%'*/:=?\\\x7f{[]^")
_OFFSET: Final = re.compile(r"(?:Z|UT|(?:GMT|UTC|UT)?([+-]\d\d:\d\d))")
_ESCAPES: Final = str.maketrans({char: f"%{ord(char):02X}" for char in _ESCAPED})


def escape(name: str) -> str:
    """``name`` with the characters that Spark and Hive escape in a path, as ``%XX``."""
    return name.translate(_ESCAPES)


def directory(names: tuple[str, ...], texts: tuple[str | None, ...]) -> str:
    """``dt=2026-11-21/hour=3/``: the directory of one combination of values."""
    return "".join(
        f"{escape(name)}={escape(text) if text else DEFAULT_PARTITION}/"
        for name, text in zip(names, texts, strict=True)
    )


def value_texts(values: pa.Array) -> list[str | None]:
    """Each value as Spark's cast to string gives it; null for null.

    Raises `InvalidInputError` for a date or time whose year has not four digits.
    """
    kind = values.type
    if types.is_timestamp(kind):
        # The batch carries the session's time zone, in which Spark names the directories.
        local = _local(values) if kind.tz else values
        return [_date_text(text, seconds=True) for text in local.cast(pa.string()).to_pylist()]
    if types.is_date(kind):
        return [_date_text(text) for text in values.cast(pa.string()).to_pylist()]
    if types.is_floating(kind):
        return [text and _java_text(text) for text in values.cast(pa.string()).to_pylist()]
    form = _plain_form(kind)
    return [None if value is None else form(value) for value in values.to_pylist()]


def _local(moments: pa.Array) -> pa.Array:
    """The wall clock's time in the zone of the array's type."""
    offset = _OFFSET.fullmatch(moments.type.tz)
    if offset:  # Java's GMT+02:00 is Arrow's +02:00
        moments = moments.cast(pa.timestamp(moments.type.unit, offset[1] or "UTC"))
    try:
        return pc.local_timestamp(moments)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"partitioning by a timestamp in the session's time zone {moments.type.tz}: {error}; "
            "set spark.sql.session.timeZone to UTC or to a region such as Europe/Berlin",
            code="BAD_PARTITION",
        ) from error


def _plain_form(kind: pa.DataType) -> Callable[..., str]:
    if types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if types.is_decimal(kind):
        return _decimal_text
    if types.is_binary(kind) or types.is_large_binary(kind):
        return lambda value: value.decode("utf-8", "replace")
    return str


def _decimal_text(value: Decimal) -> str:
    """As Spark's cast: up to 3.5 Java's BigDecimal.toString, whose rule is that of Python's str."""
    return str(value) if running_release() < (4, 0) else format(value, "f")


def _date_text(text: str | None, seconds: bool = False) -> str | None:
    if text is None:
        return None
    if not text[:4].isdigit() or text[4] != "-":
        raise InvalidInputError(
            f"a partition value lies outside the years 1 to 9999: {text}", code="BAD_PARTITION"
        )
    return text.rstrip("0").rstrip(".") if seconds and "." in text else text


def _java_text(text: str) -> str:
    """A shortest decimal form, written as Java's Double.toString does."""
    number = Decimal(text)
    sign = "-" if number.is_signed() else ""
    if number.is_nan():
        return "NaN"
    if number.is_infinite():
        return sign + "Infinity"
    if number == 0:
        return sign + "0.0"
    if Decimal("1e-3") <= abs(number) < Decimal("1e7"):
        plain = format(number.normalize(), "f")
        return plain if "." in plain else plain + ".0"
    digits = "".join(map(str, number.normalize().as_tuple().digits))
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


def runs(batch: pa.RecordBatch, names: tuple[str, ...]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of ``batch`` without the columns ``names``, cut where the directory changes.

    The rows are views of the batch, in its order; of a batch that is sorted by ``names`` each
    directory comes once (twice where a null and an empty string share it).
    """
    data = batch.drop_columns(list(names)) if names else batch
    if not batch.num_rows:
        return
    if not names:
        yield "", data
        return
    codes, directories = _codes(batch, names)
    cuts = pc.run_end_encode(codes)
    start = 0
    for code, end in zip(cuts.values.to_pylist(), cuts.run_ends.to_pylist(), strict=True):
        yield directories[code], data.slice(start, end - start)
        start = end


def _codes(batch: pa.RecordBatch, names: tuple[str, ...]) -> tuple[pa.Array, list[str]]:
    """A small integer for each row, and the directory that each integer stands for."""
    codes: pa.Array | None = None
    keys: list[tuple[str | None, ...]] = []
    for name in names:
        encoded = pc.dictionary_encode(batch.column(name), null_encoding="encode")
        texts = value_texts(encoded.dictionary)
        if codes is None:
            codes, keys = encoded.indices, [(text,) for text in texts]
            continue
        # Encoded again at once, so that the product can not outgrow 64 bits.
        width = pa.scalar(len(texts), pa.int64())
        both = pc.dictionary_encode(
            pc.add(pc.multiply(codes.cast(pa.int64()), width), encoded.indices.cast(pa.int64()))
        )
        codes = both.indices
        keys = [
            (*keys[pair // len(texts)], texts[pair % len(texts)])
            for pair in both.dictionary.to_pylist()
        ]
    assert codes is not None  # noqa: S101 - there is at least one partition column
    return codes, [directory(names, key) for key in keys]
