"""`read` what is committed by Spark's own reader, on any Spark from 3.5 on, classic or Connect."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructField, StructType

    from s3commit.spark.discover import FoundFile
    from s3commit.spark.options import Options


def read(
    spark: SparkSession,
    path: str,
    *,
    job_id: str | None = None,
    partition_locations: Mapping[str, str] | None = None,
    format: str = "parquet",
    schema: StructType | str | None = None,
    scheme: str = "s3a",
    **options: Any,
) -> DataFrame:
    """What is committed at ``path``, as a DataFrame of Spark's own reader.

    With ``job_id`` exactly the files of this committed job, wherever they lie; else all that is
    visible, with ``partition_locations`` also at these. ``format``, ``schema`` and ``options`` are
    for Spark's reader, and ``scheme`` names its file system for S3, with a configuration of its
    own.

    Raises `InvalidInputError` for a bad path, `NotFoundError` if a job or a location is asked for
    and no file is there.
    """
    from s3commit.spark.options import options_of  # noqa: PLC0415

    raw = {"path": path, "jobId": job_id, "partitionLocations": partition_locations}
    said = options_of({**raw, "fileFormat": format})

    def new_reader() -> DataFrameReader:
        reader = spark.read.format(format).options(**options)
        return reader if schema is None else reader.schema(schema)

    root = _Root(scheme, said.destination.bucket)
    if not (job_id or partition_locations):
        return new_reader().load(root.uri(said.destination.prefix))
    return _read_files(new_reader, said, root)


@dataclass(frozen=True, slots=True)
class _Root:
    """A bucket, as Spark's file system names it."""

    scheme: str
    bucket: str

    def uri(self, key: str) -> str:
        return f"{self.scheme}://{self.bucket}/{key}"


def _read_files(new_reader: Callable[[], DataFrameReader], said: Options, root: _Root) -> DataFrame:
    """The files below the destination by their directories; the others one location at a time.

    Each has a reader of its own: Spark Connect 3.5 gives a DataFrame the options that its reader
    has at last.
    """
    from s3commit.spark.committed import committed_files, nothing_committed  # noqa: PLC0415
    from s3commit.spark.discover import partition_schema  # noqa: PLC0415

    files = committed_files(said)
    if not files:
        raise nothing_committed(said)

    def load(base: str, some: list[FoundFile]) -> DataFrame:
        # Keys may have the characters of a pattern.
        reader = new_reader().option("__globPaths__", "false").option("basePath", root.uri(base))
        return reader.load([root.uri(file.key) for file in some])

    prefix = said.destination.prefix
    below = [file for file in files if file.key.startswith(prefix)]
    frames = [load(prefix, below)] if below else []
    elsewhere: dict[str, list[FoundFile]] = {}
    for file in files:
        if not file.key.startswith(prefix):
            elsewhere.setdefault(file.key.rpartition("/")[0] + "/", []).append(file)
    columns = partition_schema(files)
    for directory, there in elsewhere.items():
        frame = load(directory, there)
        for column, text in zip(columns, there[0].texts, strict=True):
            frame = frame.selectExpr("*", _literal(text, column))
        frames.append(frame)
    return functools.reduce(_union, frames)


def _literal(text: str | None, column: StructField) -> str:
    """SQL for a partition value, as Spark would infer it from a directory's name."""
    value = "null" if text is None else "decode(unhex('" + text.encode().hex() + "'), 'UTF-8')"
    name = column.name.replace("`", "``")
    return f"cast({value} as {column.dataType.simpleString()}) as `{name}`"


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)
