"""Rows as lines of text: what CSV and JSON have in common.

Texts are what Spark's own writers give, with two differences that lose less: a time has six digits
of a second where three do not hold it (Spark cuts microseconds off), and is told in UTC, ``Z``
(Spark: in the session's zone). Spark reads both by default.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.formats.sink import Sink

_GZIP: Final = 31  # zlib's wbits: deflate with gzip's header
# Texts take several times their rows while they are made.
_ROWS_AT_ONCE: Final = 8192


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class TextEncoder:
    """Writes lines, gzipped or with bzip2 as one stream. ``lines`` makes a text of each row."""

    def __init__(
        self, sink: Sink, codec: str, lines: Callable[[pa.RecordBatch], pa.StringArray]
    ) -> None:
        self._sink = sink
        self._lines = lines
        self._compressor: _Compressor | None = None
        if codec == "gzip":
            self._compressor = zlib.compressobj(wbits=_GZIP)
        elif codec == "bzip2":
            self._compressor = bz2.BZ2Compressor()

    def write(self, rows: pa.Table) -> None:
        """See `Encoder.write`."""
        for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
            ended = join(self._lines(batch), "\n")
            data = pc.binary_join(as_list(ended), "")[0].as_buffer().to_pybytes()
            self._put(self._compressor.compress(data) if self._compressor else data)

    def close(self) -> None:
        """See `Encoder.close`."""
        if self._compressor:
            self._put(self._compressor.flush())

    def _put(self, data: bytes) -> None:
        if data:
            self._sink.write(data)


def join(*texts: pa.Array | str) -> pa.StringArray:
    """The texts of each row behind one another; null where one of them is null."""
    return pc.binary_join_element_wise(*texts, "")


def as_list(texts: pa.StringArray) -> pa.ListArray:
    """One list of all ``texts``."""
    return pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)


def plain_texts(values: pa.Array) -> pa.StringArray:
    """The text of each number, boolean, date, time or string; null for null.

    Raises `InvalidInputError` (``BAD_VALUE``) for a date or time outside the years 0 to 9999.
    """
    kind = values.type
    if types.is_timestamp(kind):
        return _moments(values)
    texts = values.cast(pa.string())
    if types.is_date(kind):
        _check_years(texts)
    if types.is_floating(kind):
        # As Java spells them; and without the point, JSON's -0 would be the integer 0.
        for ours, javas in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
            texts = pc.if_else(pc.equal(texts, ours), javas, texts)
        texts = pc.if_else(pc.equal(texts, "-0"), "-0.0", texts)
    return texts


def _moments(values: pa.Array) -> pa.StringArray:
    zone = "Z" if values.type.tz else ""
    # Without its zone a moment is told in UTC.
    utc = values.cast(pa.timestamp("us", "UTC")) if zone else values
    texts = pc.strftime(utc.cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    _check_years(texts)
    return join(pc.replace_substring_regex(texts, r"(\.\d{3})000$", r"\1"), zone)


def _check_years(texts: pa.StringArray) -> None:
    wrong = texts.filter(pc.invert(pc.match_substring_regex(texts, r"^\d{4}-")))
    if len(wrong):
        raise InvalidInputError(
            f"a date or time lies outside the years 0 to 9999: {wrong[0]}; files of text can not"
            " carry it, write parquet",
            code="BAD_VALUE",
        )
