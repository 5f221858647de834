"""`write` a DataFrame on any Spark from 3.5 on, classic or Connect, and get the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from s3commit.aws.clients import Boto3Session, Encryption
from s3commit.core.formats.layout import JOB_ID
from s3commit.core.model.destination import Conflict, Destination
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    S3CommitError,
)
from s3commit.core.model.locks import key_digest
from s3commit.spark.progress import shown, tally_of
from s3commit.writer.commit_result import CommitResult, check_versions
from s3commit.writer.options import (
    Compression,
    Mode,
    Options,
    OverwriteMode,
    check_key,
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
# Local properties that StreamExecution sets; the group's is the id of a start of the query.
_QUERY_ID: Final = "sql.streaming.queryId"
_RUN_ID: Final = "spark.jobGroup.id"
# By place and query, the run and the number of the last batch that this process has written.
_last_batches: Final = dict[tuple[str, str], tuple[str, int]]()


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
        parsed = _parsed(path, keywords)
        if dry_run:
            return _look_only(df, parsed)
    return _write(df, parsed, progress=progress)


@refusing_strays
def batch_writer(
    path: str,
    *,
    query: str | None = None,
    mode: Mode = "append",
    partition_by: str | Sequence[str] | None = None,
    partition_overwrite_mode: OverwriteMode | None = None,
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
    dry_run: bool = False,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that writes each micro-batch exactly once.

    Spark repeats a batch if it can't know that it was written. The idempotency key is
    therefore ``query`` and the batch's number. A batch without rows is a job
    without files, unless it replaces or has ``min_rows``, ``max_rows`` or ``min_files``.

    Args:
        path: the directory, ``s3://bucket/prefix/``.
        query: one name for each checkpoint, the same at each restart; by default the query's id,
            which its checkpoint keeps. Spark Connect does not show it: there ``query`` is needed.
        mode: ``error`` refuses if files are there; ``append``; ``overwrite`` removes them once all
            new ones are visible.
        partition_by: the columns for the directories, a name or several.
        partition_overwrite_mode: ``static``, all of the destination, or ``dynamic``, the partitions
            that the job writes; by default as the session says.
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
        dry_run: write nothing, only check. The first batch ends the query by an `S3CommitError`
            (``DRY_RUN``). Otherwise Spark would record it as written.

    Returns:
        The function. It raises as `write`, which ends the query; restarted, it repeats the batch.

    Raises:
        InvalidInputError: an argument.

    Examples:
        >>> by_day = batch_writer("s3://lake/events/", partition_by="dt")
        >>> query = stream.writeStream.foreachBatch(by_day).start(checkpointLocation=checkpoint)
    """
    keywords = keywords_of(locals())
    with nothing_written():
        parsed = _parsed(path, keywords)
        if query is not None:
            check_key(query, "query")

    def write_batch(df: DataFrame, number: int) -> None:
        with nothing_written():
            name = _query_id(df) if query is None else query
            options = replace(parsed, idempotency_key=f"{name}/{number}")
            place, batch = (options.destination.uri, name), (_local(df, _RUN_ID), number)
            if JOB_ID.fullmatch(batch[0]) and _last_batches.get(place) == batch:
                raise JobRefusedError(
                    f"batch {number} of the query {name!r} was written to {path} before in this run"
                    " of the query, and other rows of one batch are taken for its repetition: write"
                    " a union, or give the second batch_writer another query='...'.",
                    code="KEY_TAKEN",
                )
            if dry_run:
                _look_only(df, options)
        if dry_run:
            raise S3CommitError(
                f"dry run of batch {number}: nothing was written, and nothing would refuse it. This"
                " error ends the query, so that Spark does not record the batch as written; run it"
                " again without dry_run",
                code="DRY_RUN",
            )
        # A table needs no file for the schema of each append that has no rows.
        adds = options.conflict is Conflict.APPEND and not options.conditions
        if _write(df, options, keeps_schema=not adds).already_committed:
            _refuse_older(options, name, number)
        _last_batches[place] = batch

    return write_batch


def _refuse_older(options: Options, query: str, number: int) -> None:
    """Raise `JobRefusedError` (``KEY_TAKEN``) if a committed batch is not the query's last one.

    Spark repeats no other, so its rows may be new: they come by a new checkpoint with the name of
    an older one, or by an older copy.
    """
    from s3commit.core.jobs.idempotency import hinted_job  # noqa: PLC0415

    store, following = options.access.store(None), key_digest(f"{query}/{number + 1}")
    if hinted_job(store, options.destination, following, needs_files=False):
        raise JobRefusedError(
            f"batches {number} and {number + 1} of the query {query!r} are committed already, and"
            " Spark repeats only the last one: this checkpoint is a new one, or an older copy, and"
            " the rows of the batch may be others. Nothing was added; use the newest checkpoint, or"
            " a new one with a name of its own, batch_writer(path, query='...')",
            code="KEY_TAKEN",
        )


def _query_id(df: DataFrame) -> str:
    found = _local(df, _QUERY_ID)
    if not found:
        raise InvalidInputError(
            "Spark does not report the query of this batch: name the query, with a name that"
            " stays the same when it is restarted, batch_writer(path, query='...').",
            code="NO_QUERY",
        )
    return found


def _local(df: DataFrame, name: str) -> str:
    """The local property of Spark's, or an empty text, as on Spark Connect."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return str(df.sparkSession.sparkContext.getLocalProperty(name) or "")
    except PySparkException:
        return ""


def _parsed(path: str, keywords: Mapping[str, Any]) -> Options:
    check_versions("pyspark", "pyarrow")
    return for_a_table(make_options(path, **keywords))


def _write(
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
            begun = begin(options, like, _CLIENT, who)
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
            result = commit(job, [attempt for attempt, _ in messages], rows)
    _refresh_cached(df, options.destination)
    return result


def _look_only(df: DataFrame, options: Options) -> CommitResult:
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
