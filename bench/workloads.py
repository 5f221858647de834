"""What the committers are given to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.spark import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES: Final = ("small", "equal", "dynamic", "large", "tasks")
PARTITION: Final = "k"
FILES_A_TASK: Final = 100
ROWS_A_FILE: Final = 20
EQUAL_FILES: Final = 100


@dataclass(frozen=True, slots=True)
class Workload:
    """A DataFrame and how it is written."""

    name: str
    title: str
    make: Callable[[SparkSession], DataFrame]
    by: tuple[str, ...] = ()
    overwrites: bool = False  # the partitions that it has, which are there already


def workloads(files: int, count: int) -> list[Workload]:
    """The five workloads, for about ``files`` small files or ``count`` rows."""
    tasks = max(1, files // FILES_A_TASK)
    return [
        Workload(
            "small",
            f"{tasks * FILES_A_TASK:,} small files, {tasks} tasks, {FILES_A_TASK} directories",
            lambda spark: _small(spark, tasks, FILES_A_TASK),
            (PARTITION,),
        ),
        Workload(
            "equal",
            f"{EQUAL_FILES} files of equal size, {count:,} rows",
            lambda spark: rows(spark, count, EQUAL_FILES),
        ),
        Workload(
            "dynamic",
            f"dynamic overwrite of 200 partitions, {count // 8:,} rows, 2 tasks",
            lambda spark: rows(spark, count // 8, 2),
            (PARTITION,),
            overwrites=True,
        ),
        Workload(
            "large", f"one file, {count // 2:,} rows", lambda spark: rows(spark, count // 2, 1)
        ),
        Workload(
            "tasks",
            f"{max(1, files // 10):,} tasks of one file",
            lambda spark: _small(spark, max(1, files // 10), 1),
        ),
    ]


def _small(spark: SparkSession, tasks: int, values: int) -> DataFrame:
    """``tasks`` tasks with some rows for each of ``values`` partitions."""
    from pyspark.sql import functions as f

    numbers = spark.range(0, tasks * values * ROWS_A_FILE, 1, tasks)
    return numbers.select("id", (f.col("id") % values).cast("int").alias(PARTITION))
