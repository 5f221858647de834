"""The batch read: what is committed at a destination, or what one job has committed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructField, StructType, TimestampType

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.committed import committed_files, nothing_committed
from s3commit.spark.discover import FoundFile, partition_schema, typed
from s3commit.spark.footer import open_parquet, other_format, parquet_schema
from s3commit.spark.options import MB, Options
from s3commit.spark.schema import arrow_schema
from s3commit.spark.user_errors import short_errors
from s3commit.spark.zones import session_zone

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

    @short_errors
    def partitions(self) -> Sequence[InputPartition]:
        """Splits of about 128 MB: large files by row groups, small ones together."""
        pieces = [
            (file, start, min(start + SPLIT_BYTES, file.length))
            for file in committed_files(self.options)
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

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one split, in the types that Spark expects of the schema."""
        assert isinstance(partition, FileSplit)  # noqa: S101 - what partitions() returned
        target = arrow_schema(self.schema)
        for file, start, stop in partition.pieces:
            _refuse_other_format(self.bucket, file)
            with closing(open_parquet(self.bucket, file)) as opened:
                groups = [
                    number
                    for number in range(opened.num_row_groups)
                    if start <= _middle(opened.metadata.row_group(number)) < stop
                ]
                if groups:
                    for batch in opened.iter_batches(BATCH_ROWS, groups, use_threads=False):
                        yield self._conformed(batch, file, target)

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
