"""One write of a DataFrame as a job: what its driver and its tasks share.

It is picklable and goes to the tasks; what they return is a `TaskMessage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.job import Conflict, CountedAttempt, JobResult, Scope, Who
from s3commit.spark.files import write_rows
from s3commit.spark.frames import refuse_files
from s3commit.spark.options import Options
from s3commit.spark.schema import WriteSchema
from s3commit.writer.connect import check_pipeline, shared_client, shared_store
from s3commit.writer.environment import say
from s3commit.writer.job import Job, open_job
from s3commit.writer.place import check_place, side_by_side

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from s3commit.spark.progress import Tally

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
    tally: Accumulator[Tally] | None = None

    def write(self, batches: Iterator[pa.RecordBatch], partition: int, attempt: int) -> TaskMessage:
        """Write one partition's rows; runs in an executor's Python worker.

        ``attempt`` is Spark's number of this try, unique in the application. Any error aborts the
        attempt's uploads and reaches Spark, which tries the task again.
        """
        # Spark counts attempts per application; a second run of the job counts again.
        task = self.job.task(f"{partition:05d}", f"{attempt}-{self.job.environment.new_id()}")
        try:
            rows = write_rows(task, partition, batches, self.options, self.schema)
            message = TaskMessage(task.finish(), rows)
        except BaseException:
            for error in task.abort():
                say(f"an upload of task {partition} could not be aborted yet: {error}")
            raise
        if self.tally is not None:
            self.tally.add((message.attempt.files if message.attempt else 0, rows))
        return message

    def commit(self, messages: Sequence[TaskMessage]) -> JobResult:
        """Ask for the commit, wait for the outcome, and print both; raises as `Job.commit`."""
        attempts = [message.attempt for message in messages]
        rows, written = sum(message.rows for message in messages), [one for one in attempts if one]
        total = sum(one.bytes for one in written)
        ended = amount(sum(one.files for one in written), total, rows)
        say(f"the tasks have ended with {ended}; requesting the commit of job {self.job.job_id}")
        result = self.job.commit(attempts, timeout=self.options.commit_timeout)
        say(summary(result, rows, self.job.directory))
        return result


def open_spark_job(
    options: Options, schema: WriteSchema, scope: Scope, who: Who | None = None
) -> SparkJob:
    """Start a job for the rows of a DataFrame.

    Raises as `check_pipeline`, `check_place`, `refuse_files` and `open_job`.
    """
    store, columns = shared_store(options.encryption), schema.partition_names
    place, stays = options.destination, options.check_partitions
    stays &= (options.conflict, scope) != (Conflict.REPLACE, Scope.DIRECTORY)
    looks: list[Callable[[], Any]] = [
        partial(check_pipeline, shared_client(), place),
        partial(check_place, store, place, columns, others_stay=stays),
    ]
    if (options.conflict, scope) == (Conflict.FAIL, Scope.DIRECTORY):
        looks.append(partial(refuse_files, place))
    side_by_side(*looks)
    job = open_job(
        options.destination.uri,
        conflict=options.conflict,
        scope=scope,
        partition_by=columns,
        conditions=options.conditions,
        idempotency_key=options.idempotency_key,
        settings=options.uploads,
        encryption=options.encryption,
        client=CLIENT,
        who=who,
        store=store,
    )
    say(f"job {job.job_id} begins; see: s3commit show --follow {job.directory.typed}")
    return SparkJob(job, options, schema)


def summary(result: JobResult, rows: int, directory: JobDirectory) -> str:
    """The line about a job that ended well."""
    if result.already_committed and result.error is not None:
        return result.error.message
    written = amount(result.files, result.bytes, rows)
    done = f"committed {written}"
    if result.replaced:
        done = f"replaced {many(result.replaced, 'file')} with {written}"
    return f"{done}; see: s3commit show {directory.typed}"
