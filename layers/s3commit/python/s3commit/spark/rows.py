"""The rows of one Spark partition, written as the files of one task attempt."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from s3commit.spark.datafile import Maker
from s3commit.spark.files import FileLimits, TaskFiles
from s3commit.spark.formats import FORMATS
from s3commit.spark.formats.encoders import Encoder, open_encoder
from s3commit.spark.formats.sink import Sink
from s3commit.spark.options import Options
from s3commit.spark.router import Router
from s3commit.spark.schema import WriteSchema, arrow_schema
from s3commit.writer.stream import PendingUpload
from s3commit.writer.task import Task


def write_rows(
    task: Task,
    partition: int,
    batches: Iterator[pa.RecordBatch],
    options: Options,
    schema: WriteSchema,
    *,
    null_columns: tuple[str, ...] = (),
) -> int:
    """Write ``batches`` as the files of ``task``, every one sealed; return how many rows.

    Each file says how many nulls it has in each of ``null_columns``. A partition column is null
    in the directory for nulls, as it is for who reads it. Without partition columns, partition 0
    writes a file also if it has no rows, as Spark's own writers do: a DataFrame without rows is
    read back with its schema.
    """
    names = schema.partition_names
    metadata = schema.parquet_metadata
    suffix = FORMATS[options.file_format].suffixes[options.codec]
    data_schema: pa.Schema | None = None

    def open_output(directory: str, counter: int) -> PendingUpload:
        name = f"part-{partition:05d}-{task.directory.job_id}.c{counter:03d}{suffix}"
        return task.open(directory + name)

    def encoder(sink: Sink, crowded: bool) -> Encoder:
        return open_encoder(options.file_format, sink, data_schema, options.codec, crowded=crowded)

    # The rest is for the encoders, for the copies of parts that are being sent and for what the
    # allocators keep: it is the process's peak that has to fit (bench/README.md measures it).
    limits = FileLimits.of(options, options.memory_budget * 5 // 16)
    files = TaskFiles(Maker(open_output, encoder, task.transfer.spool, null_columns), limits)
    router = Router(files, names, limits.stage_bytes)
    try:
        for batch in batches:
            if data_schema is None:
                columns = [field for field in batch.schema if field.name not in names]
                data_schema = pa.schema(columns, metadata=metadata)
            router.add(batch)
        router.drain()
        if partition == 0 and not names and not files.rows:
            data_schema = data_schema or arrow_schema(schema.data)
            data_schema = data_schema.with_metadata(metadata)
            files.touch("")
        files.close_all()
    except BaseException:
        files.discard()
        raise
    finally:
        # Spark uses its Python workers again.
        pa.default_memory_pool().release_unused()
    return files.rows
