"""Rows as ORC."""

from __future__ import annotations

import datetime as dt
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, types

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.formats.nested import map_lists
from s3commit.spark.formats.sink import Sink

# A stripe is in memory until it is full, also between two writes.
_STRIPE_BYTES: Final = 16 * 1024 * 1024
_CROWDED_STRIPE_BYTES: Final = 1024 * 1024
# Arrow's files do not say that their calendar is the proleptic Gregorian one, and Spark then takes
# older days for Julian ones.
_FIRST_DAY: Final = dt.date(1582, 10, 15)
_EPOCH: Final = dt.datetime(1970, 1, 1)


class OrcEncoder:
    """One or more stripes. ``crowded``: many such encoders are kept open at once."""

    def __init__(self, sink: Sink, schema: pa.Schema, codec: str, *, crowded: bool = False) -> None:
        self._schema = schema
        self._wrote = False
        self._writer = orc.ORCWriter(
            pa.PythonFile(sink, mode="w"),
            compression="uncompressed" if codec == "none" else codec,
            stripe_size=_CROWDED_STRIPE_BYTES if crowded else _STRIPE_BYTES,
        )

    def write(self, rows: pa.Table) -> None:
        """See `Encoder.write`. Raises `InvalidInputError` for a time that ORC would change."""
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            for chunk in column.chunks:
                _check(name, chunk)
        self._writer.write(rows)
        self._wrote = True

    def close(self) -> None:
        """See `Encoder.close`."""
        if not self._wrote:  # the columns' names and types come with the first rows
            self._writer.write(self._schema.empty_table())
        self._writer.close()


def _check(path: str, values: pa.Array) -> None:
    kind = values.type
    if types.is_struct(kind):
        for field, child in zip(kind, values.flatten(), strict=True):
            _check(f"{path}.{field.name}", child)
    elif types.is_map(kind):
        keys, items = map_lists(values).flatten().flatten()
        _check(f"{path}.key", keys)
        _check(f"{path}.value", items)
    elif types.is_list(kind) or types.is_large_list(kind):
        _check(f"{path}[]", values.flatten())
    elif types.is_date(kind):
        _refuse_first(path, values.filter(pc.less(values, pa.scalar(_FIRST_DAY, kind))))
    elif types.is_timestamp(kind):
        _check_moments(path, values.cast(pa.timestamp("us")))


def _check_moments(path: str, moments: pa.Array) -> None:
    first = pa.scalar(dt.datetime.combine(_FIRST_DAY, dt.time()), moments.type)
    _refuse_first(path, moments.filter(pc.less(moments, first)))
    old = moments.filter(pc.less(moments, pa.scalar(_EPOCH, moments.type)))
    # Arrow writes their fractions negative, which ORC's Java reader refuses.
    _refuse_first(path, old.filter(pc.not_equal(pc.subsecond(old), 0)))


def _refuse_first(path: str, wrong: pa.Array) -> None:
    if len(wrong):
        raise InvalidInputError(
            f"column {path} has {wrong.cast(pa.string())[0]}, which would not read back from ORC:"
            " days begin on 1582-10-15, and times before 1970 are whole seconds; write parquet",
            code="BAD_VALUE",
        )
