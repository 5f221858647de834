"""The tasks of a job that writes a DataFrame, in Spark's Python workers.

The rows go through ``mapInArrow``. Each task answers with one row, its `TaskMessage`, and Spark
returns the row of exactly one attempt of each task: those are the attempts that the job counts. Of
a task's `S3CommitError` the driver sees a traceback's text alone.
"""

from __future__ import annotations

import functools
import gc
import pickle
import re
import struct
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext

from s3commit.arrow.files import write_rows
from s3commit.arrow.partitions import runs
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.errors import S3CommitError
from s3commit.spark.batches import collect
from s3commit.spark.schema import WriteSchema, without_null_inside
from s3commit.writer.system import say
from s3commit.writer.task import Task, another, connect

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame

    from s3commit.spark.progress import Tally

_MESSAGE: Final = "message"
_SHOWN: Final = re.compile(
    rf"^{re.escape(S3CommitError.__module__)}\.S3CommitError: \[(\w+) (\w+)\] (.*)$", re.MULTILINE
)
# A task's answer to the driver: the attempt, None if it has written no file, and its rows.
TaskMessage = tuple[CountedAttempt | None, int]


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A job with the schema of its rows. It is pickled for the tasks.

    ``pattern`` is any task of the job without files: an executor's process need not load a `Job`.
    """

    pattern: Task
    schema: WriteSchema
    tally: Accumulator[Tally] | None = None
    keeps_schema: bool = True

    def write(self, batches: Iterator[pa.RecordBatch], partition: int, attempt: int) -> TaskMessage:
        """Write one partition's rows; runs in an executor's Python worker.

        ``attempt`` is Spark's number of this try, unique in the application. Any error aborts the
        attempt's uploads and reaches Spark, which tries the task again.
        """
        # Spark counts attempts per application; a second run of the job counts again.
        task = another(self.pattern, f"{partition:05d}", f"{attempt}-{uuid.uuid4()}")
        try:
            found = _data(batches, self.schema)
            of_files, keeps = self.schema.of_files, self.keeps_schema
            rows = write_rows(task, partition, found, of_files, keeps_schema=keeps)
            counted = task.finish()
        except BaseException:
            for error in task.abort():
                say(f"an upload of task {partition} could not be aborted yet: {error}")
            raise
        if self.tally is not None:
            self.tally.add((counted.files if counted else 0, rows))
        return counted, rows


def run(df: DataFrame, job: SparkJob) -> list[TaskMessage]:
    """Run the tasks; the messages of those attempts that Spark counts, one of each task.

    Raises the tasks' error, if their retries failed too.
    """
    try:
        arranged = _arranged(df, job.schema.partition_positions)
        rows = collect(arranged.mapInArrow(_task(job), f"{_MESSAGE} binary"))
    except Exception as error:
        ours = of_a_task(error)
        if ours is None:
            raise
        raise ours from error
    messages = [pickle.loads(row[_MESSAGE]) for row in rows]  # noqa: S301 - our own tasks' answers
    # A plan without partitions runs no task: the file that keeps the schema is written here.
    return messages or [job.write(iter(()), partition=0, attempt=0)]


def _arranged(frame: DataFrame, partitions: Sequence[int]) -> DataFrame:
    """The rows in the order of their directories, so that each task has one file open.

    ``partitions`` are the positions of the partition columns, which become texts, cast by Spark as
    for its own directories' names. The columns are named by their positions (`_by_position`):
    PySpark parses the names that it is given, and a user's name may have a dot or a backtick.
    """
    plain = frame.toDF(*map(_by_position, range(len(frame.columns))))
    names = list(map(_by_position, partitions))
    if not names:
        return plain
    if not _is_sorted(frame, partitions):
        plain = plain.sortWithinPartitions(*names)
    return plain.withColumns({name: plain[name].cast("string") for name in names})


def _by_position(number: int) -> str:
    """The form in which the tasks get a column."""
    return f"c{number}"


def _is_sorted(frame: DataFrame, partitions: Sequence[int]) -> bool:
    """True if Spark knows that the columns at these positions come first in the rows' order.

    A sort would drop that order, which may have more columns. Spark's own writer looks too
    (org.apache.spark.sql.execution.datasources.V1WritesUtils.isOrderingMatched). With
    Spark Connect the order is not known.
    """
    if not hasattr(frame, "_jdf"):
        return False
    plan = frame._jdf.queryExecution().analyzed()
    columns, ordering = plan.output(), plan.outputOrdering()
    if ordering.size() < len(partitions):
        return False
    first = [ordering.apply(number).child() for number in range(len(partitions))]
    return all(
        one.getClass().getSimpleName() == "AttributeReference"
        and one.exprId().equals(columns.apply(position).exprId())
        for one, position in zip(first, partitions, strict=True)
    )


def _task(job: SparkJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None  # noqa: S101 - every task has one
        try:
            yield answer(job, batches, context.partitionId(), context.taskAttemptId())
        except S3CommitError as error:
            raise for_the_driver(error) from None

    return task


def answer(
    job: SparkJob, batches: Iterator[pa.RecordBatch], partition: int, attempt: int
) -> pa.RecordBatch:
    """Write a partition's rows in an executor's process; the message, as one row."""
    # To connect takes a new process 0.2 s, in which Spark makes the first rows.
    threading.Thread(target=_connect, args=(job.pattern,), daemon=True).start()
    return _one_row(pickle.dumps(job.write(batches, partition, attempt)))


def _connect(task: Task) -> None:
    """Connect the process, and keep what it has loaded out of later collections of garbage.

    Spark's daemon collects after each task (pyspark/daemon.py). With botocore's models that takes
    longer than to write a small file.
    """
    with suppress(S3CommitError):  # the first file tries again
        connect(task)
        _freeze()


_freeze: Final = functools.cache(gc.freeze)


def _one_row(message: bytes) -> pa.RecordBatch:
    """From a list of Python's pyarrow would import pandas, which takes 0.25 s."""
    ends = pa.py_buffer(struct.pack("=ii", 0, len(message)))
    column = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(message)])
    return pa.RecordBatch.from_arrays([column], [_MESSAGE])


def _data(
    batches: Iterator[pa.RecordBatch], schema: WriteSchema
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows without the partition columns, with their directories."""
    named: pa.Schema | None = None
    for numbered in batches:
        columns = list(map(without_null_inside, numbered.columns))
        if named is None:  # once: batches may be small
            # The names are the schema's: `_arranged`.
            named = pa.schema(map(pa.Field.with_name, numbered.schema, schema.names))
        batch = pa.RecordBatch.from_arrays(columns, schema=named)
        yield from runs(batch, schema.partition_names)


def for_the_driver(error: S3CommitError) -> S3CommitError:
    """The error that a task raises for ``error``: class and code are in the text.

    Without a traceback: Spark Connect hands on the first 2 KB of that alone.
    """
    return S3CommitError(f"[{type(error).__name__} {error.code}] {one_line(error.message)}")


def of_a_task(error: Exception) -> S3CommitError | None:
    """The error that a task raised, if Spark's ``error`` shows one; of several tries the last.

    A class that this process does not know is an `S3CommitError` here.
    """
    found = _SHOWN.findall(str(error))
    if not found:
        return None
    name, code, message = found[-1]
    kind = next((one for one in _kinds(S3CommitError) if one.__name__ == name), S3CommitError)
    return kind(message, code=code)


def _kinds(kind: type[S3CommitError]) -> Iterator[type[S3CommitError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
