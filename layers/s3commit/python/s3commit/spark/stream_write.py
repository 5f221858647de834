"""`batch_writer`: the micro-batches of Structured Streaming, each written exactly once."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from s3commit.aws.clients import Boto3Session, Encryption
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, S3CommitError
from s3commit.core.model.locks import key_digest
from s3commit.spark.frame_write import dry_run_of, parsed_options, write_frame
from s3commit.writer.options import (
    Compression,
    Mode,
    Options,
    OverwriteMode,
    check_key,
    keywords_of,
    nothing_written,
)
from s3commit.writer.strays import refusing_strays
from s3commit.writer.transfer import UploadSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Local properties that StreamExecution sets; the group's is the id of a start of the query.
_QUERY_ID: Final = "sql.streaming.queryId"
_RUN_ID: Final = "spark.jobGroup.id"
_IS_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Those in work, and the last ones that were written, by place and query.
_last_batches: Final = dict[tuple[str, str], "_Batch"]()
_batches_change: Final = threading.Lock()


@dataclass(slots=True)
class _Batch:
    """A batch that this process writes, or the last one that it has written, by ``job_id``.

    ``run`` is the id of the query's start; empty: not known.
    """

    run: str
    number: int
    frame: DataFrame
    job_id: str = ""


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
        InvalidInputError: an argument. The function also `JobRefusedError` (``KEY_TAKEN``), for an
            older batch that is committed, and for a second frame of one batch.

    Examples:
        >>> by_day = batch_writer("s3://lake/events/", partition_by="dt")
        >>> query = stream.writeStream.foreachBatch(by_day).start(checkpointLocation=checkpoint)
    """
    keywords = keywords_of(locals())
    with nothing_written():
        parsed = parsed_options(path, keywords)
        if query is not None:
            check_key(query, "query")

    def write_batch(df: DataFrame, number: int) -> None:
        with nothing_written():
            name = _query_id(df) if query is None else query
            options = replace(parsed, idempotency_key=f"{name}/{number}")
            if dry_run:
                dry_run_of(df, options)
        if dry_run:
            raise S3CommitError(
                f"dry run of batch {number}: nothing was written, and nothing would refuse it. This"
                " error ends the query, so that Spark does not record the batch as written; run it"
                " again without dry_run",
                code="DRY_RUN",
            )
        # A table needs no file for the schema of each append that has no rows.
        adds = options.conflict is Conflict.APPEND and not options.conditions
        with _only_frame(df, options, name, number) as batch:
            result = write_frame(df, options, keeps_schema=not adds)
            batch.job_id = result.job_id
        if result.already_committed:
            _refuse_older(options, name, number)

    return write_batch


@contextmanager
def _only_frame(df: DataFrame, options: Options, query: str, number: int) -> Iterator[_Batch]:
    """Refuse a second frame of a batch: under its key the rows would be skipped.

    Within a run Spark repeats no batch; a program may, with the same frame, and it may write again
    what has failed. Raises `JobRefusedError` (``KEY_TAKEN``).
    """
    place, run = (options.destination.uri, query), _run_id(df)
    own = _Batch(run, number, df)
    with _batches_change:
        last = _last_batches.get(place)
        is_same_batch = last is not None and run and (last.run, last.number) == (run, number)
        if last and is_same_batch and not last.frame.sameSemantics(df):
            raise JobRefusedError(
                f"batch {number} of the query {query!r} has other rows at {place[0]}, written by"
                f" job {last.job_id or 'that has not ended'}, and these would be skipped: write one"
                " union, once that job is undone, or give the second batch_writer another"
                " query='...'. Nothing was written.",
                code="KEY_TAKEN",
            )
        _last_batches[place] = own
    try:
        yield own
    except BaseException:
        with _batches_change:
            if _last_batches.get(place) is own:
                del _last_batches[place]
                if last and is_same_batch:  # of which this was a repetition
                    _last_batches[place] = last
        raise


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
            " Spark repeats only the last one: this checkpoint is a new one, or an older copy, so"
            " the batch may have other rows. Nothing was added; use the newest checkpoint, or a new"
            " one with a name of its own, batch_writer(path, query='...')",
            code="KEY_TAKEN",
        )


def _query_id(df: DataFrame) -> str:
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        found = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    except PySparkException:  # Spark Connect
        found = None
    if not found:
        raise InvalidInputError(
            "Spark does not report the query of this batch: name the query, with a name that"
            " stays the same when it is restarted, batch_writer(path, query='...').",
            code="NO_QUERY",
        )
    return str(found)


def _run_id(df: DataFrame) -> str:
    """The id of this start of the query; empty where it is not known, as in a program's threads."""
    if not hasattr(df, "_jdf"):
        return f"process {os.getpid()}"  # Spark Connect has one for each start
    found = ""
    with suppress(Exception):  # some clusters permit few calls of the context
        found = str(df.sparkSession.sparkContext.getLocalProperty(_RUN_ID) or "")
    return found if _IS_UUID.fullmatch(found) else ""  # a program may set another group
