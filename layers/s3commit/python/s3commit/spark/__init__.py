"""Writing from Spark: ``from s3commit.spark import write``."""

from s3commit.spark.frame_read import read
from s3commit.spark.frame_write import CommitResult, batch_writer, write
from s3commit.spark.frames import WrongPythonError

__all__ = [
    "CommitResult",
    "WrongPythonError",
    "batch_writer",
    "read",
    "write",
]
