"""Benchmarks 1 to 3: writing rows, writing them to 200 directories, and the workers' memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyspark

from bench.figures import Figure, Sample
from bench.pipeline import environment
from bench.processes import largest_peak, reset_peaks
from bench.spark import Bench, Cost, jvm_pid, rows, wide_rows
from s3commit.writer.transfer import MIB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS: Final = 4
PARTITIONED_TASKS: Final = 2
CPU_GOAL: Final = 1.5
PARTITIONED_GOAL: Final = 1.0
MEMORY_GOAL: Final = 1.0
READ_GOAL: Final = 1.1
BASELINE: Final = "Spark to local disk"
# MIB above an idle worker, by KB of a row: what docs/guide/platforms.md says of a task.
MEMORY: Final = 256
WIDE: Final = {1: MEMORY, 20: MEMORY, 60: MEMORY, 230: MEMORY}
WIDE_35: Final = {**WIDE, 60: 384, 230: 1_100}  # batches there are of so many rows, of any size

Say = Callable[[str], None]
Make = Callable[["SparkSession"], "DataFrame"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is measured, and where progress is said."""

    rows: int
    rounds: int
    say: Say


def write(bench: Bench, settings: Settings) -> list[Figure]:
    """Benchmark 1: rows to one directory, against Spark's own writer to the local disk."""
    with bench.session() as spark:
        frame = rows(spark, settings.rows, TASKS)
        few = rows(spark, settings.rows // 2, TASKS)
        for warm in (bench.native, bench.ours, bench.nothing):
            warm(few)
        native, ours, nothing = in_turn(
            settings,
            {
                "Spark to disk": lambda: bench.native(frame),
                "s3commit": lambda: bench.ours(frame),
                "rows alone": lambda: bench.nothing(frame),
            },
        )
    title = f"write {settings.rows:,} rows, {TASKS} tasks"
    extra = _less(ours, nothing), _less(native, nothing)
    return [
        *_costs(title, ours, native, cpu_goal=CPU_GOAL),
        _figure(title, "CPU without making the rows", *extra),
    ]


def partitions(bench: Bench, settings: Settings) -> list[Figure]:
    """Benchmark 2: rows to 200 directories, unsorted and arranged, against Spark's own writer."""
    figures: list[Figure] = []
    with bench.session() as spark:
        plain = rows(spark, settings.rows, PARTITIONED_TASKS)
        arranged = _arranged(plain)
        few = rows(spark, settings.rows // 2, PARTITIONED_TASKS)
        for warm in (few, _arranged(few)):
            bench.native(warm, "k")
            bench.ours(warm, "k")
        plain_native, plain_ours, arranged_native, arranged_ours = in_turn(
            settings,
            {
                "Spark to disk, unsorted": lambda: bench.native(plain, "k"),
                "s3commit, unsorted": lambda: bench.ours(plain, "k"),
                "Spark to disk, arranged": lambda: bench.native(arranged, "k"),
                "s3commit, arranged": lambda: bench.ours(arranged, "k"),
            },
        )
    for name, ours, native in (
        ("unsorted", plain_ours, plain_native),
        ("arranged", arranged_ours, arranged_native),
    ):
        title = f"200 partitions, {settings.rows:,} rows {name}, {PARTITIONED_TASKS} tasks"
        figures += _costs(
            title, ours, native, cpu_goal=PARTITIONED_GOAL, wall_goal=PARTITIONED_GOAL
        )
    return figures


def _arranged(frame: DataFrame) -> DataFrame:
    """The rows of one directory in one task."""
    return frame.repartition(PARTITIONED_TASKS, "k")


def read_back(bench: Bench, settings: Settings) -> list[Figure]:
    """The files of one job by `s3commit.spark.read`, against Spark's own read of the table.

    Without a job the function makes the very call that Spark's user would.
    """
    from s3commit.spark import read
    from s3commit.writer.access import shared_client

    with bench.session(bench.reader_settings(bench.weed.endpoint)) as spark:
        frame = rows(spark, settings.rows, PARTITIONED_TASKS)
        with bench.table(frame, "k") as result:
            # A reader may list; the writer of the benchmarks may not.
            os.environ.update(environment(bench.weed.ADMIN, bench.weed.endpoint))
            shared_client.cache_clear()
            uri, job = result.path, result.job_id
            own = uri.replace("s3://", "s3a://")
            variants: dict[str, Callable[[], Cost]] = {
                "Spark": lambda: bench.consumed(spark, lambda: spark.read.parquet(own)),
                "one job": lambda: bench.consumed(spark, lambda: read(spark, uri, job_id=job)),
            }
            for warm in variants.values():
                warm()
            found = in_turn(settings, variants)
    title = f"read {settings.rows:,} rows in {result.files} files, 200 partitions"
    theirs, mine = (Sample(tuple(one.wall for one in costs)) for costs in found)
    return [Figure(title, "wall", "s", mine, "spark.read.parquet", theirs, goal=READ_GOAL)]


def memory(bench: Bench, settings: Settings) -> list[Figure]:
    """Benchmark 3: what a task's rows add to a Python worker, against what is said of it."""
    makes: list[tuple[str, Make, Sequence[str], int]] = [
        ("one directory", lambda spark: rows(spark, settings.rows, TASKS), (), MEMORY),
        (
            "200 unsorted",
            lambda spark: rows(spark, settings.rows, PARTITIONED_TASKS),
            ("k",),
            MEMORY,
        ),
        (
            "200 arranged",
            lambda spark: _arranged(rows(spark, settings.rows, PARTITIONED_TASKS)),
            ("k",),
            MEMORY,
        ),
        *(
            (f"rows of {size} KB", partial(wide_rows, kilobytes=size), (), said)
            for size, said in (WIDE_35 if pyspark.__version__ < "4" else WIDE).items()
        ),
    ]
    figures = []
    for name, make, by, said in makes:
        idle, peak = _peaks(bench, make, by)
        settings.say(f"{name}: idle {idle / MIB:.0f} MIB, peak {peak / MIB:.0f} MB")
        figures.append(
            Figure(
                "worker memory",
                f"{name}: peak RSS above the {idle / MIB:.0f} MIB of an idle worker",
                "MB",
                Sample(((peak - idle) / MIB,)),
                "what is said",
                Sample((float(said),)),
                goal=MEMORY_GOAL,
            )
        )
    return figures


def _peaks(bench: Bench, make: Make, by: Sequence[str]) -> tuple[int, int]:
    """The largest peak of a worker that writes no row, then that of one that writes; bytes."""
    with bench.session() as spark:
        pid, frame = jvm_pid(spark), make(spark)
        bench.ours(frame.where("a < 0"), *by)
        idle = largest_peak(pid)
        reset_peaks(pid)
        # Twice: Spark uses its workers again, with what their allocators keep.
        bench.ours(frame, *by)
        bench.ours(frame, *by)
        return idle, largest_peak(pid)


def in_turn(settings: Settings, variants: Mapping[str, Callable[[], Cost]]) -> list[list[Cost]]:
    """The costs of each variant, measured A B A B, so that a disturbance meets all alike."""
    costs: dict[str, list[Cost]] = {name: [] for name in variants}
    for turn in range(settings.rounds):
        for name, run in variants.items():
            costs[name].append(cost := run())
            settings.say(
                f"round {turn + 1}, {name}: {cost.wall:.1f} s; CPU: JVM {cost.jvm:.1f},"
                f" Python workers {cost.workers:.1f}, server {cost.server:.1f}, pipeline"
                f" {cost.pipeline:.1f}"
            )
    return list(costs.values())


def _costs(
    title: str,
    ours: list[Cost],
    native: list[Cost],
    *,
    cpu_goal: float,
    wall_goal: float | None = None,
) -> list[Figure]:
    tasks, cpu = _tasks(ours, native)
    wall, served = [cost.wall for cost in native], [cost.tasks + cost.server for cost in ours]
    taken = [cost.wall for cost in ours]
    return [
        _figure(title, "CPU of the tasks", tasks, cpu, goal=cpu_goal),
        _figure(title, "CPU with SeaweedFS's own", served, cpu),
        _figure(title, "wall, the commit included", taken, wall, goal=wall_goal),
    ]


def _tasks(*variants: list[Cost]) -> list[list[float]]:
    return [[cost.tasks for cost in costs] for costs in variants]


def _less(costs: list[Cost], nothing: list[Cost]) -> list[float]:
    """Each write's CPU without that of making the rows, of the same round."""
    return [cost.tasks - alone.tasks for cost, alone in zip(costs, nothing, strict=True)]


def _figure(
    title: str,
    what: str,
    measured: Iterable[float],
    against: Iterable[float],
    *,
    goal: float | None = None,
) -> Figure:
    return Figure(
        title, what, "s", Sample(tuple(measured)), BASELINE, Sample(tuple(against)), goal=goal
    )
