"""What a program calls: `register`, and `arrange` for partitioned writes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from s3commit.core.model.errors import S3CommitError
from s3commit.spark import guard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NEEDED: Final = "import s3commit.spark.batch, s3commit.spark.reader"
LEAST: Final = {"pyspark": (3, 5), "pyarrow": (18, 0)}
LEAST_FOR_FORMAT: Final = (4, 0)  # of PySpark
# Spark is the cluster's: another one of pip's would cover it, and may not fit its Java part.
_SOURCES: Final = {
    "pyspark": "run this with the cluster's Python; where there is no cluster, pip install pyspark",
    "pyarrow": "pip install '.[spark]' in a checkout of s3commit, or pyarrow alone",
}


class WrongPythonError(S3CommitError):
    """Spark's Python workers could not run the data source. Nothing was registered."""

    code = "WRONG_PYTHON"


def register(spark: SparkSession) -> None:
    """Make ``format("s3commit")`` known to this session; harmless to repeat.

    A session made by ``spark.newSession()`` has to be registered itself. ``spark`` becomes the
    thread's active session. Raises `WrongPythonError`, with the setting to change, if a package is
    missing or too old, or if Spark's Python workers on this machine run an interpreter that can't
    import this package (without PYSPARK_PYTHON that is the ``python3`` of PATH).
    """
    _check_format()
    _check_workers(spark)
    from s3commit.spark.source import S3CommitDataSource  # noqa: PLC0415

    guard.activate(spark)
    guard.install(spark)
    spark.dataSource.register(S3CommitDataSource)


def arrange(frame: DataFrame, *by: str, files: int | None = None) -> DataFrame:
    """``frame`` brought into the order in which a partitioned write is cheapest.

    Rows of one combination of the columns ``by`` come together in one task and one after the
    other, so that each directory gets one file and each task has one file open. A Python data
    source can not ask Spark for this itself. ``files`` is the number of tasks (Spark's
    ``spark.sql.shuffle.partitions`` if not given); a directory far larger than the others then
    takes its task longer, in which case ``frame.sortWithinPartitions(*by)`` alone is better.

    ``arrange(df, "dt").write.format("s3commit").option("partitionBy", "dt").mode("append")...``
    """
    together = frame.repartition(*by) if files is None else frame.repartition(files, *by)
    return together.sortWithinPartitions(*by)


def check_versions() -> None:
    """Raise `WrongPythonError` if a package is missing or too old."""
    for package, least in LEAST.items():
        if _release_of(package) < least:
            raise _too_old(package, least)


def _check_format() -> None:
    check_versions()
    if _release_of("pyspark") < LEAST_FOR_FORMAT:
        raise _too_old("pyspark", LEAST_FOR_FORMAT, "; here s3commit.spark.write() works")


def _release_of(package: str) -> tuple[int, ...]:
    try:
        found = str(__import__(package).__version__)
    except ImportError as error:
        raise WrongPythonError(f"{package} is not installed here: {_SOURCES[package]}") from error
    return tuple(int(number) for number in found.split(".")[:2])


def _too_old(package: str, least: tuple[int, ...], instead: str = "") -> WrongPythonError:
    found, wanted = __import__(package).__version__, ".".join(map(str, least))
    return WrongPythonError(
        f"{package} {found} is too old: this needs {package}>={wanted}{instead}"
    )


def _check_workers(spark: SparkSession) -> None:
    """Only on the driver's machine; executors elsewhere have their own."""
    try:
        executable = str(spark.sparkContext.pythonExec)
    except Exception:
        return  # Spark Connect: the workers are the server's, which this program can't see
    found = shutil.which(executable)
    if found is not None and _same(found, sys.executable):
        return
    advice = (
        f"set os.environ['PYSPARK_PYTHON'] = sys.executable before the session is made (it is"
        f" {sys.executable})"
    )
    if found is None:
        raise WrongPythonError(f"Spark's Python workers would run {executable!r}: none; {advice}")
    probe = f"import sys; {_NEEDED}; sys.exit(sys.version_info[:2] != {sys.version_info[:2]!r})"
    # What the program has put on its path reaches the workers by PYTHONPATH alone.
    done = subprocess.run(  # noqa: S603 - it is the program that Spark is going to run
        [found, "-c", probe], capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["another version of Python"]
        raise WrongPythonError(
            f"Spark's Python workers would run {found}, which can't run s3commit ({why[0]});"
            f" {advice}"
        )


def _same(one: str, other: str) -> bool:
    """Whether both are the interpreter of one installation (``python`` and ``python3`` are)."""
    first, second = Path(one).absolute(), Path(other).absolute()
    return first.parent == second.parent and first.resolve() == second.resolve()
