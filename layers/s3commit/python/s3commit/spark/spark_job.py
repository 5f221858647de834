"""One write of a DataFrame as a job: what its driver and its tasks share.

It is picklable and goes to the tasks; what they return is a `TaskMessage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from s3commit.arrow.files import write_rows
from s3commit.arrow.partitions import runs
from s3commit.core.documents.job_json import Who
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.spark.schema import WriteSchema, without_null_inside
from s3commit.writer.commit_result import CommitResult
from s3commit.writer.job import Job
from s3commit.writer.options import Options
from s3commit.writer.system import say
from s3commit.writer.table_write import begin, commit

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from s3commit.spark.progress import Tally

CLIENT: Final = "s3commit-spark"


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """A task's message to the driver. ``attempt`` is None if the task has written no file."""

    attempt: CountedAttempt | None
    rows: int


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A job with the schema of its rows and the user's options."""

    job: Job
    options: Options
    schema: WriteSchema
    tally: Accumulator[Tally] | None = None

    def write(self, batches: Iterator[pa.RecordBatch], partition: int, attempt: int) -> TaskMessage:
        """Write one partition's rows; runs in an executor's Python worker.

        ``attempt`` is Spark's number of this try, unique in the application. Any error aborts the
        attempt's uploads and reaches Spark, which tries the task again.
        """
        # Spark counts attempts per application; a second run of the job counts again.
        task = self.job.task(f"{partition:05d}", f"{attempt}-{self.job.environment.new_id()}")
        try:
            found = _data(batches, self.schema)
            rows = write_rows(task, partition, found, self.options, self.schema.of_files)
            message = TaskMessage(task.finish(), rows)
        except BaseException:
            for error in task.abort():
                say(f"an upload of task {partition} could not be aborted yet: {error}")
            raise
        if self.tally is not None:
            self.tally.add((message.attempt.files if message.attempt else 0, rows))
        return message

    def commit(self, messages: Sequence[TaskMessage]) -> CommitResult:
        """As `s3commit.writer.table_write.commit`."""
        rows = sum(message.rows for message in messages)
        return commit(self.job, [message.attempt for message in messages], rows)


def open_spark_job(options: Options, schema: WriteSchema, who: Who | None = None) -> SparkJob:
    """Start a job for the rows of a DataFrame. Raises as `begin`."""
    return SparkJob(begin(options, CLIENT, who), options, schema)


def _data(
    batches: Iterator[pa.RecordBatch], schema: WriteSchema
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows without the partition columns, with their directories."""
    for numbered in batches:
        columns = list(map(without_null_inside, numbered.columns))
        # The names are the schema's: `s3commit.spark.frames.arranged`.
        fields = map(pa.Field.with_name, numbered.schema, schema.names)
        batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
        yield from runs(batch, schema.partition_names)
