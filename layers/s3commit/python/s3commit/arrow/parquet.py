"""Rows as parquet, in the bytes of a pending upload."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
from pyarrow import parquet, types

from s3commit.writer.stream import PendingUpload

# Suffixes of file names by codec, those of Spark's own writer; Spark's default comes first.
CODECS: Final[Mapping[str, str]] = {
    "snappy": ".snappy.parquet",
    "zstd": ".zstd.parquet",
    "gzip": ".gz.parquet",
    "lz4": ".lz4raw.parquet",
    "none": ".parquet",
}
# Arrow's own default for gzip is 9, three times the time for a percent of size; zlib's is 6.
_LEVELS: Final = {"gzip": 6}
# Arrow gives a dictionary up only when it is full. Spark's writer also does when the first page
# shows that it saves nothing; for a small file of unlike values that halves the time to encode it.
_SAMPLE_ROWS: Final = 2000
_UNLIKE: Final = 0.99
_SAMPLE_BYTES: Final = 4 * 1024 * 1024
_LOOK_BYTES: Final = 1024 * 1024  # Arrow's limit of a page
_LOOK_VALUES: Final = 1024
# Arrow leaves NaN out of a column's statistics, and to Spark it is the greatest number: its filters
# would skip the rows. So a column that has NaN has none, as in files of Spark's own.
FLOATS: Final = (pa.float32(), pa.float64())


@dataclass
class Sink:
    """As much of a file as Arrow writes to; ``output`` is there before its first byte.

    Once ``is_cut``, from any thread, it drops whatever is still written: Arrow writes a footer when
    a writer is dropped.
    """

    output: PendingUpload | None = None
    is_cut: bool = False
    closed: ClassVar[bool] = False

    def write(self, data: bytes) -> None:
        """Write ``data`` to the output."""
        if not self.is_cut:
            assert self.output is not None  # noqa: S101 - see above
            self.output.write(data)

    def close(self) -> None:
        """The owner closes the output."""


def open_writer(
    sink: Sink, schema: pa.Schema, codec: str, first: pa.Table | None, nans: Collection[str]
) -> parquet.ParquetWriter:
    """A writer of one file, whose ``first`` rows, if any, say which columns get a dictionary.

    Closing it writes the footer, and leaves ``sink`` open. The columns ``nans`` may have NaN, as
    floats in other columns may.
    """
    leaves = [(field, *one) for field in schema for one in _leaves(field.name, field.type)]
    # Two leaves can have one path: of a column "a.b", and of "b" in a struct "a".
    without = {
        path
        for field, path, kind in leaves
        if kind in FLOATS and (kind != field.type or field.name in nans)
    }
    writer = parquet.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        compression=codec,
        compression_level=_LEVELS.get(codec),
        # As Spark's own writer does: readers skip pages, and small decimals are integers.
        write_page_index=True,
        store_decimal_as_integer=True,
        # Nor Arrow's own types: with them a reader's would be those of the session that wrote, such
        # as its time zone, and readers refuse a table whose files differ in that.
        store_schema=False,
        # After so many values Arrow looks how large the page and the dictionary are. Its default
        # of rows of 60 KB would make pages of 60 MB, held two or three times.
        write_batch_size=_rows_of(_LOOK_BYTES, first, _LOOK_VALUES),
        use_dictionary=[] if first is None else list(dictionary_columns(first)),
        write_statistics=[path for _, path, _ in leaves if path not in without],
    )
    writer.add_key_value_metadata(schema.metadata or {})  # of a schema that is stored alone
    return writer


def columns_with_nan(rows: pa.RecordBatch, schema: pa.Schema) -> frozenset[str]:
    """The columns of floats that may have NaN, once the rows have the schema."""
    return frozenset(
        field.name
        for field, column in zip(schema, rows.columns, strict=True)
        # NaN alone is not what it is itself; to count it loads pyarrow.compute, about 60 ms.
        if field.type in FLOATS and (column.type != field.type or not column.equals(column))
    )


def _rows_of(size: int, rows: pa.Table | None, most: int) -> int:
    """How many such rows have ``size`` bytes, from 1 to ``most``."""
    if rows is None or not rows.num_rows:
        return most
    # As in arrow/files.py, not nbytes.
    whole = sum(map(pa.ipc.get_record_batch_size, rows.to_batches()))
    found: int = size * rows.num_rows // whole
    return max(1, min(most, found))


def dictionary_columns(rows: pa.Table) -> tuple[str, ...]:
    """The parquet paths of the columns that may gain by a dictionary, judged by the first rows."""
    size = _rows_of(_SAMPLE_BYTES, rows, _SAMPLE_ROWS)
    sample = rows.slice(0, size)
    return tuple(
        path
        for column, field in zip(sample.columns, rows.schema, strict=True)
        if not _unlike(column, size // 2)
        for path, _ in _leaves(field.name, field.type)
    )


def _unlike(values: pa.ChunkedArray, many: int) -> bool:
    """True if there are ``many`` values and almost none is there twice."""
    kind = values.type
    if not (types.is_primitive(kind) or types.is_string(kind) or types.is_large_string(kind)):
        return False  # few gain much, and Arrow does not count all of them
    valid: int = len(values) - values.null_count
    if valid < many:
        return False
    distinct = len(values.unique()) - bool(values.null_count)  # count_distinct takes twice as long
    return distinct >= _UNLIKE * valid


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The paths of a column's leaves, as parquet's schema names them, and their types."""
    if types.is_struct(kind):
        for child in kind:
            yield from _leaves(f"{path}.{child.name}", child.type)
    elif types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif types.is_list(kind) or types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(path, kind.storage_type)
    else:
        yield path, kind
