"""A query that writes by ``foreachBatch``, with faults at the points where it may die.

As a program: run the query until it is killed at the point that its file names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from s3commit.spark import batch_writer, frame_write
from s3commit.spark.job import SparkJob
from s3commit.writer.requests import wait_for_result
from tests.spark.points import Work, at, drive

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def faulty_writer(uri: str, faults: str) -> Any:
    """What `batch_writer` gives, which comes to each of `POINTS` in this order."""
    write = batch_writer(uri, partition_by="k", commitTimeout="60s")
    task_of, commit_of = frame_write._task, SparkJob.commit

    def faulty_task(job: Any) -> Any:
        task = task_of(job)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            def watched() -> Iterator[pa.RecordBatch]:
                for number, batch in enumerate(batches):
                    if number == 2:
                        at("first_bytes", faults)
                    yield batch

            answers = list(task(watched()))
            at("manifest_put", faults)
            yield from answers

        return run

    def faulty_commit(self: SparkJob, *args: Any, **said: Any) -> Any:
        at("before_request", faults)
        return commit_of(self, *args, **said)

    def waiting(*args: Any) -> Any:
        at("request_put", faults)
        return wait_for_result(*args)

    def write_batch(frame: DataFrame, number: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frame_write, "_task", faulty_task)
            patch.setattr(SparkJob, "commit", faulty_commit)
            patch.setattr("s3commit.writer.job.wait_for_result", waiting)
            write(frame, number)
        at("committed", faults)

    return write_batch


def begin(spark: SparkSession, uri: str, work: Work) -> StreamingQuery:
    """Start the query that takes what is there and ends."""
    writer = work.frames(spark).writeStream.foreachBatch(faulty_writer(uri, str(work.faults)))
    writer = writer.option("checkpointLocation", str(work.checkpoint))
    return writer.trigger(availableNow=True).start()


if __name__ == "__main__":
    drive(begin)
