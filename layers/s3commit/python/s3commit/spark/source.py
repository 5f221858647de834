"""The data source that Spark knows as ``s3commit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.options import parse_options
from s3commit.spark.user_errors import short_errors
from s3commit.writer.config import load_config

if TYPE_CHECKING:
    from s3commit.spark.batch import BatchWriter, NothingToWrite
    from s3commit.spark.reader import CommittedReader
    from s3commit.spark.streaming import StreamWriter


class S3CommitDataSource(DataSource):
    """``format("s3commit")``: see the README for the options.

    boto3 is imported by the methods that need it: Spark imports this module in each worker.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "s3commit"

    @short_errors
    def schema(self) -> StructType:
        """The schema of what is committed at the path, for a read without one."""
        from s3commit.spark.reader import committed_schema  # noqa: PLC0415

        return committed_schema(parse_options(self.options))

    @short_errors
    def reader(self, schema: StructType) -> CommittedReader:
        """A read of the files that are visible now, or of one job's."""
        from s3commit.spark.reader import CommittedReader, PruningReader  # noqa: PLC0415

        options = parse_options(self.options)
        return (PruningReader if options.push_filters else CommittedReader)(options, schema)

    @short_errors
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter | NothingToWrite:
        """A batch write. Opens the job; all that can be refused is refused before that."""
        from s3commit.spark.batch import start_batch  # noqa: PLC0415

        return start_batch(parse_options(self.options, load_config()), schema, overwrite)

    @short_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """A stream's writer, made anew for each micro-batch, and again to commit it."""
        if not hasattr(datasource, "DataSourceStreamArrowWriter"):
            raise InvalidInputError(
                f"Spark {pyspark.__version__} has no streams for this format; 4.1 has. Use"
                " .foreachBatch(s3commit.spark.batch_writer(path)). Nothing was written.",
                code="NO_STREAMS",
            )
        from s3commit.spark.streaming import start_stream  # noqa: PLC0415

        return start_stream(parse_options(self.options, load_config()), schema, overwrite)
