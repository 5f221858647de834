"""Structured Streaming: a micro-batch is a job, and its data is committed once.

Spark writes a batch again if it can't know that it was written: after a failure, a restart, or a
crash between the sink's commit and its own log. The job's idempotency key is therefore the query
and the batch, which a restart keeps (the checkpoint has both); its id comes from the run and the
batch, so that a replay is a new job with the old key, and at most one of them is ever committed.

Spark makes the writer anew to commit, so that only the tasks' messages say which job it is; a
query's ids are known to the tasks alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Conflict, JobSpec, Scope
from s3commit.spark.attempt import TaskMessage, running_context, write_late
from s3commit.spark.batch import all_of, commit
from s3commit.spark.connection import check_pipeline_once, shared_store
from s3commit.spark.messages import say
from s3commit.spark.options import Options
from s3commit.spark.policy import policy_of, session_scope
from s3commit.spark.schema import WriteSchema, check_schema, named_conditions
from s3commit.spark.user_errors import short_errors
from s3commit.writer.environment import SystemEnvironment, timestamp
from s3commit.writer.job import Job

CLIENT: Final = "s3commit-spark-streaming"
# Ids of jobs, made of the query's run and the batch.
_NAMESPACE: Final = uuid.UUID("5e6a7b0c-1c53-5d1c-9f7c-8f6d9d0f2a11")

# Spark sets them for the jobs of a query (StreamExecution, MicroBatchExecution).
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_RUN: Final = "spark.jobGroup.id"


def start_stream(options: Options, schema: StructType, overwrite: bool) -> StreamWriter:
    """Check everything that can be checked: `DataSource.streamWriter`'s work.

    Raises `InvalidInputError`, `NotFoundError` or `AccessError` before any data is uploaded.
    """
    policy = policy_of(options, overwrite=overwrite, stream=True)
    checked = check_schema(schema, options.partition_by, options.file_format)
    check_pipeline_once(options.destination.bucket)
    unnamed = JobSpec(
        job_id="",
        destination=options.destination,
        conflict=policy.conflict,
        scope=policy.scope or Scope.DIRECTORY,
        partition_by=checked.partition_names,
        created_at=timestamp(SystemEnvironment()),
        client=CLIENT,
        conditions=named_conditions(options.conditions, schema),
        locations=options.locations,
    )
    return StreamWriter(options, checked, unnamed, by_session=policy.scope is None)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a query, each as a job; see the module."""

    def __init__(
        self, options: Options, schema: WriteSchema, unnamed: JobSpec, *, by_session: bool
    ) -> None:
        self.options = options
        self.schema = schema
        self.unnamed = unnamed
        self.by_session = by_session

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one partition's rows of a batch; see `write_late`."""
        context = running_context()
        job = self._job(self._spec(context))
        return write_late(job, iterator, self.options, self.schema, context)

    @short_errors
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit the batch, or find that it was committed before; both let the query go on.

        A batch without rows is no job, unless its emptiness matters: it replaces what is there,
        or a condition has to judge it. Raises what `Job.commit` raises.
        """
        counted = all_of(messages, f"of batch {batchId}")
        job = self._job(_named(counted))
        empty = not any(message.attempt for message in counted)
        if empty and job.spec.conflict is Conflict.APPEND and not job.spec.conditions:
            return
        commit(job, counted, self.options, opened=False, what=f"batch {batchId}: ")

    @short_errors
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Ask for the abort; if a commit was asked for before, say so and change nothing.

        If no task has sent a message, no one here knows the job: what killed tasks have left of
        it, the pipeline's sweep finds.
        """
        told = [message for message in messages if isinstance(message, TaskMessage)]
        if any(message.attempt for message in told):
            job = self._job(_named(told))
            job.connect(shared_store(job.encryption))
            say(f"batch {batchId}: {job.abort('Spark gave the batch up').message}")

    def _job(self, spec: JobSpec) -> Job:
        return Job(spec, self.options.uploads, self.options.encryption)

    def _spec(self, context: TaskContext) -> JobSpec:
        query, batch, run = map(context.getLocalProperty, (_QUERY, _BATCH, _RUN))
        if not query or not batch or not run:
            raise S3CommitError(
                "Spark does not say which query and batch this task belongs to, without which no"
                " batch could be committed once; nothing was written",
                code="NO_QUERY",
            )
        scope = session_scope(context) if self.by_session else self.unnamed.scope
        return replace(
            self.unnamed,
            job_id=str(uuid.uuid5(_NAMESPACE, f"{run}/{batch}/{self.unnamed.destination.uri}")),
            idempotency_key=f"{query}/{batch}",
            scope=scope,
        )


def _named(messages: Sequence[TaskMessage]) -> JobSpec:
    return next(message.spec for message in messages if message.spec is not None)
