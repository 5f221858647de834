"""Writing from Spark: ``from s3commit.spark import write``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from s3commit.spark.frame_read import read
    from s3commit.spark.frame_write import batch_writer, write
    from s3commit.writer.commit_result import CommitResult, WrongPythonError

__all__ = ["CommitResult", "WrongPythonError", "batch_writer", "read", "write"]

_HOMES = {"read": "spark.frame_read", "batch_writer": "spark.frame_write"}
_HOMES |= {"write": "spark.frame_write"}

if not TYPE_CHECKING:  # as in the package above; a task's process needs none of them

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = _HOMES.get(name, "writer.commit_result")
        return getattr(import_module(f"s3commit.{home}"), name)


def __dir__() -> list[str]:
    return __all__
