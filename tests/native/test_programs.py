"""Ordinary programs leave the same rows by the jar as by Spark's own protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.native import s3a
from tests.native.programs import PROGRAMS, Place
from tests.native.s3a import ROOT
from tests.native.sides import CONTROL, Side, rows, side
from tests.native.test_cluster import environment
from tests.spark.conftest import SETTINGS
from tests.spark.tiny import BUCKET, TinyPipeline
from tests.spark.tiny import Place as Destination

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("beside_sparks_own")

HERE = ["incremental", "hive"]
KRYO = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrationRequired": "true",
    # What Spark itself sends of the rows that a program collects, and has not registered.
    "spark.kryo.classesToRegister": ",".join(
        (
            "org.apache.spark.util.io.ChunkedByteBuffer",
            "[Lorg.apache.spark.util.io.ChunkedByteBuffer;",
            "[Ljava.nio.ByteBuffer;",
        )
    ),
}


def run(name: str, where: Side) -> dict[str, Any]:
    """Run a program in this session; what it leaves."""
    PROGRAMS[name](Place(where.spark, where.db, where.root))
    assert where.ours is (where.jobs() > 0)
    assert where.uploads() == []
    return where.found()


@pytest.mark.parametrize("name", HERE)
def test_a_program_leaves_the_rows_that_it_leaves_by_spark(
    spark: SparkSession, tiny: TinyPipeline, place: Destination, name: str
) -> None:
    with side(spark, tiny, CONTROL, "json") as control, side(spark, tiny, BUCKET, "json") as ours:
        wanted = run(name, control)
        assert any(wanted.values())
        assert run(name, ours) == wanted


class Drivers:
    """Drivers of their own, one after the other, with one catalog of Hive's."""

    def __init__(self, tiny: TinyPipeline, work: Path, **settings: str) -> None:
        self.work = work
        self.settings = {
            **SETTINGS,
            **s3a.settings(tiny.environment["AWS_ENDPOINT_URL"]),
            "spark.s3commit.prefixes": f"s3a://{BUCKET}/",
            "spark.local.dir": str(work / "local"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": (
                f"jdbc:derby:;databaseName={work / 'metastore'};create=true"
            ),
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
            **settings,
        }

    @contextmanager
    def start(self, runs: list[tuple[str, Side]], threads: int = 1) -> Iterator[Any]:
        """A driver that runs these programs; if it has not ended, it is killed."""
        wanted = {
            "settings": self.settings,
            "threads": threads,
            "runs": [(name, one.db, one.root, str(self.work)) for name, one in runs],
        }
        command = [sys.executable, "-m", "tests.native.programs", json.dumps(wanted)]
        with (
            Path(self.work, "log").open("w") as log,
            subprocess.Popen(
                command,
                env=environment(self.work),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            ) as driver,
        ):
            try:
                yield driver
            finally:
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)

    def await_marks(self, driver: Any, sides: list[Side]) -> None:
        """Until the programs at these sides have begun, or stand still."""
        end = time.monotonic() + 300
        while not all((self.work / one.db).exists() for one in sides):
            assert driver.poll() is None, Path(self.work, "log").read_text()[-6000:]
            assert time.monotonic() < end
            time.sleep(0.1)

    def end(self, driver: Any) -> list[dict[str, Any]]:
        """Wait for its end; what each program left."""
        printed, _ = driver.communicate(timeout=300)
        assert driver.returncode == 0, Path(self.work, "log").read_text()[-6000:]
        left: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
        return left


def test_programs_with_kryo_one_killed_and_one_that_two_drivers_run_side_by_side(
    spark: SparkSession, tiny: TinyPipeline, place: Destination, tmp_path: Path
) -> None:
    """Kryo serializes all that Spark lets it, and registered classes alone.

    The first program's driver is killed, and another one runs it again, with the others. The last
    program is run by that driver and this one at once at our side; at the other side this one's
    half is first, since Spark's own protocol can't have two jobs in one directory.
    """
    drivers = Drivers(tiny, tmp_path, **KRYO)
    names = ["killed", "hive", "first_half"]
    runs = [(name, Side(spark, tiny, bucket)) for name in names for bucket in (CONTROL, BUCKET)]
    with drivers.start(runs[:2], threads=2) as driver:
        drivers.await_marks(driver, [one for _, one in runs[:2]])
    *_, (_, control), (_, ours) = runs
    with side(spark, tiny, CONTROL) as here:
        PROGRAMS["second_half"](Place(spark, here.db, control.root))
        with drivers.start(runs) as driver:
            drivers.await_marks(driver, [ours])
            spark.sql(f"DROP TABLE {here.db}.orders")
            PROGRAMS["second_half"](Place(spark, here.db, ours.root))
            left = drivers.end(driver)
    for wanted, found in zip(left[:-2:2], left[1:-2:2], strict=True):
        assert any(wanted.values())
        assert found == wanted
    for _, one in runs:
        assert one.ours is (one.jobs() > 0)
    shared = [rows(spark.read.parquet(f"{one.root}_files/shared")) for one in (control, ours)]
    assert shared[0] == shared[1]
    assert len(shared[0]) == 4 * 20
