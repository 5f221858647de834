"""Spark as the write benchmarks run it: one JVM, fresh Python workers a session, the same rows."""

from __future__ import annotations

import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from unittest.mock import patch

from bench.localfs import chmod_by_system_call
from bench.pipeline import BUCKET, DATA, BenchWeed, Committer, environment, make_pipeline
from bench.processes import Meter
from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.ports.bundle import Ports
from tests.native import s3a
from tests.servers import free_ports

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3commit.spark import CommitResult

VALUES: Final = 200  # of the partition column


@dataclass(frozen=True, slots=True)
class Cost:
    """What one write took, in seconds. ``jvm``, ``workers``, ``server`` and ``pipeline`` are CPU.

    ``workers`` are the Python workers, the one that commits among them; ``server`` is SeaweedFS;
    ``pipeline`` is this process, which runs the commit protocol in place of the Lambda functions.
    """

    wall: float
    jvm: float
    workers: float
    server: float
    pipeline: float

    @property
    def tasks(self) -> float:
        """CPU of the JVM and the Python workers: what the Spark cluster pays for."""
        return self.jvm + self.workers


@dataclass(frozen=True, slots=True)
class Bench:
    """The running store, the pipeline there, and a directory for Spark's own files."""

    weed: BenchWeed
    pipeline: Ports
    local: Path

    @classmethod
    @contextmanager
    def running(cls, directory: Path) -> Iterator[Self]:
        """Start the store below ``directory`` and point the environment at it, as a writer's."""
        home = directory / "weed"
        home.mkdir()
        with patch.dict(os.environ), BenchWeed(home, free_ports(4)) as weed:
            os.environ.update(environment(weed.ADMIN, weed.endpoint))
            client = make_client()
            client.create_bucket(Bucket=BUCKET)
            # Spark's workers inherit the environment that the JVM is started with.
            os.environ.update(environment(weed.WRITER, weed.endpoint))
            os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
            yield cls(weed, make_pipeline(S3ObjectStore(client)), directory)

    @contextmanager
    def session(self, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
        """A session with Python workers of its own, on two cores; Spark's own defaults else."""
        from pyspark.sql import SparkSession

        builder = SparkSession.Builder()
        for name, value in (settings or {}).items():
            builder = builder.config(name, value)
        spark = (
            builder.master("local[2]")
            .appName("s3commit bench")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "3g")
            .config("spark.sql.warehouse.dir", str(self.local / "warehouse"))
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
        try:
            chmod_by_system_call(spark)
            yield spark
        finally:
            spark.stop()

    def native(self, frame: DataFrame, *by: str) -> Cost:
        """Spark's own parquet writer, snappy, to the local disk."""
        target = self.local / uuid.uuid4().hex
        writer = frame.write.mode("overwrite").option("compression", "snappy")
        with self.measured(frame.sparkSession) as costs:
            writer.partitionBy(*by).parquet(str(target))
        shutil.rmtree(target)
        return costs[0]

    def ours(self, frame: DataFrame, *by: str) -> Cost:
        """`s3commit.spark.write`, snappy, to SeaweedFS, committed when it returns."""
        from s3commit.spark import write

        return self._committed(
            frame, lambda path: write(frame, path, mode="append", partition_by=by)
        )

    def _committed(self, frame: DataFrame, save: Callable[[str], object]) -> Cost:
        with self._place() as prefix:
            with Committer(self.pipeline, prefix), self.measured(frame.sparkSession) as costs:
                save(f"s3://{BUCKET}/{prefix}")
            return costs[0]

    @contextmanager
    def table(self, frame: DataFrame, *by: str) -> Iterator[CommitResult]:
        """What `s3commit.spark.write` has committed there; it is deleted in the end."""
        from s3commit.spark import write

        with self._place() as prefix:
            with Committer(self.pipeline, prefix):
                result = write(frame, f"s3://{BUCKET}/{prefix}", mode="append", partition_by=by)
            yield result

    @contextmanager
    def _place(self) -> Iterator[str]:
        prefix = f"{DATA}{uuid.uuid4().hex}/"
        yield prefix
        store = self.pipeline.store
        for found in store.list(BUCKET, prefix):
            store.delete(BUCKET, found.key)

    def nothing(self, frame: DataFrame) -> Cost:
        """The rows made and thrown away: what both writers pay before they write."""
        return self.consumed(frame.sparkSession, lambda: frame)

    def consumed(self, spark: SparkSession, make: Callable[[], DataFrame]) -> Cost:
        """A DataFrame made, and its rows thrown away."""
        with self.measured(spark) as costs:
            make().write.format("noop").mode("overwrite").save()
        return costs[0]

    def reader_settings(self, endpoint: str) -> dict[str, str]:
        """For a `session` that knows S3 by S3A; Maven copies its jars, the first time."""
        if not s3a.folder().exists():
            s3a.copy()
        keys = {f"spark.hadoop.fs.s3a.{one}.key": self.weed.ADMIN for one in ("access", "secret")}
        return {**s3a.settings(endpoint), **keys}

    @contextmanager
    def measured(self, spark: SparkSession) -> Iterator[list[Cost]]:
        """The block's cost, when it has ended."""
        costs: list[Cost] = []
        with Meter(jvm_pid(spark)) as tasks, Meter(self.weed.pid) as server:
            own, start = time.process_time(), time.perf_counter()
            yield costs
            wall, pipeline = time.perf_counter() - start, time.process_time() - own
        costs.append(Cost(wall, tasks.own, tasks.below, server.own, pipeline))


def jvm_pid(spark: SparkSession) -> int:
    """The process of Spark's JVM, whose descendants the Python workers are."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.ProcessHandle.current().pid())


def rows(spark: SparkSession, count: int, tasks: int) -> DataFrame:
    """``count`` rows in ``tasks`` tasks, computed from their number, about 76 bytes each as Arrow.

    An int, a long, a double, a string of 40 characters that does not compress, a timestamp, and
    ``k``, an int with `VALUES` values in no order.
    """
    from pyspark.sql import functions as f

    number = f.col("id")
    return spark.range(0, count, 1, tasks).select(
        (number % 1_000_000).cast("int").alias("a"),
        (number * 7919).alias("b"),
        f.rand(42).alias("c"),
        f.sha1(number.cast("string")).alias("d"),
        f.timestamp_micros(number * 1_000_003 + 1_700_000_000_000_000).alias("e"),
        f.pmod(f.hash(number), f.lit(VALUES)).alias("k"),
    )


def wide_rows(spark: SparkSession, kilobytes: int) -> DataFrame:
    """Rows with a text of that size that does not compress, in one task: 256 MB, two batches."""
    count = max(4_000, 256_000 // kilobytes)
    text = "sha2(string(id * 10000 + n), 512)"
    return spark.range(0, count, 1, 1).selectExpr(
        "id AS a", f"array_join(transform(sequence(1, {kilobytes * 8}), n -> {text}), '') AS text"
    )
