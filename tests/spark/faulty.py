"""The stream's sink with faults at the points where a query may die; and a driver to kill.

As a program: run the query until it is killed at the point that its file names.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from s3commit.spark.job import TaskMessage
from s3commit.spark.source import S3CommitDataSource
from s3commit.spark.streaming import StreamWriter
from s3commit.writer.requests import wait_for_result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "s3commit_faulty"
POINTS = ("first_bytes", "manifest_put", "before_request", "request_put", "committed")


class FaultError(RuntimeError):
    """What a point raises, over and over, while its file is there."""


def at(point: str, faults: str) -> None:
    """Raise, or say who is here and stay for ever, as the point's file wants it."""
    file = Path(faults, point)
    if not file.exists():
        return
    if file.read_text() == "raise":
        raise FaultError(point)
    Path(faults, "reached").write_text(json.dumps(os.getpid()))
    while True:
        time.sleep(3600)


class FaultyWriter(StreamWriter):
    """Comes to each of `POINTS` in this order."""

    def __init__(self, inner: StreamWriter, faults: str) -> None:
        super().__init__(inner.unnamed, by_session=inner.by_session)
        self.faults = faults

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        def watched() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(iterator):
                if number == 2:
                    at("first_bytes", self.faults)
                yield batch

        message = super().write(watched())
        at("manifest_put", self.faults)
        return message

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        at("before_request", self.faults)

        def waiting(*args: Any) -> Any:
            at("request_put", self.faults)
            return wait_for_result(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("s3commit.writer.job.wait_for_result", waiting)
            super().commit(messages, batchId)
        at("committed", self.faults)


def register_faulty(spark: SparkSession, faults: Path) -> None:
    """Make the format `FORMAT` known, whose faults are files in that directory."""
    directory = str(faults)

    class Faulty(S3CommitDataSource):
        @classmethod
        def name(cls) -> str:
            return FORMAT

        def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
            return FaultyWriter(super().streamWriter(schema, overwrite), directory)

    spark.dataSource.register(Faulty)


def source(spark: SparkSession, directory: Path) -> DataFrame:
    """A stream of the JSON files in a directory, one a micro-batch, in two tasks."""
    reader = spark.readStream.schema("id bigint, k int").option("maxFilesPerTrigger", 1)
    return reader.json(str(directory)).repartition(2)


def begin(frame: DataFrame, uri: str, checkpoint: Path, **options: Any) -> StreamingQuery:
    """Start the query that takes what is there and ends."""
    writer = frame.writeStream.format(FORMAT).option("checkpointLocation", str(checkpoint))
    writer = writer.options(commitTimeout="60s", partitionBy="k", **options)
    return writer.trigger(availableNow=True).start(uri)


def main(uri: str, work: str) -> None:
    """The driver that is going to be killed."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "512m")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    place = Path(work)
    register_faulty(spark, place / "faults")
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    (place / "faults" / "jvm").write_text(str(gateway.proc.pid))
    begin(source(spark, place / "in"), uri, place / "checkpoint").awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
