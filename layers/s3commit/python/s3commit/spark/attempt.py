"""One task attempt: Spark's rows on their way to S3, and what the driver hears of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import CountedAttempt, JobSpec
from s3commit.spark.connection import shared_store
from s3commit.spark.messages import say
from s3commit.spark.options import Options
from s3commit.spark.rows import write_rows
from s3commit.spark.schema import WriteSchema
from s3commit.writer.job import Job, put_job
from s3commit.writer.task import Task


@dataclass(slots=True)
class TaskMessage(WriterCommitMessage):
    """What a task tells the driver. ``attempt`` is None if the task had no rows.

    ``spec`` is the job's, where only its tasks could know it.
    """

    attempt: CountedAttempt | None
    rows: int
    spec: JobSpec | None = None


def running_context() -> TaskContext:
    """The context of the Spark task that this process runs. Raises `S3CommitError`."""
    context = TaskContext.get()
    if context is None:
        raise S3CommitError("write() was called outside of a Spark task", code="NO_TASK")
    return context


def write_attempt(
    job: Job,
    batches: Iterator[pa.RecordBatch],
    options: Options,
    schema: WriteSchema,
    context: TaskContext,
) -> TaskMessage:
    """Write one partition's rows; runs in an executor's Python worker.

    Any error aborts the attempt's uploads and reaches Spark, which tries the task again.
    """
    partition = context.partitionId()
    task = Task(
        job.directory,
        f"{partition:05d}",
        # Spark counts attempts per application; a second run of the job counts again.
        f"{context.taskAttemptId()}-{job.environment.new_id()}",
        shared_store(job.encryption),
        settings=job.settings,
        environment=job.environment,
        locations=job.spec.locations,
    )
    try:
        nulls = job.spec.conditions.columns
        rows = write_rows(task, partition, batches, options, schema, null_columns=nulls)
        return TaskMessage(task.finish(), rows)
    except BaseException:
        for error in task.abort():
            say(f"an upload of task {partition} could not be aborted yet: {error}")
        raise


def write_late(
    job: Job,
    batches: Iterator[pa.RecordBatch],
    options: Options,
    schema: WriteSchema,
    context: TaskContext,
) -> TaskMessage:
    """As `write_attempt`, for a job of which no ``job.json`` is there yet.

    Every task with rows puts the same one, before its first file; a task without rows makes no
    request at all.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return TaskMessage(None, 0, job.spec)
    put_job(shared_store(job.encryption), job.spec)
    message = write_attempt(job, itertools.chain([first], batches), options, schema, context)
    return replace(message, spec=job.spec)
