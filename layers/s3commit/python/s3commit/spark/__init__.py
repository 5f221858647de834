"""Writing from Spark: ``from s3commit.spark import write``, or ``register`` for the format."""

from s3commit.spark.frame_read import read
from s3commit.spark.frame_write import CommitResult, batch_writer, write
from s3commit.spark.setup import WrongPythonError, arrange, register

__all__ = [
    "CommitResult",
    "WrongPythonError",
    "arrange",
    "batch_writer",
    "read",
    "register",
    "write",
]
