"""The tasks of a job that writes a DataFrame, in Spark's Python workers.

The rows go through ``mapInArrow``. Each task answers with one row, its `TaskMessage`, and Spark
returns the row of exactly one attempt of each task: those are the attempts that the job counts.
"""

from __future__ import annotations

import functools
import gc
import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from s3commit.core.model.errors import S3CommitError
from s3commit.spark.frames import arranged
from s3commit.spark.task_errors import for_the_driver, of_a_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from s3commit.spark.spark_job import SparkJob, TaskMessage

_MESSAGE: Final = "message"


def run(df: DataFrame, job: SparkJob) -> list[TaskMessage]:
    """Run the tasks; the messages of those attempts that Spark counts, one of each task.

    Raises the tasks' error, if their retries failed too.
    """
    try:
        rows = (
            arranged(df, job.schema.partition_positions)
            .mapInArrow(_task(job), f"{_MESSAGE} binary")
            .collect()
        )
    except Exception as error:
        ours = of_a_task(error)
        if ours is None:
            raise
        raise ours from error
    messages = [pickle.loads(row[_MESSAGE]) for row in rows]  # noqa: S301 - our own tasks' answers
    # A plan without partitions runs no task: the file that keeps the schema is written here.
    return messages or [job.write(iter(()), partition=0, attempt=0)]


def _task(job: SparkJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow  # noqa: PLC0415
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None  # noqa: S101 - every task has one
        try:
            message = job.write(batches, context.partitionId(), context.taskAttemptId())
        except S3CommitError as error:
            raise for_the_driver(error) from None
        yield pyarrow.record_batch({_MESSAGE: [pickle.dumps(message)]})
        _freeze()

    return task


@functools.cache
def _freeze() -> None:
    """Keep what this process has loaded out of later collections of garbage.

    Spark's daemon collects after each task (pyspark/daemon.py). With botocore's models that takes
    longer than to write a small file.
    """
    gc.collect()
    gc.freeze()
