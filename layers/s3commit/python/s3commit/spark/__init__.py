"""Writing from Spark: ``from s3commit.spark import write``, or ``register`` for the format."""

from s3commit.spark.frames import CommitResult, batch_writer, write
from s3commit.spark.setup import WrongPythonError, arrange, register

__all__ = ["CommitResult", "WrongPythonError", "arrange", "batch_writer", "register", "write"]
