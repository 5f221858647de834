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
from s3commit.spark.earlier import earlier_job
from s3commit.spark.job import SparkJob, TaskMessage, running_context, spark_job
from s3commit.spark.messages import added_nothing, say
from s3commit.spark.options import Options
from s3commit.spark.policy import policy_of, task_scope
from s3commit.spark.schema_policy import agreed
from s3commit.spark.user_errors import short_errors


def start_batch(
    options: Options, schema: StructType, overwrite: bool
) -> BatchWriter | NothingToWrite:
    """Check everything that can be checked, then open the job: `DataSource.writer`'s work.

    If the data of the idempotency key is committed, there is nothing to do; a job whose outcome is
    not known yet is waited for. Raises `InvalidInputError`, `NotFoundError`, `AccessError` or
    `OutcomeUnknownError` before any data is uploaded.
    """
    policy = policy_of(options, overwrite=overwrite)
    earlier = earlier_job(options)
    if earlier is not None:
        return NothingToWrite(
            added_nothing(options.idempotency_key, earlier.directory, earlier.warning)
        )
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


class NothingToWrite(DataSourceArrowWriter):
    """For data that is committed already: takes no row, and says the ``line``."""

    def __init__(self, line: str) -> None:
        self.line = line

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Leave the rows where they are."""
        return TaskMessage(None, 0)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say it."""
        say(self.line)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing is to be taken back."""


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
