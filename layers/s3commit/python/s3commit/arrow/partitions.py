"""Partition directories as Spark names them, and rows cut where the directory changes.

The names follow Spark's `ExternalCatalogUtils.getPartitionPathString`: the value cast to a string
(by who calls), then escaped; a null or an empty string is a name of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet, types

from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.options import ABORTED
from s3commit.writer.place import NULL_PARTITION, escape

# The name that pandas gives an index without one that is not a plain count, as after a filter.
_INDEX: Final = re.compile(r"__index_level_\d+__")
_SPARKS_DIGITS: Final = 38  # of a decimal
_DATE: Final = len("9999-12-31")
_CAST: Final = "cast it, as a duration to a number, a month or a time to text"
# Types of Arrow's metadata whose values are text or bytes in a file, too; and none.
_SAME: Final = frozenset(("", "arrow.json", "geoarrow.wkb", "geoarrow.wkt"))


def directory(names: Sequence[str], texts: Sequence[str]) -> str:
    """``dt=2026-11-21/hour=3/``: the directory of one combination of values; "" is null."""
    return "".join(
        f"{escape(name)}={escape(text) if text else NULL_PARTITION}/"
        for name, text in zip(names, texts, strict=True)
    )


def runs(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of ``batch`` without the columns ``names``, texts, cut where the directory changes.

    The rows are views of the batch, in its order; of a batch that is sorted by ``names`` each
    directory comes once.
    """
    if not batch.num_rows:
        return
    if not names:
        yield "", batch
        return
    import pyarrow.compute as pc  # noqa: PLC0415 - a third of a worker's start; most need none

    data = batch.drop_columns(list(names))
    # Bytes, because a text that was cast from bytes need not be UTF-8.
    count = batch.num_rows
    # A value of Python's, such as b"" in place of this, would have pyarrow import pandas: 0.25 s.
    no_text = [None, pa.py_buffer(bytes(8 * (count + 1))), pa.py_buffer(b"")]
    empty = pa.Array.from_buffers(pa.large_binary(), count, no_text)
    columns = [pc.coalesce(batch[name].cast(pa.large_binary()), empty) for name in names]
    changes = reduce(pc.or_, (pc.not_equal(column[1:], column[:-1]) for column in columns))
    cuts = (before + 1 for before in pc.indices_nonzero(changes).to_pylist())
    for start, end in pairwise([0, *cuts, count]):
        texts = [column[start].as_py().decode("utf-8", "replace") for column in columns]
        yield directory(names, texts), data.slice(start, end - start)


def by_directory(
    batches: Iterable[pa.RecordBatch], names: Sequence[str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows directory by directory, each in their order; with ``names`` all are held in memory.

    The columns are cast as their type makes names (`file_schema`).
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - as in `runs`

    kept: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        if not names:
            yield "", batch
            continue
        for name in names:
            text = batch[name].cast(pa.large_string())
            is_date = types.is_date32(batch[name].type)
            if is_date and pc.any(pc.greater(pc.binary_length(text), _DATE)).as_py():
                # Where Arrow has a text at all, Spark's is another.
                why = f"column {name!r} of partition_by has a date outside of the years 0 to 9999"
                raise _bad_schema(why, ABORTED)
            batch = batch.set_column(batch.schema.get_field_index(name), name, text)  # noqa: PLW2901
        order = pc.sort_indices(batch, sort_keys=[(name, "ascending") for name in names])
        for where, rows in runs(batch.take(order), names):
            kept.setdefault(where, []).append(rows)
    for where in sorted(kept):
        for rows in kept.pop(where):
            yield where, rows


def stream(table: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows of a table that has ``__arrow_c_stream__``, as types that parquet can hold.

    Nothing of the table's own metadata: pandas' names columns that files do not have. Raises
    `InvalidInputError` (``BAD_SCHEMA``), also for a value that does not fit, as its rows come.
    """
    own = getattr(table, "schema", None)
    for name, kind in own.items() if isinstance(own, Mapping) else ():
        if str(kind) == "Object":  # polars hands over the addresses of Python's objects, as bytes
            raise _bad_schema(f"column {name!r} has the type Object of polars: cast it, as to text")
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except Exception as error:  # of whatever library the table is of
        raise _bad_schema(f"the table cannot be read as Arrow: {_line(error)}") from error
    schema = pa.schema([field.with_type(_storable(field.type)) for field in reader.schema])
    for given, field in zip(reader.schema, schema, strict=True):  # names may be there twice
        _stored(pa.nulls(0, given.type), field, "")

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except Exception as error:
                raise _bad_schema(f"the rows cannot be read: {_line(error)}", ABORTED) from error
            columns = [
                _stored(column, field, ABORTED)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return schema, batches()


def _stored(column: pa.Array, field: pa.Field, then: str) -> pa.Array:
    try:
        if types.is_dictionary(column.type):  # Arrow has no such cast of all values
            return column.dictionary.cast(field.type).take(column.indices)
        return column.cast(field.type)
    except pa.ArrowException as error:
        why = f"column {field.name!r}: cast it first, since {_line(error)}"
        raise _bad_schema(why, then) from error


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")


def file_schema(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The columns of files, without those that make directories.

    Raises `InvalidInputError` (``BAD_SCHEMA``) for columns that no reader could tell apart or find,
    and for a type that parquet can't hold.
    """
    twice = sorted(_twice(schema))
    index = [name for name in schema.names if _INDEX.fullmatch(name)]
    unlike = [field for field in schema if _loses_its_type(field)]
    kind = (_extension(unlike[0]) or unlike[0].type) if unlike else None
    cure = "give it one" if kind == pa.null() else _CAST
    missing = [name for name in names if name not in schema.names]
    odd = [name for name in names if name not in missing and not _makes_names(schema, name)]
    for wrong, why in (
        (twice, "exists twice, or differs only in case from another: rename it"),
        ([name for name in schema.names if not name], "needs a name"),
        (index, "is an index of pandas without a name: call reset_index(drop=True), or name it"),
        (
            [field.name for field in unlike],
            f"has the type {kind}, which not every reader gets back: {cure}",
        ),
        (missing, "of partition_by is not in the table"),
        ([name for name in names if names.count(name) > 1], "is in partition_by twice"),
        (odd, "of partition_by has a type without a directory name: cast it to a string"),
    ):
        if wrong:
            raise _bad_schema(f"column {wrong[0]!r} {why}")
    left = pa.schema([field for field in schema if field.name not in names])
    if not len(left):
        raise _bad_schema("no column is left for the files")
    try:
        parquet.ParquetWriter(pa.BufferOutputStream(), left).close()
    except (pa.ArrowException, OSError) as error:
        raise _bad_schema(f"parquet can't hold the table: {_line(error)}") from error
    return left


def _bad_schema(why: str, then: str = "") -> InvalidInputError:
    return InvalidInputError(f"{why}. {then}." if then else why, code="BAD_SCHEMA")


def _twice(fields: Iterable[pa.Field]) -> Iterator[str]:
    """The names that a reader which ignores case cannot tell apart, also within a struct."""
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            yield field.name.lower()
        seen.add(field.name.lower())
        yield from _twice(_inside(field.type))


def _inside(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]


def _loses_its_type(field: pa.Field) -> bool:
    """True if Spark refuses the table for it, or if no Parquet type says how to read its values.

    So it is with a duration's unit, and with what another library has made of numbers: pandas'
    months are counted from 1970.
    """
    kind = field.type
    if types.is_duration(kind) or types.is_null(kind) or types.is_time(kind):
        return True
    if types.is_float16(kind) or _extension(field):
        return True
    if types.is_decimal(kind) and kind.precision > _SPARKS_DIGITS:
        return True
    return any(map(_loses_its_type, _inside(kind)))


def _extension(field: pa.Field) -> str:
    """The name of a type that only Arrow's metadata has, if its values mean nothing without it.

    Arrow has no class of a type whose library was not imported.
    """
    of_library = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    name = str(getattr(field.type, "extension_name", of_library))
    return "" if name in _SAME else name


def _makes_names(schema: pa.Schema, name: str) -> bool:
    kind = schema.field(name).type
    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean)
    return types.is_date32(kind) or any(test(kind) for test in tests)


def _storable(kind: pa.DataType) -> pa.DataType:
    """The type as parquet files have it.

    Arrow's views (polars) get offsets: not every parquet writer accepts views. Nanoseconds (pandas)
    become microseconds: Spark reads no others (https://issues.apache.org/jira/browse/SPARK-40819).
    """
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name not in _SAME:
            return kind  # and is refused
        stored = _storable(kind.storage_type)
        return kind if stored == kind.storage_type else stored
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(_storable(kind.value_type))
    if types.is_fixed_size_list(kind):
        return pa.list_(_storable(kind.value_type), kind.list_size)
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_storable(kind.value_type))
    if types.is_map(kind):
        return pa.map_(_storable(kind.key_type), _storable(kind.item_type), kind.keys_sorted)
    if types.is_struct(kind):
        return pa.struct([field.with_type(_storable(field.type)) for field in kind])
    if types.is_dictionary(kind):
        return _storable(kind.value_type)
    return kind
