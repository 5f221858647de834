"""Writing from Spark: ``from s3commit.spark import write``."""

from s3commit.spark.frame_read import read
from s3commit.spark.frame_write import write
from s3commit.spark.stream_write import batch_writer
from s3commit.writer.commit_result import CommitResult, WrongPythonError

__all__ = ["CommitResult", "WrongPythonError", "batch_writer", "read", "write"]


def __dir__() -> list[str]:
    return __all__
