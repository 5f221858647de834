"""`write` a DataFrame on any Spark from 3.5 on, classic or Connect, and get the result.

The rows go through ``mapInArrow``. Each task answers with one row, its `TaskMessage`, and Spark
returns the row of exactly one attempt of each task: those are the attempts that the job counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final

from s3commit.core.model.errors import InvalidInputError, JobFailedError, S3CommitError
from s3commit.core.model.job import Conflict, JobResult
from s3commit.spark.frames import (
    NOT_EMPTY,
    WAY_OUT,
    arranged,
    check_frame,
    check_versions,
    earlier_job,
    refresh_cached,
    refused,
)
from s3commit.spark.progress import shown, tally_of
from s3commit.spark.task_errors import for_the_driver, of_a_task
from s3commit.writer.environment import say

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from s3commit.core.formats.layout import JobDirectory
    from s3commit.spark.job import SparkJob, TaskMessage
    from s3commit.spark.options import Options

_QUERY_ID: Final = "sql.streaming.queryId"  # a local property that StreamExecution sets
_MESSAGE: Final = "message"


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a write has committed. All values are plain: ``dataclasses.asdict`` of it is JSON.

    ``replaced`` counts the older files that were removed. ``manifest`` is the list of the
    committed files. ``already_committed``: an earlier job with the same idempotency key has
    committed the data, this one added nothing, and ``job_id`` and ``manifest`` are the earlier's.
    """

    job_id: str
    destination: str
    files: int
    rows: int
    bytes: int
    replaced: int
    manifest: str
    already_committed: bool = False

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        cells = ((name, str(value)) for name, value in asdict(self).items())
        rows = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in cells)
        return f"<table>{''.join(rows)}</table>"


def write(
    frame: DataFrame,
    path: str,
    *,
    mode: str = "error",
    partition_by: str | Sequence[str] | None = None,
    format: str = "parquet",
    progress: bool | None = None,
    **options: Any,
) -> CommitResult:
    """Write the rows of ``frame`` to ``path`` (``s3://bucket/prefix/``); return once committed.

    With an ``idempotencyKey`` no task runs if a job with this key was committed.

    ``mode`` is Spark's: ``error`` (the default) refuses if files are there, before the first task
    and once more at the decision; ``append``; ``overwrite``. ``partition_by`` names the columns
    for the directories; Spark sorts each task's rows by them. The files are parquet: ``format`` is
    there for who gives it. ``progress`` shows files and rows as tasks end, on standard error; by
    default in a terminal or a notebook alone (not with Spark Connect). ``options`` are those of
    docs/spark.md: ``idempotencyKey="..."``, ``**{"conditions.minRows": 1}``.

    Raises `InvalidInputError`, `NotFoundError` or `AccessError` before any row is read;
    `JobFailedError` if the job was not committed; `OutcomeUnknownError` after ``commitTimeout``;
    what the tasks raised if they failed for good: then the job is aborted.
    """
    if hasattr(path, "mapInArrow"):
        raise refused("the DataFrame comes first: write(frame, path)")
    parsed = _parsed(path, mode, partition_by, format, options)
    result = _write(frame, parsed, progress=progress)
    assert result is not None  # noqa: S101 - a job without rows is committed too
    return result


def batch_writer(
    path: str,
    *,
    query: str | None = None,
    mode: str = "append",
    partition_by: str | Sequence[str] | None = None,
    format: str = "parquet",
    **options: Any,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that writes each micro-batch exactly once.

    Spark repeats a batch if it can't know that it was written. The idempotency key is
    therefore ``query``, which must stay the same when the stream is restarted, and the batch's
    number; by default it is the query's id, which its checkpoint keeps. Spark Connect does not
    show it, so there ``query`` is needed. A batch without rows is not written if ``mode`` is
    ``append`` and no condition has to judge it.

    Raises as `write`, which ends the query; restarted, it repeats the same batch.
    """
    parsed = _parsed(path, mode, partition_by, format, options)

    def write_batch(frame: DataFrame, number: int) -> None:
        key = f"{_query_id(frame) if query is None else query}/{number}"
        _write(frame, replace(parsed, idempotency_key=key), rows_needed=True)

    return write_batch


def _query_id(frame: DataFrame) -> str:
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    except PySparkException:  # Spark Connect
        found = None
    if not found:
        raise InvalidInputError(
            "Spark does not say here which query the batch belongs to: give the query a name that"
            " stays the same when it is restarted, batch_writer(path, query='...'). Nothing was"
            " written.",
            code="NO_QUERY",
        )
    return str(found)


def _parsed(
    path: str,
    mode: str,
    partition_by: str | Sequence[str] | None,
    file_format: str,
    more: Mapping[str, Any],
) -> Options:
    check_versions()
    from s3commit.spark.options import parse_options  # noqa: PLC0415

    if file_format != "parquet":
        raise refused(
            f"write writes parquet, not {file_format}: with the jar Spark's own writers write every"
            " format that they have, frame.write.format(...) (docs/guide/native.md)"
        )
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by or ())
    return parse_options(path, more, mode=mode, partition_by=columns)


def _write(
    frame: DataFrame,
    options: Options,
    *,
    rows_needed: bool = False,
    progress: bool | None = False,
) -> CommitResult | None:
    """Write; with ``rows_needed`` a job that would change nothing is aborted, and None returned."""
    check_frame(frame)
    earlier = earlier_job(options.destination, options.idempotency_key)
    if earlier is not None:  # no task has to run for that
        say(
            f"the data of idempotencyKey {options.idempotency_key!r} was committed by job"
            f" {earlier.job_id}; nothing was run, and nothing is added; see: s3commit show"
            f" {earlier.typed}"
        )
        refresh_cached(frame, options.destination)
        return _result(earlier)
    tally = tally_of(frame.sparkSession, wanted=progress)
    job = replace(_open(frame, options), tally=tally)
    with job.job as opened:  # aborts the job in an error
        with shown(tally):
            messages = _run(frame, job)
        rows = sum(message.rows for message in messages)
        spec = opened.spec
        if rows_needed and not rows and spec.conflict is Conflict.APPEND and not spec.conditions:
            opened.abort("the batch has no rows")
            return None
        try:
            result = job.commit(messages)
        except JobFailedError as error:
            if error.code != NOT_EMPTY:
                raise
            raise JobFailedError(f"{error.message}; {WAY_OUT}", code=NOT_EMPTY) from error
    refresh_cached(frame, options.destination)
    if result.already_committed:
        return _result(
            earlier_job(options.destination, options.idempotency_key) or opened.directory
        )
    return _result(opened.directory, result, rows)


def _open(frame: DataFrame, options: Options) -> SparkJob:
    from s3commit.spark.job import open_spark_job  # noqa: PLC0415
    from s3commit.spark.options import SESSION_SCOPE  # noqa: PLC0415
    from s3commit.spark.parquet_settings import (  # noqa: PLC0415
        FIELD_IDS,
        refuse_unlike,
        settings_of,
    )
    from s3commit.spark.schema import check_schema  # noqa: PLC0415
    from s3commit.spark.session import obey  # noqa: PLC0415
    from s3commit.writer.who import this_program  # noqa: PLC0415

    settings = frame.sparkSession.conf

    def setting(name: str) -> str | None:
        return settings.get(name, None)

    scope = options.scope_in(setting(SESSION_SCOPE))
    with_ids = str(setting(FIELD_IDS)).lower() != "false"
    schema = check_schema(frame.schema, options.partition_by, with_field_ids=with_ids)
    refuse_unlike(settings_of(frame), schema.data)
    options = obey(options, setting)
    who = this_program(setting("spark.app.id") or "", setting("spark.app.name") or "")
    return open_spark_job(options, schema, scope, who)


def _run(frame: DataFrame, job: SparkJob) -> list[TaskMessage]:
    """Run the tasks; the messages of those attempts that Spark counts, one of each task."""
    try:
        rows = (
            arranged(frame, job.schema.partition_positions)
            .mapInArrow(_task(job), f"{_MESSAGE} binary")
            .collect()
        )
    except Exception as error:
        ours = of_a_task(error)
        if ours is None:
            raise
        raise ours from error
    messages = [pickle.loads(row[_MESSAGE]) for row in rows]  # noqa: S301 - our own tasks' answers
    # A plan without partitions runs no task: the file that keeps the schema is written here.
    return messages or [job.write(iter(()), partition=0, attempt=0)]


def _task(job: SparkJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow  # noqa: PLC0415
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None  # noqa: S101 - every task has one
        try:
            message = job.write(batches, context.partitionId(), context.taskAttemptId())
        except S3CommitError as error:
            raise for_the_driver(error) from None
        yield pyarrow.record_batch({_MESSAGE: [pickle.dumps(message)]})

    return task


def _result(
    directory: JobDirectory, result: JobResult | None = None, rows: int = 0
) -> CommitResult:
    """What ``directory``'s job has committed; without a result it is an earlier one."""
    return CommitResult(
        job_id=directory.job_id,
        destination=directory.destination.uri,
        files=result.files if result else 0,
        rows=rows,
        bytes=result.bytes if result else 0,
        replaced=result.replaced if result else 0,
        manifest=f"s3://{directory.bucket}/{directory.commits}",
        already_committed=result is None,
    )
