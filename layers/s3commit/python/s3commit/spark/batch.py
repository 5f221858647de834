"""The batch write: one job, a task attempt for each Spark task attempt, one commit.

Spark makes the writer once, in a process of its own, and pickles it to the tasks and to the
process that commits or aborts; none of these shares memory with another.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_client import Encryption, make_client
from s3commit.core.errors import InvalidInputError, S3CommitError
from s3commit.core.model import CountedAttempt, JobResult
from s3commit.spark.options import Options
from s3commit.spark.plainly import plainly
from s3commit.spark.rows import write_rows
from s3commit.spark.schema import WriteSchema, check_schema
from s3commit.writer.bucket import S3BucketProbe
from s3commit.writer.job import Job, open_job
from s3commit.writer.sizes import UploadSettings
from s3commit.writer.task import Task

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CLIENT = "s3commit-spark"


@dataclass(slots=True)
class TaskMessage(WriterCommitMessage):
    """What a task tells the driver. ``attempt`` is None if the task had no rows."""

    attempt: CountedAttempt | None
    rows: int


def start_batch(options: Options, schema: StructType, overwrite: bool) -> BatchWriter:
    """Check everything that can be checked, then open the job: `DataSource.writer`'s work.

    Raises `InvalidInputError`, `NotFoundError` or `AccessError` before any data is uploaded.
    """
    _check_supported(options, overwrite)
    checked = check_schema(schema, options.partition_by)
    job = open_job(
        options.destination.uri,
        conflict=options.conflict.value,
        scope=options.scope.value,
        partition_by=checked.partition_names,
        conditions=options.conditions,
        client=CLIENT,
        # Encoded bytes on their way: beyond it they wait on disk.
        settings=UploadSettings(
            memory_bytes=options.memory_budget // 8,
            in_flight_bytes=options.memory_budget * 3 // 32,
        ),
        store=shared_store(None),
        probe=S3BucketProbe(shared_client()),
    )
    return BatchWriter(options, checked, job)


def _check_supported(options: Options, overwrite: bool) -> None:
    unsupported = {
        "mode 'overwrite' is not supported yet: use .mode('append')": overwrite,
        "option idempotencyKey is not supported yet: leave it out": options.idempotency_key,
        "options conditions.* are not supported yet: leave them out": options.conditions,
        "option jobId chooses what to read: a write makes its own id": options.job_id,
    }
    for line, given in unsupported.items():
        if given:
            raise InvalidInputError(f"{line}. Nothing was written.", code="UNSUPPORTED_OPTION")


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame's rows as pending uploads, and asks for the commit."""

    def __init__(self, options: Options, schema: WriteSchema, job: Job) -> None:
        self.options = options
        self.schema = schema
        self.job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one partition's rows; runs in an executor's Python worker.

        Any error aborts the attempt's uploads and reaches Spark, which tries the task again.
        """
        context = TaskContext.get()
        if context is None:
            raise S3CommitError("write() was called outside of a Spark task", code="NO_TASK")
        partition = context.partitionId()
        task = Task(
            self.job.directory,
            f"{partition:05d}",
            # Spark counts attempts per application; a second run of the job counts again.
            f"{context.taskAttemptId()}-{self.job.environment.new_id()}",
            shared_store(self.job.encryption),
            settings=self.job.settings,
            environment=self.job.environment,
        )
        try:
            rows = write_rows(task, partition, iterator, self.options, self.schema)
            return TaskMessage(task.finish(), rows)
        except BaseException:
            for error in task.abort():
                _say(f"an upload of task {partition} could not be aborted yet: {error}")
            raise

    @plainly
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Ask for the commit of the attempts that Spark counted, and wait for the outcome.

        Raises what `Job.commit` raises. Spark then calls `abort`, which finds the request.
        """
        counted = [message for message in messages if isinstance(message, TaskMessage)]
        if len(counted) != len(messages):
            # To commit without that task would lose its rows in silence.
            raise S3CommitError(
                f"{len(messages) - len(counted)} of {len(messages)} tasks sent no word of what they"
                f" wrote; nothing of job {self.job.job_id} is committed. Write the data again.",
                code="TASK_MISSING",
            )
        self.job.connect(shared_store(self.job.encryption))
        result = self.job.commit(
            (message.attempt for message in counted), timeout=self.options.commit_timeout
        )
        _say(_summary(result, sum(message.rows for message in counted), self.job))

    @plainly
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Ask for the abort; if a commit was asked for before, say so and change nothing."""
        self.job.connect(shared_store(self.job.encryption))
        _say(self.job.abort("Spark gave the write up").message)


@functools.lru_cache(maxsize=1)
def shared_client() -> S3Client:
    """The process's client."""
    return make_client()


@functools.lru_cache(maxsize=1)
def shared_store(encryption: Encryption | None) -> S3ObjectStore:
    """The process's store: Spark uses its Python workers again, and a client takes 0.25 s."""
    return S3ObjectStore(shared_client(), encryption=encryption)


def _summary(result: JobResult, rows: int, job: Job) -> str:
    files = "1 file" if result.files == 1 else f"{result.files:,} files"
    return (
        f"committed {files}, {_size(result.bytes)}, {rows:,} rows;"
        f" see: s3commit show {job.directory.uri}"
    )


def _size(size: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TB"


def _say(line: str) -> None:
    # Spark shows what its Python workers write on the driver's standard error.
    sys.stderr.write(f"s3commit: {line}\n")
    sys.stderr.flush()
