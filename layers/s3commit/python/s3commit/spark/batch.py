"""The batch write: one job, a task attempt for each Spark task attempt, one commit.

Spark makes the writer once, in a process of its own, and pickles it to the tasks and to the
process that commits or aborts; none of these shares memory with another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import JobSpec, Scope
from s3commit.spark.attempt import TaskMessage, running_context, write_attempt, write_late
from s3commit.spark.connection import shared_client, shared_store
from s3commit.spark.messages import say, summary
from s3commit.spark.options import Options
from s3commit.spark.policy import policy_of, session_scope
from s3commit.spark.schema import WriteSchema, check_schema, named_conditions
from s3commit.spark.user_errors import short_errors
from s3commit.writer.bucket import S3BucketProbe
from s3commit.writer.environment import SystemEnvironment, timestamp
from s3commit.writer.job import Job, put_job, start

CLIENT = "s3commit-spark"


def start_batch(options: Options, schema: StructType, overwrite: bool) -> BatchWriter:
    """Check everything that can be checked, then open the job: `DataSource.writer`'s work.

    Raises `InvalidInputError`, `NotFoundError` or `AccessError` before any data is uploaded.
    """
    policy = policy_of(options, overwrite=overwrite)
    checked = check_schema(schema, options.partition_by, options.file_format)
    environment = SystemEnvironment()
    spec = JobSpec(
        job_id=environment.new_id(),
        destination=options.destination,
        conflict=policy.conflict,
        scope=policy.scope or Scope.DIRECTORY,
        partition_by=checked.partition_names,
        idempotency_key=options.idempotency_key,
        created_at=timestamp(environment),
        client=CLIENT,
        conditions=named_conditions(options.conditions, schema),
        locations=options.locations,
    )
    job = start(
        Job(spec, options.uploads, options.encryption),
        shared_store(options.encryption),
        S3BucketProbe(shared_client()),
        opens=policy.scope is not None,
    )
    return BatchWriter(options, checked, job, by_session=policy.scope is None)


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame's rows as pending uploads, and asks for the commit.

    ``by_session``: the scope of what is replaced is the session's to say, so that the job is
    opened by its tasks, which alone know.
    """

    def __init__(
        self, options: Options, schema: WriteSchema, job: Job, *, by_session: bool = False
    ) -> None:
        self.options = options
        self.schema = schema
        self.job = job
        self.by_session = by_session

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one partition's rows; see `write_attempt`."""
        context = running_context()
        if not self.by_session:
            return write_attempt(self.job, iterator, self.options, self.schema, context)
        spec = replace(self.job.spec, scope=session_scope(context))
        return write_late(
            replace(self.job, spec=spec), iterator, self.options, self.schema, context
        )

    @short_errors
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Ask for the commit of the attempts that Spark counted, and wait for the outcome.

        Raises what `Job.commit` raises. Spark then calls `abort`, which finds the request.
        """
        counted = all_of(messages, self.job.job_id)
        job = self.job
        if self.by_session:
            job = replace(job, spec=next(message.spec for message in counted if message.spec))
        commit(job, counted, self.options, opened=not self.by_session)

    @short_errors
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Ask for the abort; if a commit was asked for before, say so and change nothing."""
        self.job.connect(shared_store(self.job.encryption))
        say(self.job.abort("Spark gave the write up").message)


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


def commit(
    job: Job, counted: Sequence[TaskMessage], options: Options, *, opened: bool, what: str = ""
) -> None:
    """Ask for the commit, wait for the outcome, and say it; ``opened``: ``job.json`` is there."""
    store = shared_store(job.encryption)
    if not opened and not any(message.attempt for message in counted):
        put_job(store, job.spec)  # no task had rows, so that none has put it
    job.connect(store)
    result = job.commit((message.attempt for message in counted), timeout=options.commit_timeout)
    say(summary(result, sum(message.rows for message in counted), job.directory, what))
