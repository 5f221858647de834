"""Structured Streaming: a micro-batch is a job, and its data is committed once.

Spark writes a batch again if it can't know that it was written: after a failure, a restart, or a
crash between the sink's commit and its own log. The job's idempotency key is therefore the query
and the batch, which a restart keeps (the checkpoint has both); its id comes from the run and the
batch, so that a replay is a new job with the old key, and at most one of them is ever committed.

Spark makes the writer anew to commit, so that only the tasks' messages say which job it is; a
query's ids are known to the tasks alone.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Conflict, Destination
from s3commit.spark.batch import all_of, as_session_says, if_dynamic
from s3commit.spark.job import QUERY_ID, SparkJob, TaskMessage, running_context, spark_job
from s3commit.spark.options import Options
from s3commit.spark.policy import policy_of
from s3commit.spark.schema_policy import agreed
from s3commit.spark.user_errors import short_errors
from s3commit.writer.bucket import S3BucketProbe, check_pipeline
from s3commit.writer.connect import shared_client

CLIENT: Final = "s3commit-spark-streaming"
# Ids of jobs, made of the query's run and the batch.
_NAMESPACE: Final = uuid.UUID("5e6a7b0c-1c53-5d1c-9f7c-8f6d9d0f2a11")

# As `QUERY_ID`, Spark sets them for the jobs of a query (StreamExecution, MicroBatchExecution).
_BATCH: Final = "streaming.sql.batchId"
_RUN: Final = "spark.jobGroup.id"


def start_stream(options: Options, schema: StructType, overwrite: bool) -> StreamWriter:
    """Check everything that can be checked: `DataSource.streamWriter`'s work.

    Raises `InvalidInputError`, `NotFoundError` or `AccessError` before any data is uploaded.
    """
    policy = policy_of(options, overwrite=overwrite, stream=True)
    unnamed = spark_job(options, schema, policy, client=CLIENT)
    _check_pipeline(options.destination.bucket)
    if policy.scope is None:
        return StreamWriter(unnamed, by_session=if_dynamic(unnamed, once=True))
    return StreamWriter(agreed(unnamed, once=True))


@functools.lru_cache(maxsize=64)
def _check_pipeline(bucket: str) -> None:
    """Raise `NotFoundError` if the bucket or its pipeline is missing; not at every micro-batch."""
    check_pipeline(S3BucketProbe(shared_client()), Destination(bucket, "/"))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a query, each as a job; see the module."""

    def __init__(
        self, unnamed: SparkJob, *, by_session: SparkJob | S3CommitError | None = None
    ) -> None:
        self.unnamed = unnamed
        self.by_session = by_session

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one partition's rows of a batch; see `SparkJob.open_and_write_task`."""
        return self._job(running_context()).open_and_write_task(iterator)

    @short_errors
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit the batch, or find that it was committed before; both let the query go on.

        A batch without rows is no job, unless its emptiness matters: it replaces what is there,
        or a condition has to judge it. Raises what `Job.commit` raises.
        """
        counted = all_of(messages, f"of batch {batchId}")
        job = self._named(counted)
        empty = not any(message.attempt for message in counted)
        spec = job.spec
        if empty and spec.conflict is Conflict.APPEND and not spec.conditions:
            return
        job.commit(counted, opened=False, what=f"batch {batchId}: ")

    @short_errors
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Ask for the abort; if a commit was asked for before, say so and change nothing.

        If no task has sent a message, no one here knows the job: what killed tasks have left of
        it, the pipeline's sweep finds.
        """
        told = [message for message in messages if isinstance(message, TaskMessage)]
        if any(message.attempt for message in told):
            self._named(told).abort("Spark gave the batch up", f"batch {batchId}: ")

    def _job(self, context: TaskContext) -> SparkJob:
        query, batch, run = map(context.getLocalProperty, (QUERY_ID, _BATCH, _RUN))
        if not query or not batch or not run:
            raise S3CommitError(
                "Spark does not say which query and batch this task belongs to, without which no"
                " batch could be committed once; nothing was written",
                code="NO_QUERY",
            )
        unnamed = self.unnamed
        if self.by_session is not None:
            unnamed = as_session_says(unnamed, self.by_session)
        return unnamed.but(
            job_id=str(uuid.uuid5(_NAMESPACE, f"{run}/{batch}/{unnamed.spec.destination.uri}")),
            idempotency_key=f"{query}/{batch}",
        )

    def _named(self, messages: Sequence[TaskMessage]) -> SparkJob:
        spec = next(message.spec for message in messages if message.spec is not None)
        return replace(self.unnamed, job=replace(self.unnamed.job, spec=spec))
