"""The batch write of ``format("s3commit")``: one job, one commit.

Spark makes the writer once, in a process of its own, and pickles it to the tasks and to the
process that commits or aborts; none of these shares memory with another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from s3commit.core.model.errors import S3CommitError
from s3commit.spark.job import SparkJob, TaskMessage, running_context, spark_job
from s3commit.spark.options import Options
from s3commit.spark.policy import policy_of, task_scope
from s3commit.spark.user_errors import short_errors


def start_batch(options: Options, schema: StructType, overwrite: bool) -> BatchWriter:
    """Check everything that can be checked, then open the job: `DataSource.writer`'s work.

    Raises `InvalidInputError`, `NotFoundError` or `AccessError` before any data is uploaded.
    """
    policy = policy_of(options, overwrite=overwrite)
    by_session = policy.scope is None
    job = spark_job(options, schema, policy).open(by_tasks=by_session)
    return BatchWriter(job, by_session=by_session)


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame's rows as pending uploads, and asks for the commit.

    ``by_session``: the scope of what is replaced is the session's to say, so that the job is
    opened by its tasks, which alone know.
    """

    def __init__(self, job: SparkJob, *, by_session: bool = False) -> None:
        self.job = job
        self.by_session = by_session

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one partition's rows; see `SparkJob.write_task`."""
        if not self.by_session:
            return self.job.write_task(iterator)
        return self.job.but(scope=task_scope(running_context())).open_and_write_task(iterator)

    @short_errors
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Ask for the commit of the attempts that Spark counted, and wait for the outcome.

        Raises what `Job.commit` raises. Spark then calls `abort`, which finds the request.
        """
        counted = all_of(messages, self.job.spec.job_id)
        job = self.job
        if self.by_session:
            spec = next(message.spec for message in counted if message.spec)
            job = job.but(scope=spec.scope)
        job.commit(counted, opened=not self.by_session)

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
