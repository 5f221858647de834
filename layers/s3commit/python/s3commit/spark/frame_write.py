"""`write` a DataFrame on any Spark from 3.5 on, classic or Connect, and get the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from s3commit.aws.clients import Boto3Session, Encryption
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import AccessError
from s3commit.spark.progress import shown, tally_of
from s3commit.writer.commit_result import CommitResult, check_versions
from s3commit.writer.options import (
    Compression,
    Mode,
    Options,
    OverwriteMode,
    for_a_table,
    keywords_of,
    make_options,
    nothing_written,
    refused,
)
from s3commit.writer.strays import refusing_strays
from s3commit.writer.transfer import UploadSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from s3commit.core.documents.job_json import Who
    from s3commit.spark.schema import WriteSchema
    from s3commit.writer.table_write import CheckSchema

_CLIENT: Final = "s3commit-spark"


@refusing_strays
def write(
    df: DataFrame,
    path: str,
    *,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = None,
    partition_overwrite_mode: OverwriteMode | None = None,
    idempotency_key: str | None = None,
    note: str | None = None,
    labels: Mapping[str, str] | None = None,
    min_rows: int | None = None,
    max_rows: int | None = None,
    min_files: int | None = None,
    checks: Mapping[str, Mapping[str, Any]] | None = None,
    commit_timeout: float | None = None,
    compression: Compression | None = None,
    max_records_per_file: int | None = None,
    check_partitions: bool | None = None,
    check_names: bool | None = None,
    check_schema: bool | None = None,
    uploads: UploadSettings | None = None,
    encryption: Encryption | None = None,
    boto3_session: Boto3Session | None = None,
    progress: bool | None = None,
    dry_run: bool = False,
) -> CommitResult:
    """Write the rows of ``df`` as Parquet to ``path``; return once they are committed.

    Args:
        df: a DataFrame of Spark, classic or Connect.
        path: the directory, ``s3://bucket/prefix/``.
        mode: ``error`` refuses if files are there; ``append``; ``overwrite`` removes them once all
            new ones are visible.
        partition_by: the columns for the directories, a name or several. Spark sorts each task's
            rows by them.
        partition_overwrite_mode: ``static``, all of the destination, or ``dynamic``, the partitions
            that the job writes; by default as the session says.
        idempotency_key: of the jobs with one key at one destination at most one is committed. No
            task runs if one was.
        note: a text for people, up to 500 characters. No rule and no idempotency key depends on it.
        labels: the same, up to ten names with values, such as ``{"dag": "sales"}``.
        min_rows: the least number of rows that the job must have to be committed.
        max_rows: the largest number of rows.
        min_files: the least number of files.
        checks: bounds of columns, ``{"price": {"min": 0, "max": 9.5, "nulls": 0}}``; ``nulls`` is
            the largest number of nulls (docs/guide/spark.md).
        commit_timeout: seconds to wait for the outcome; by default 75 minutes.
        compression: of the columns; by default the session's, else ``snappy``.
        max_records_per_file: rows of a file at most, 0 for no limit; by default the session's.
        check_partitions: False adds files also where those that stay have other partition columns.
        check_names: False allows names that some readers skip (docs/guide/refused_writes.md).
        check_schema: False adds files also where the newest has other types
            (docs/guide/refused_writes.md).
        uploads: sizes of parts and threads of each task.
        encryption: of the objects; by default the session's, else the bucket's.
        boto3_session: whose credentials and region count; by default the standard configuration's.
            On Spark in the driver alone: tasks have the executors' own (docs/guide/spark.md).
        progress: show files and rows as tasks end, on standard error; by default in a terminal or a
            notebook alone (not with Spark Connect).
        dry_run: write nothing, only check. No task runs. `CommitResult.replaced` counts what an
            overwrite would remove at most.

    Returns:
        A `CommitResult`: the job's id, its files and rows.

    Raises:
        InvalidInputError: an argument or the schema. No file is or becomes visible; so with the
            next two.
        NotFoundError: the bucket, or its pipeline.
        AccessError: the credentials are missing, or don't permit it.
        JobFailedError: the job was not committed.
        OutcomeUnknownError: there is no result after ``commit_timeout``.
        Exception: the error of the tasks, if their retries failed too: then the job is aborted.

    Examples:
        >>> write(df, "s3://lake/sales/", mode="append", partition_by="dt", min_rows=1).rows
        3
    """
    keywords = keywords_of(locals())
    with nothing_written():
        if hasattr(path, "mapInArrow"):
            raise refused("the DataFrame comes first: write(df, path)")
        parsed = parsed_options(path, keywords)
        if dry_run:
            return dry_run_of(df, parsed)
    return write_frame(df, parsed, progress=progress)


def parsed_options(path: str, keywords: Mapping[str, Any]) -> Options:
    """The options of a write to the path. Raises `InvalidInputError`."""
    check_versions("pyspark", "pyarrow")
    return for_a_table(make_options(path, **keywords))


def write_frame(
    df: DataFrame, options: Options, *, keeps_schema: bool = True, progress: bool | None = False
) -> CommitResult:
    """Write, also without rows: then the job has a file, or none, as it ``keeps_schema``."""
    from s3commit.spark.tasks import SparkJob, run  # noqa: PLC0415
    from s3commit.writer.table_write import begin, commit, earlier_result  # noqa: PLC0415

    with nothing_written():
        _check_frame(df)
        result = earlier_result(options)
        if result is None:
            options, schema, like, who = _prepared(df, options)
            tally = tally_of(df.sparkSession, wanted=progress)
            begun, check_left = begin(options, like, _CLIENT, who)
    if result is None:  # otherwise no task has to run
        with begun as job:  # aborts the job in an error
            with shown(tally):
                try:
                    messages = run(df, SparkJob(job.task("0"), schema, tally, keeps_schema))
                except AccessError as error:
                    if options.access.session:
                        error.add_note("boto3_session is the driver's: a task has the executor's")
                    raise
            rows = sum(count for _, count in messages)
            result = commit(job, [attempt for attempt, _ in messages], rows, check_left)
    _refresh_cached(df, options.destination)
    return result


def dry_run_of(df: DataFrame, options: Options) -> CommitResult:
    """Check all that can be checked without the rows; raises as `write`."""
    from s3commit.writer.table_write import look_only  # noqa: PLC0415

    options, _, like, _ = _prepared(df, options)
    return look_only(options, like)


def _prepared(df: DataFrame, options: Options) -> tuple[Options, WriteSchema, CheckSchema, Who]:
    """The job's options, completed by the session, the schema, and what compares it with files."""
    from s3commit.arrow import other_schema  # noqa: PLC0415
    from s3commit.arrow.checks import with_checks  # noqa: PLC0415
    from s3commit.spark.schema import check_schema  # noqa: PLC0415
    from s3commit.spark.settings import (  # noqa: PLC0415
        FIELD_IDS,
        SESSION_SCOPE,
        apply_session_settings,
        refuse_unlike,
        settings_of,
    )
    from s3commit.writer.who import this_program  # noqa: PLC0415

    _check_frame(df)
    settings = df.sparkSession.conf

    def setting(name: str) -> str | None:
        return settings.get(name, None)

    scope = options.scope_in(setting(SESSION_SCOPE))
    with_ids = str(setting(FIELD_IDS)).lower() != "false"
    schema = check_schema(df.schema, options.partition_by, with_field_ids=with_ids)
    refuse_unlike(settings_of(df), schema.data)
    options = replace(apply_session_settings(options, setting), scope=scope)
    who = this_program(setting("spark.app.id") or "", setting("spark.app.name") or "")
    of_files = schema.of_files(None)
    options = with_checks(options, of_files)
    like = partial(other_schema.check_schema, of_files, options.partition_by)
    return options, schema, like, who


def _check_frame(frame: DataFrame) -> None:
    """Raise `InvalidInputError` if it is not a DataFrame of Spark's, or a stream."""
    if not hasattr(frame, "mapInArrow"):
        kind = type(frame)
        raise refused(
            f"write needs a DataFrame of Spark, not {kind.__module__}.{kind.__qualname__}: make"
            " one with spark.createDataFrame(...)"
        )
    if frame.isStreaming:
        raise refused(
            "this DataFrame is a stream: use .writeStream.foreachBatch(batch_writer(path))"
        )


def _refresh_cached(frame: DataFrame, destination: Destination) -> None:
    """Let the session read what was committed: Spark's own writes refresh cached plans too.

    Both spellings of the path are tried; a session that has no file system for one has nothing
    cached there.
    """
    for scheme in ("s3a", "s3"):
        uri = f"{scheme}://{destination.bucket}/{destination.prefix}"
        with suppress(Exception):
            frame.sparkSession.catalog.refreshByPath(uri)
