"""Rows that come with a fault: tasks that fail or are killed while they write them."""

import os
import signal
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from s3commit.spark.tasks import SparkJob, TaskMessage


def disturbed(frame: DataFrame, disturb: Callable[[int, int], None]) -> DataFrame:
    """``frame`` with ``disturb(partition, attempt)`` called after the first batch of each task.

    It runs in a Python worker of its own, upstream of the writer.
    """

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            yield batch
            if number == 0:
                disturb(*task_ids())

    return frame.mapInArrow(pass_on, frame.schema)


def task_ids() -> tuple[int, int]:
    """The partition and the attempt number of the Spark task that asks."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.attemptNumber()


def fail_first_try(partition: int, attempt: int) -> None:
    if partition == 1 and attempt == 0:
        raise RuntimeError("the first try fails")


def fail_always(partition: int, attempt: int) -> None:
    if partition == 1:
        raise RuntimeError("this task always fails")


def kill_first_try(partition: int, attempt: int) -> None:
    if partition == 1 and attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)


class LateJob(SparkJob):
    """The first try of a task fails when its manifest is in S3 and before Spark hears of it."""

    def write(self, batches: Iterator[pa.RecordBatch], partition: int, attempt: int) -> TaskMessage:
        answer = super().write(batches, partition, attempt)
        fail_first_try(*task_ids())
        return answer
