"""One write of a DataFrame as a job: what its driver and its tasks share, whoever runs them.

It is picklable, and goes to the tasks; what they tell comes back as `TaskMessage`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import CountedAttempt, JobResult, JobSpec, Scope
from s3commit.spark.messages import say, summary
from s3commit.spark.options import Options
from s3commit.spark.policy import Policy
from s3commit.spark.rows import write_rows
from s3commit.spark.schema import WriteSchema, check_schema, named_conditions
from s3commit.spark.session import obey
from s3commit.writer.bucket import S3BucketProbe
from s3commit.writer.connect import shared_client, shared_store
from s3commit.writer.environment import SystemEnvironment, timestamp
from s3commit.writer.job import Job, put_job, start
from s3commit.writer.once import new_job_id
from s3commit.writer.task import Task

try:
    from pyspark.sql.datasource import WriterCommitMessage
except ImportError:  # Spark 3.5 has no Python data sources

    class WriterCommitMessage:  # type: ignore[no-redef]
        """What a data source's task tells its driver."""


CLIENT: Final = "s3commit-spark"
QUERY_ID: Final = "sql.streaming.queryId"  # a local property that StreamExecution sets


@dataclass(slots=True)
class TaskMessage(WriterCommitMessage):
    """What a task tells the driver. ``attempt`` is None if the task had no rows.

    ``spec`` is the job's, where only its tasks could know it.
    """

    attempt: CountedAttempt | None
    rows: int
    spec: JobSpec | None = None


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

    def open(self, *, by_tasks: bool) -> SparkJob:
        """See that there is a pipeline, then put ``job.json``, unless the job's tasks do it.

        Raises `InvalidInputError`, `NotFoundError` or `AccessError`.
        """
        store = shared_store(self.job.encryption)
        start(self.job, store, S3BucketProbe(shared_client()), opens=not by_tasks)
        return self

    def but(self, **said: Any) -> SparkJob:
        """The same with other values in its specification."""
        return replace(self, job=replace(self.job, spec=replace(self.job.spec, **said)))

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
            locations=job.spec.locations,
        )
        nulls = job.spec.conditions.columns
        try:
            rows = write_rows(
                task, partition, batches, self.options, self.schema, null_columns=nulls
            )
            return TaskMessage(task.finish(), rows)
        except BaseException:
            for error in task.abort():
                say(f"an upload of task {partition} could not be aborted yet: {error}")
            raise

    def write_task(self, batches: Iterator[pa.RecordBatch]) -> TaskMessage:
        """`write` the partition of the Spark task that this process runs, as its session says."""
        context = running_context()
        options = obey(self.options, self.schema.data, context.getLocalProperty)
        job = replace(self.job, encryption=options.encryption)
        write = replace(self, job=job, options=options).write
        return write(batches, context.partitionId(), context.taskAttemptId())

    def open_and_write_task(self, batches: Iterator[pa.RecordBatch]) -> TaskMessage:
        """As `write_task`, for a job of which no ``job.json`` is there yet.

        Every task with rows puts the same one, before its first file; a task without rows makes
        no request at all.
        """
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return TaskMessage(None, 0, self.job.spec)
        put_job(shared_store(self.job.encryption), self.job.spec)
        message = self.write_task(itertools.chain([first], batches))
        return replace(message, spec=self.job.spec)

    def commit(self, messages: Sequence[TaskMessage], *, opened: bool, what: str = "") -> JobResult:
        """Ask for the commit, wait for the outcome, and say it; ``opened``: ``job.json`` is there.

        Raises what `Job.commit` raises.
        """
        job = self.connected()
        if not opened and not any(message.attempt for message in messages):
            put_job(shared_store(job.encryption), job.spec)  # no task had rows and put it
        attempts = (message.attempt for message in messages)
        result = job.commit(attempts, timeout=self.options.commit_timeout, remind=say)
        say(summary(result, sum(message.rows for message in messages), job.directory, what))
        return result

    def abort(self, reason: str, what: str = "") -> None:
        """Ask for the abort; if a commit was asked for before, say so and change nothing."""
        say(what + self.connected().abort(reason).message)

    def connected(self) -> Job:
        """The job itself, with this process's connection."""
        self.job.connect(shared_store(self.job.encryption))
        return self.job


def spark_job(
    options: Options, schema: StructType, policy: Policy, *, client: str = CLIENT
) -> SparkJob:
    """A new job for the rows of a DataFrame; no request.

    Raises `InvalidInputError` for a schema that can't be written.
    """
    checked = check_schema(schema, options.partition_by, options.file_format)
    environment = SystemEnvironment()
    spec = JobSpec(
        job_id=new_job_id(environment, options.idempotency_key),
        destination=options.destination,
        conflict=policy.conflict,
        scope=policy.scope or Scope.DIRECTORY,
        partition_by=checked.partition_names,
        idempotency_key=options.idempotency_key,
        created_at=timestamp(environment),
        client=client,
        conditions=named_conditions(options.conditions, schema),
        locations=options.locations,
    )
    return SparkJob(Job(spec, options.uploads, options.encryption), options, checked)


def running_context() -> TaskContext:
    """The context of the Spark task that this process runs. Raises `S3CommitError`."""
    context = TaskContext.get()
    if context is None:
        raise S3CommitError("write() was called outside of a Spark task", code="NO_TASK")
    return context
