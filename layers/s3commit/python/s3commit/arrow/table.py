"""`write_table`: rows of any library that hands them over as Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from s3commit.aws.clients import Boto3Session, Encryption
from s3commit.writer.commit_result import CommitResult, check_versions
from s3commit.writer.options import (
    Compression,
    Mode,
    OverwriteMode,
    for_a_table,
    keywords_of,
    make_options,
    nothing_written,
    refused,
)
from s3commit.writer.start import DEFAULT_CLIENT
from s3commit.writer.strays import refusing_strays
from s3commit.writer.table_write import begin, commit, earlier_result, look_only
from s3commit.writer.transfer import UploadSettings

# Of a thing that makes a table, by what it has: how.
_CURES: Final = {
    "collect": ": call .collect() first",
    "fetch_arrow_table": ": give the relation that .sql(...) returns",
}


class ArrowStream(Protocol):
    """A table or relation of pandas, polars, pyarrow or DuckDB.

    https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows, as a capsule."""


@refusing_strays
def write_table(
    table: ArrowStream,
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
    dry_run: bool = False,
) -> CommitResult:
    """Write a table as Parquet, in one job of this process; return once it is committed.

    With ``partition_by`` this process holds the rows in memory, to write directory by directory;
    else they go through it.

    Args:
        table: a frame of pandas (from 2.2) or polars, a table or reader of pyarrow, a relation of
            DuckDB, or whatever else has ``__arrow_c_stream__``. Make a reader again for another
            try: a call consumes it, also one that fails.
        path: the directory, ``s3://bucket/prefix/``.
        mode: ``error`` refuses if files are there; ``append``; ``overwrite`` removes them once all
            new ones are visible.
        partition_by: the columns for the directories, a name or several. Of texts, whole numbers,
            dates or booleans.
        partition_overwrite_mode: ``static``, all of the destination, or ``dynamic``, the partitions
            that the job writes; by default ``static``.
        idempotency_key: of the jobs with one key at one destination at most one is committed.
        note: a text for people, up to 500 characters. No rule and no idempotency key depends on it.
        labels: the same, up to ten names with values, such as ``{"dag": "sales"}``.
        min_rows: the least number of rows that the job must have to be committed.
        max_rows: the largest number of rows.
        min_files: the least number of files.
        checks: bounds of columns, ``{"price": {"min": 0, "max": 9.5, "nulls": 0}}``; ``nulls`` is
            the largest number of nulls (docs/guide/spark.md).
        commit_timeout: seconds to wait for the outcome; by default 75 minutes.
        compression: of the columns; by default ``snappy``.
        max_records_per_file: rows of a file at most, 0 for no limit; by default 0.
        check_partitions: False adds files also where those that stay have other partition columns.
        check_names: False allows names that some readers skip (docs/guide/refused_writes.md).
        check_schema: False adds files also where the newest has other types
            (docs/guide/refused_writes.md).
        uploads: sizes of parts and threads of each task.
        encryption: of the objects; by default the bucket's.
        boto3_session: whose credentials and region count; by default the standard configuration's.
        dry_run: write nothing, only check. No row is read.

    Returns:
        A `CommitResult`: the job's id, its files and rows.

    Raises:
        WrongPythonError: there is no pyarrow. Nothing was written.
        S3CommitError: as `s3commit.spark.write` raises them.

    Examples:
        >>> frame = pandas.DataFrame({"n": [1, 2], "dt": ["2026-11-20", "2026-11-21"]})
        >>> s3commit.write_table(frame, "s3://lake/prices/", mode="append", partition_by="dt").files
        2
    """
    keywords = keywords_of(locals())
    with nothing_written():
        options = for_a_table(make_options(path, **keywords))
        options = replace(options, scope=options.scope_in(None))
        check_versions("pyarrow")
        from s3commit.arrow.checks import with_checks  # noqa: PLC0415
        from s3commit.arrow.files import write_rows  # noqa: PLC0415
        from s3commit.arrow.other_schema import check_schema as check  # noqa: PLC0415
        from s3commit.arrow.partitions import by_directory, file_schema, stream  # noqa: PLC0415

        _refuse_other_kinds(table)
        earlier = None if dry_run else earlier_result(options)
        if earlier is not None:
            return earlier
        found, batches = stream(table)
        schema = file_schema(found, options.partition_by)
        options = with_checks(options, schema)
        like = partial(check, schema, options.partition_by)
        if dry_run:
            return look_only(options, like)
        begun, check_left = begin(options, like, DEFAULT_CLIENT)
    with begun as job:
        with job.task("00000") as task:
            pairs = by_directory(batches, options.partition_by)
            rows = write_rows(task, 0, pairs, lambda _: schema)
        return commit(job, [task.counted], rows, check_left)


def _refuse_other_kinds(table: Any) -> None:
    if hasattr(table, "mapInArrow"):
        raise refused("Spark's tasks write a DataFrame of Spark: s3commit.spark.write(df, path)")
    if not hasattr(table, "__arrow_c_stream__"):
        kind = type(table)
        cure = next((what for name, what in _CURES.items() if hasattr(table, name)), "")
        raise refused(
            f"write_table takes a table with __arrow_c_stream__, such as pandas' from 2.2 on,"
            f" not {kind.__module__}.{kind.__qualname__}{cure}"
        )
