"""Spark reads every type that `write_table` lets into a file."""

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from s3commit import InvalidInputError
from s3commit.arrow.partitions import file_schema, stream
from tests.arrow_types import PLAIN, nested


def test_spark_reads_every_type_that_is_not_refused(spark: SparkSession, tmp_path: Path) -> None:
    fields: list[pa.Field] = []
    for kind in (within for plain in PLAIN for within in nested(plain)):
        column = pa.schema({f"c{len(fields)}": kind})
        with suppress(InvalidInputError):
            stored, _ = stream(pa.RecordBatchReader.from_batches(column, []))
            fields += file_schema(stored, ())
    parquet.ParquetWriter(tmp_path / "all.parquet", pa.schema(fields)).close()

    read = spark.read.parquet(str(tmp_path))

    assert len(read.columns) == len(fields) > 300
    assert read.collect() == []
