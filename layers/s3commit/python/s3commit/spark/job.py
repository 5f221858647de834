"""One write of a DataFrame as a job: what its driver and its tasks share.

It is picklable and goes to the tasks; what they return is a `TaskMessage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import CountedAttempt, JobResult, JobSpec
from s3commit.spark.files import write_rows
from s3commit.spark.messages import say, summary
from s3commit.spark.options import Options, Policy
from s3commit.spark.schema import WriteSchema, check_schema
from s3commit.spark.session import obey
from s3commit.writer.bucket import S3BucketProbe
from s3commit.writer.connect import shared_client, shared_store
from s3commit.writer.environment import SystemEnvironment, timestamp
from s3commit.writer.job import Job, new_job_id, start
from s3commit.writer.task import Task

CLIENT: Final = "s3commit-spark"


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """What a task returns to the driver. ``attempt`` is None if the task has written no file."""

    attempt: CountedAttempt | None
    rows: int


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A job with the schema of its rows and the user's options."""

    job: Job
    options: Options
    schema: WriteSchema

    @property
    def spec(self) -> JobSpec:
        """The job's specification."""
        return self.job.spec

    def open(self) -> SparkJob:
        """Check that there is a pipeline, then put ``job.json``.

        Raises `InvalidInputError`, `NotFoundError` or `AccessError`.
        """
        store = shared_store(self.job.encryption)
        start(self.job, store, S3BucketProbe(shared_client()))
        return self

    def write(self, batches: Iterator[pa.RecordBatch], partition: int, attempt: int) -> TaskMessage:
        """Write one partition's rows; runs in an executor's Python worker.

        ``attempt`` is Spark's number of this try, unique in the application. Any error aborts the
        attempt's uploads and reaches Spark, which tries the task again.
        """
        job = self.job
        task = Task(
            job.directory,
            f"{partition:05d}",
            # Spark counts attempts per application; a second run of the job counts again.
            f"{attempt}-{job.environment.new_id()}",
            shared_store(job.encryption),
            settings=job.settings,
            environment=job.environment,
        )
        try:
            rows = write_rows(task, partition, batches, self.options, self.schema)
            return TaskMessage(task.finish(), rows)
        except BaseException:
            for error in task.abort():
                say(f"an upload of task {partition} could not be aborted yet: {error}")
            raise

    def write_task(self, batches: Iterator[pa.RecordBatch]) -> TaskMessage:
        """`write` the partition of the Spark task that this process runs, as its session says."""
        context = TaskContext.get()
        if context is None:
            raise S3CommitError("this runs in the tasks of Spark alone", code="NO_TASK")
        options = obey(self.options, self.schema.data, context.getLocalProperty)
        job = replace(self.job, encryption=options.encryption)
        write = replace(self, job=job, options=options).write
        return write(batches, context.partitionId(), context.taskAttemptId())

    def commit(self, messages: Sequence[TaskMessage]) -> JobResult:
        """Ask for the commit, wait for the outcome, and print it; raises as `Job.commit`."""
        job = self.connected()
        attempts = (message.attempt for message in messages)
        result = job.commit(attempts, timeout=self.options.commit_timeout, remind=say)
        say(summary(result, sum(message.rows for message in messages), job.directory))
        return result

    def connected(self) -> Job:
        """The job itself, with this process's connection."""
        self.job.connect(shared_store(self.job.encryption))
        return self.job


def spark_job(options: Options, schema: StructType, policy: Policy) -> SparkJob:
    """A new job for the rows of a DataFrame; no request.

    Raises `InvalidInputError` for a schema that can't be written.
    """
    checked = check_schema(schema, options.partition_by)
    environment = SystemEnvironment()
    spec = JobSpec(
        job_id=new_job_id(environment, options.idempotency_key),
        destination=options.destination,
        conflict=policy.conflict,
        scope=policy.scope,
        partition_by=checked.partition_names,
        idempotency_key=options.idempotency_key,
        created_at=timestamp(environment),
        client=CLIENT,
        conditions=options.conditions,
    )
    return SparkJob(Job(spec, options.uploads, options.encryption), options, checked)
