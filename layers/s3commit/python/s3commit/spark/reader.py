"""The batch read: what is committed at a destination, or what one job has committed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructField, StructType, TimestampType

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.committed import committed_files, nothing_committed
from s3commit.spark.discover import FoundFile, partition_schema, typed
from s3commit.spark.footer import open_parquet, other_format, parquet_schema
from s3commit.spark.options import MB, Options
from s3commit.spark.pruning import Condition, Values, conditions_of, may_hold
from s3commit.spark.schema import arrow_schema
from s3commit.spark.user_errors import short_errors
from s3commit.spark.zones import session_zone

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

# As spark.sql.files.maxPartitionBytes: what one task reads.
SPLIT_BYTES: Final = 128 * MB
BATCH_ROWS: Final = 32 * 1024


class FileSplit(InputPartition):
    """What one task reads: files, or the row groups in a range of one file's bytes."""

    def __init__(self, pieces: list[tuple[FoundFile, int, int]]) -> None:
        super().__init__(None)
        self.pieces = pieces


def committed_schema(options: Options) -> StructType:
    """The schema of the files, from Spark's own metadata in the first one, and the partitions'.

    Everything is nullable, as in every file source of Spark. Raises `NotFoundError` if nothing
    is committed.
    """
    files = committed_files(options)
    if not files:
        raise nothing_committed(options)
    _refuse_other_format(options.destination.bucket, files[0])
    found, _ = parquet_schema(options.destination.bucket, files[0])
    partitions = partition_schema(files)
    own = {column.name.lower(): column for column in partitions}
    names = {column.name.lower() for column in found}
    columns = [own.get(column.name.lower(), column) for column in found]
    columns += [column for column in partitions if column.name.lower() not in names]
    return StructType(columns).toNullable()


class CommittedReader(DataSourceReader):
    """Reads the files that were visible when the read was planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.bucket = options.destination.bucket
        self.options = options
        self.schema = schema
        self.conditions: list[Condition] = []

    @short_errors
    def partitions(self) -> Sequence[InputPartition]:
        """Splits of about 128 MB: large files by row groups, small ones together."""
        pieces = [
            (file, start, min(start + SPLIT_BYTES, file.length))
            for file in self._files()
            for start in range(0, file.length, SPLIT_BYTES)
        ]
        splits: list[list[tuple[FoundFile, int, int]]] = []
        filled = SPLIT_BYTES
        for piece in pieces:
            size = piece[2] - piece[1] + 4 * MB  # Spark's cost of opening a file
            if filled + size > SPLIT_BYTES:
                splits.append([])
                filled = 0
            splits[-1].append(piece)
            filled += size
        return [FileSplit(split) for split in splits] or [FileSplit([])]

    def _files(self) -> list[FoundFile]:
        """Those whose directories may hold a row that is asked for."""
        files = committed_files(self.options)
        asked = {one.column for one in self.conditions}
        kinds = {
            column.name.lower(): column.dataType
            for column in self.schema
            if column.name.lower() in asked
        }

        def may_hold_one(file: FoundFile) -> bool:
            values = {
                name.lower(): Values.only(typed(text, kinds[name.lower()], name))
                for name, text in zip(file.names, file.texts, strict=True)
                if name.lower() in kinds
            }
            return may_hold(self.conditions, values)

        return [file for file in files if may_hold_one(file)] if asked else files

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one split, in the types that Spark expects of the schema."""
        assert isinstance(partition, FileSplit)  # noqa: S101 - what partitions() returned
        target = arrow_schema(self.schema)
        wanted = {column.name.lower() for column in self.schema}
        for file, start, stop in partition.pieces:
            _refuse_other_format(self.bucket, file)
            with closing(open_parquet(self.bucket, file)) as opened:
                here = {name.lower() for name in file.names}
                groups = [
                    number
                    for number in range(opened.num_row_groups)
                    if start <= _middle(opened.metadata.row_group(number)) < stop
                    and may_hold(self.conditions, self._ends(opened, number, but=here))
                ]
                columns = [
                    name for name in opened.schema_arrow.names if name.lower() in wanted - here
                ]
                if groups:
                    batches = opened.iter_batches(
                        BATCH_ROWS, groups, columns=columns, use_threads=False
                    )
                    for batch in batches:
                        yield self._conformed(batch, file, target)

    def _ends(self, opened: Any, number: int, *, but: set[str]) -> dict[str, Values]:
        """What the file says that the row group holds of the columns that are asked for."""
        asked = {one.column for one in self.conditions} - but
        found = {}
        for position, name in enumerate(opened.schema.names) if asked else ():
            column = opened.schema.column(position)
            if column.path.lower() in asked and column.path == name:
                held = opened.metadata.row_group(number).column(position).statistics
                if held is not None and held.has_min_max and held.has_null_count:
                    nulls = held.null_count > 0
                    found[name.lower()] = Values(held.min, held.max, nulls)
        return found

    def _conformed(self, batch: pa.RecordBatch, file: FoundFile, target: pa.Schema) -> Any:
        by_name = {name.lower(): name for name in batch.schema.names}
        texts = dict(zip((name.lower() for name in file.names), file.texts, strict=True))
        timed = any(
            isinstance(column.dataType, TimestampType) and column.name.lower() in texts
            for column in self.schema
        )
        zone = session_zone() if timed else dt.UTC
        columns = []
        for column, field in zip(self.schema, target, strict=True):
            name = column.name.lower()
            if name in texts:
                value = typed(texts[name], column.dataType, column.name, zone)
                columns.append(pa.repeat(pa.scalar(value, field.type), batch.num_rows))
            elif name in by_name:
                columns.append(_cast(batch.column(by_name[name]), column, field.type, file))
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=target)


class PruningReader(CommittedReader):
    """One that takes filters, with the option ``pushFilters``: Spark has them from 4.1 on.

    Not every reader does, since Spark 4.1 to 4.3 keep what a reader has planned for one query and
    use it for the next of the same DataFrame, also where that has other filters
    (``PythonScanBuilder.pushFilters`` sets it in the table, which all scans share): rows would be
    missing. And Spark refuses to read from such a one where the session has not set
    ``spark.sql.python.filterPushdown.enabled``.
    """

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802
        """Note what may rule files out; Spark applies all of the filters once more."""
        self.conditions = conditions_of(filters, self.schema)
        return filters


def _cast(values: pa.Array, column: StructField, kind: pa.DataType, file: FoundFile) -> pa.Array:
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"column {column.name} of {file.key} is {values.type} and can't be read as "
            f"{column.dataType.simpleString()}: {error}",
            code="BAD_FILE",
        ) from error


def _refuse_other_format(bucket: str, file: FoundFile) -> None:
    other = other_format(file.key, "parquet")
    if other:
        raise InvalidInputError(
            f"s3://{bucket}/{file.key} is {other}, and s3commit reads parquet alone: read the"
            f" directory with spark.read.{other}('s3a://{bucket}/...')",
            code="OTHER_FORMAT",
        )


def _middle(group: Any) -> int:
    """Where the row group's middle lies in the file: it belongs to the split that has it."""
    first = group.column(0)
    start = first.dictionary_page_offset or first.data_page_offset
    size = sum(group.column(n).total_compressed_size for n in range(group.num_columns))
    return int(start + size // 2)
