"""The batch write of ``format("s3commit")``: one job, one commit.

Spark makes the writer once, in a process of its own, and pickles it to the tasks and to the
process that commits or aborts; none of these shares memory with another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.job import Scope
from s3commit.spark.job import SparkJob, TaskMessage, running_context, spark_job
from s3commit.spark.options import Options
from s3commit.spark.policy import policy_of, task_scope
from s3commit.spark.schema_policy import agreed
from s3commit.spark.user_errors import short_errors


def start_batch(options: Options, schema: StructType, overwrite: bool) -> BatchWriter:
    """Check everything that can be checked, then open the job: `DataSource.writer`'s work.

    Raises `InvalidInputError`, `NotFoundError` or `AccessError` before any data is uploaded.
    """
    policy = policy_of(options, overwrite=overwrite)
    job = spark_job(options, schema, policy)
    if policy.scope is None:
        return BatchWriter(job.open(by_tasks=True), by_session=if_dynamic(job))
    return BatchWriter(agreed(job).open(by_tasks=False))


def if_dynamic(job: SparkJob, *, once: bool = False) -> SparkJob | S3CommitError:
    """What the tasks do if the session replaces partitions alone: write the job so, or raise."""
    try:
        return agreed(job.but(scope=Scope.PARTITION), once=once)
    except InvalidInputError as error:
        return error


def as_session_says(job: SparkJob, dynamic: SparkJob | S3CommitError) -> SparkJob:
    """The job with the scope that the session of the running task says."""
    if task_scope(running_context()) is Scope.DIRECTORY:
        return job.but(scope=Scope.DIRECTORY)
    if isinstance(dynamic, S3CommitError):
        raise dynamic
    return dynamic


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame's rows as pending uploads, and asks for the commit.

    ``by_session``: the scope of what is replaced is the session's to say, so that the job is
    opened by its tasks, which alone know; see `if_dynamic`.
    """

    def __init__(
        self, job: SparkJob, *, by_session: SparkJob | S3CommitError | None = None
    ) -> None:
        self.job = job
        self.by_session = by_session

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one partition's rows; see `SparkJob.write_task`."""
        if self.by_session is None:
            return self.job.write_task(iterator)
        return as_session_says(self.job, self.by_session).open_and_write_task(iterator)

    @short_errors
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Ask for the commit of the attempts that Spark counted, and wait for the outcome.

        Raises what `Job.commit` raises. Spark then calls `abort`, which finds the request.
        """
        counted = all_of(messages, self.job.spec.job_id)
        job = self.job
        if self.by_session is not None:
            spec = next(message.spec for message in counted if message.spec)
            job = job.but(scope=spec.scope)
        job.commit(counted, opened=self.by_session is None)

    @short_errors
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """See `SparkJob.abort`."""
        self.job.abort("Spark gave the write up")


def all_of(messages: Sequence[WriterCommitMessage | None], job: str) -> list[TaskMessage]:
    """The messages, if there is one of each task; else raise `S3CommitError` (``TASK_MISSING``).

    To commit without a task would lose its rows in silence.
    """
    counted = [message for message in messages if isinstance(message, TaskMessage)]
    if len(counted) != len(messages) or not counted:
        raise S3CommitError(
            f"{len(messages) - len(counted)} of {len(messages)} tasks sent no word of what they"
            f" wrote; nothing of job {job} is committed. Write the data again.",
            code="TASK_MISSING",
        )
    return counted
