"""The Spark data source: ``from s3commit.spark import register; register(spark)``."""

from s3commit.spark.setup import WrongPythonError, arrange, register

__all__ = ["WrongPythonError", "arrange", "register"]
