"""The versions that `write` needs, and `arrange` for partitioned writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from s3commit.core.model.errors import S3CommitError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST: Final = {"pyspark": (3, 5), "pyarrow": (18, 0)}
# Spark is the cluster's: another one of pip's would cover it, and may not fit its Java part.
_SOURCES: Final = {
    "pyspark": "run this with the cluster's Python; where there is no cluster, pip install pyspark",
    "pyarrow": "pip install '.[spark]' in a checkout of s3commit, or pyarrow alone",
}


class WrongPythonError(S3CommitError):
    """A package is missing or too old. Nothing was written."""

    code = "WRONG_PYTHON"


def arrange(frame: DataFrame, *by: str, files: int | None = None) -> DataFrame:
    """``frame`` brought into the order in which a partitioned write is cheapest.

    Rows of one combination of the columns ``by`` come together in one task and one after the
    other, so that each directory gets one file and each task has one file open. ``files`` is the
    number of tasks (Spark's ``spark.sql.shuffle.partitions`` if not given); a directory far larger
    than the others then takes its task longer, in which case
    ``frame.sortWithinPartitions(*by)`` alone is better.

    ``write(arrange(df, "dt"), path, partition_by="dt")``
    """
    together = frame.repartition(*by) if files is None else frame.repartition(files, *by)
    return together.sortWithinPartitions(*by)


def check_versions() -> None:
    """Raise `WrongPythonError` if a package is missing or too old."""
    for package, least in LEAST.items():
        if _release_of(package) < least:
            raise _too_old(package, least)


def _release_of(package: str) -> tuple[int, ...]:
    try:
        found = str(__import__(package).__version__)
    except ImportError as error:
        raise WrongPythonError(f"{package} is not installed here: {_SOURCES[package]}") from error
    return tuple(int(number) for number in found.split(".")[:2])


def _too_old(package: str, least: tuple[int, ...]) -> WrongPythonError:
    found, wanted = __import__(package).__version__, ".".join(map(str, least))
    return WrongPythonError(f"{package} {found} is too old: this needs {package}>={wanted}")
