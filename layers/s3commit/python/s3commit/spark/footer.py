"""What the end of a data file says of its columns."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.formats import FORMATS
from s3commit.spark.ranges import RangeFile
from s3commit.spark.schema import ROW_METADATA
from s3commit.writer.connect import shared_client

if TYPE_CHECKING:
    from s3commit.spark.discover import FoundFile


def other_format(key: str, file_format: str) -> str | None:
    """The format that the file's name speaks of, if it is another one than ``file_format``."""
    name = key.rsplit("/", 1)[-1]
    return next((one for one in FORMATS if one != file_format and f".{one}" in name), None)


def open_parquet(bucket: str, file: FoundFile) -> parquet.ParquetFile:
    """The file, of which the end has been read. Raises `InvalidInputError` (``BAD_FILE``)."""
    try:
        return parquet.ParquetFile(
            _source(bucket, file), pre_buffer=True, coerce_int96_timestamp_unit="us"
        )
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"s3://{bucket}/{file.key} is no parquet file: {error}", code="BAD_FILE"
        ) from error


def parquet_schema(bucket: str, file: FoundFile) -> tuple[StructType, bool]:
    """The columns, and whether Spark's own metadata says so: without it some types are guessed."""
    with closing(open_parquet(bucket, file)) as opened:
        text = (opened.metadata.metadata or {}).get(ROW_METADATA)
        if text is None:
            return from_arrow_schema(opened.schema_arrow), False
        return StructType.fromJson(json.loads(text)), True


def orc_schema(bucket: str, file: FoundFile) -> StructType:
    """The columns of an ORC file; it does not tell a time from one without a zone."""
    from pyarrow import orc  # noqa: PLC0415 - it takes 20 ms, and few need it

    return from_arrow_schema(orc.ORCFile(_source(bucket, file)).schema)


def _source(bucket: str, file: FoundFile) -> pa.PythonFile:
    return pa.PythonFile(RangeFile(shared_client(), bucket, file.key, file.length, file.etag), "r")
