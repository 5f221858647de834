"""`read` what is committed by Spark's own reader, on any Spark from 3.5 on, classic or Connect."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from s3commit.core.formats.layout import JobDirectory, check_job_id
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.writer.options import bad, make_options, nothing_written, refused
from s3commit.writer.strays import refusing_strays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from s3commit.aws.clients import Boto3Session
    from s3commit.writer.access import Access

# Hadoop's errors for a scheme for which it has no class, or no name of one.
_NO_FILE_SYSTEM: Final = re.compile("FileSystem not found|No FileSystem for scheme")
_NO_FILE: Final = "[PATH_NOT_FOUND]"  # Spark's


@refusing_strays
def read(
    spark: SparkSession,
    path: str,
    *,
    job_id: str | None = None,
    format: str = "parquet",
    schema: StructType | str | None = None,
    scheme: str = "s3a",
    options: Mapping[str, Any] | None = None,
    boto3_session: Boto3Session | None = None,
) -> DataFrame:
    """Read the committed files at ``path``, as a DataFrame of Spark's own reader.

    Args:
        spark: the session.
        path: the directory, ``s3://bucket/prefix/``.
        job_id: exactly the files of this committed job; by default all that is visible.
        format: the files' format.
        schema: the rows' schema, where the files don't say it.
        scheme: the name of Spark's file system for S3, which has a configuration of its own.
        options: those of Spark's reader.
        boto3_session: for the request for the job's list; Spark reads by its own configuration.

    Returns:
        The DataFrame. Spark reads it when it needs the rows.

    Raises:
        InvalidInputError: the path is bad, or Spark has no file system of that scheme.
        NotFoundError: the job is not committed there, has no file, or not all of them any more.

    Examples:
        >>> result = write(df, "s3://lake/orders/", mode="append")
        >>> read(spark, "s3://lake/orders/", job_id=result.job_id).count()
        3
    """
    with nothing_written():
        if not hasattr(spark, "createDataFrame"):
            raise refused("the session comes first: read(spark, path)")
        if not isinstance(options, Mapping | None):
            raise bad("options", options, "a mapping, such as {'mergeSchema': True}")
        asked = make_options(path, check_names=False, boto3_session=boto3_session)
        destination = asked.destination
        where = None if job_id is None else JobDirectory(destination, check_job_id(job_id))
    given = {str(name): value for name, value in (options or {}).items()}
    bucket = destination.bucket
    reader = spark.read.format(format).options(**given)
    if schema is not None:
        reader = reader.schema(schema)
    paths = [_uri(scheme, bucket, destination.prefix)]
    if where is not None:
        keys = _files_of(where, asked.access)
        # Keys may have the characters of a pattern.
        reader = reader.option("__globPaths__", "false").option("basePath", paths[0])
        paths = [_uri(scheme, bucket, key) for key in keys]
    try:
        _find_class(spark, paths[0], given)
        frame = reader.load(paths)
        if where is not None:
            _ = frame.schema  # Spark Connect looks for the files no earlier
        return frame
    except Exception as error:
        if where is not None and _NO_FILE in str(error):
            raise NotFoundError(
                f"not all files of job {where.job_id} are at {destination.uri} any more: jobs have"
                " replaced or undone them, or someone has deleted them, unless Spark's file system"
                f" has another endpoint; see: s3commit log {shlex.quote(destination.uri)}"
            ) from None  # Spark names one of them
        if _NO_FILE_SYSTEM.search(str(error)):
            raise InvalidInputError(
                f"Spark has no file system for {scheme}://: start the session with"
                f" spark.jars.packages=org.apache.hadoop:hadoop-aws:{_hadoop(spark)}, or give the"
                " scheme that the cluster has, read(spark, path, scheme='s3')",
                code="NO_FILE_SYSTEM",
            ) from None  # its 170 lines of Java say no more
        raise


def _find_class(spark: SparkSession, uri: str, options: Mapping[str, Any]) -> None:
    """Have Hadoop refuse a scheme without a class, if it can be asked: Spark would log 90 lines."""
    try:
        java: Any = spark.sparkContext._jvm
        files = java.org.apache.hadoop.fs.FileSystem
        settings: Any = spark._jsparkSession.sessionState().newHadoopConf()
        for name, value in options.items():
            settings.set(name, str(value))
        files.getFileSystemClass(urlsplit(uri).scheme or "file", settings)
    except Exception as error:
        if _NO_FILE_SYSTEM.search(str(error)):
            raise


def _hadoop(spark: SparkSession) -> str:
    """The release of Spark's own Hadoop, which hadoop-aws must have too."""
    try:
        jvm: Any = spark.sparkContext._jvm
        return str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    except Exception:  # Spark Connect shows no JVM
        return "VERSION, the release of the server's own Hadoop"


def _uri(scheme: str, bucket: str, key: str) -> str:
    return f"{scheme}://{bucket}/{key}"


def _files_of(directory: JobDirectory, access: Access) -> list[str]:
    """The keys of the job's files, as its commit manifest lists them."""
    from s3commit.core.documents.commit_manifest import not_committed, stream_commit_manifest  # noqa: PLC0415

    where = directory.destination.uri
    try:
        _, files = stream_commit_manifest(access.store(None), directory)
        keys = [file.key for file in files]
    except NotFoundError as error:
        if error.code != NotFoundError.code:
            raise
        raise NotFoundError(not_committed(directory)) from error
    if not keys:
        raise NotFoundError(f"job {directory.job_id} has committed no file at {where}")
    return keys
