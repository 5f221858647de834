"""The stream's sink with faults at the points where a query may die.

As a program: run the query until it is killed at the point that its file names.
"""

from __future__ import annotations

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
from tests.spark.points import Work, at, drive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "s3commit_faulty"


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


def begin(spark: SparkSession, uri: str, work: Work) -> StreamingQuery:
    """Start the query that takes what is there and ends."""
    register_faulty(spark, work.faults)
    writer = work.frames(spark).writeStream.format(FORMAT).options(commitTimeout="60s")
    writer = writer.option("checkpointLocation", str(work.checkpoint)).option("partitionBy", "k")
    return writer.trigger(availableNow=True).start(uri)


if __name__ == "__main__":
    drive(begin)
