"""Streams that die: each row of the source is visible once, wherever the query was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from s3commit.core.formats.layout import owner_of
from s3commit.core.model.states import JobState
from tests.spark.faulty import POINTS, begin, register_faulty, source
from tests.spark.test_write import load
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 20  # a file, and so a micro-batch


class Work:
    """The directories of one query: its source, its checkpoint, its faults."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source, self.checkpoint = root / "in", root / "checkpoint"
        self.faults = root / "faults"
        self.source.mkdir()
        self.faults.mkdir()
        self.rows = 0

    def add_file(self) -> None:
        """`ROWS` more rows arrive at the source."""
        ids = range(self.rows, self.rows + ROWS)
        text = "\n".join(json.dumps({"id": n, "k": n % 2}) for n in ids)
        number = self.rows // ROWS
        path = self.source / f"{number:03d}.json"
        path.write_text(text)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark takes the older first
        self.rows += ROWS

    def fault(self, point: str, how: str) -> None:
        (self.faults / point).write_text(how)

    def mend(self, point: str) -> None:
        (self.faults / point).unlink()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def ids(spark: SparkSession, place: Place) -> list[int]:
    return sorted(row.id for row in load(spark, place).collect()) if place.data else []


def run(spark: SparkSession, work: Work, place: Place) -> BaseException | None:
    query = begin(source(spark, work.source), place.uri, work.checkpoint)
    try:
        query.awaitTermination()
    except Exception as error:
        return error
    return None


def check_all_ended(place: Place) -> None:
    """I4: nothing is open of a job that was asked for; of the others the sweep has to know."""
    suffix = "/request.json"
    asked = {name.split("/")[0] for name in place.names if name.endswith(suffix)}
    asked = {name.removeprefix("__magic_job-") for name in asked}
    for job in asked:
        place.tiny.wait_until_tidy(job)
    assert not asked & {owner_of(key) for key in place.uploads}


@pytest.mark.usefixtures("small_batches")
def test_i11_a_batch_replayed_after_a_failure_anywhere_is_there_once(
    spark: SparkSession, place: Place, work: Work
) -> None:
    register_faulty(spark, work.faults)
    committed = 0
    for point in POINTS:
        work.add_file()
        work.fault(point, "raise")
        error = run(spark, work, place)
        assert error is not None
        assert f"FaultError: {point}" in str(error)
        # I1 and I2: the batch that died is there as a whole, or not at all.
        assert ids(spark, place) in (list(range(committed)), list(range(work.rows)))
        work.mend(point)
        assert run(spark, work, place) is None
        committed = work.rows
        assert ids(spark, place) == list(range(committed))

    # Spark's own log is behind the sink: a crash between the two.
    commits = work.checkpoint / "commits"
    last = max((path.name for path in commits.glob("[0-9]*")), key=int)
    (commits / last).unlink()
    (commits / f".{last}.crc").unlink()
    before = set(place.jobs)
    assert run(spark, work, place) is None
    (replay,) = set(place.jobs) - before
    assert place.tiny.wait_until_tidy(replay).state is JobState.ABORTED
    assert ids(spark, place) == list(range(committed))
    check_all_ended(place)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("point", ["manifest_put", "request_put"])
def test_i11_a_killed_driver_loses_nothing_and_repeats_nothing(
    spark: SparkSession, place: Place, work: Work, point: str
) -> None:
    work.add_file()
    work.fault(point, "stay")
    root = str(Path(__file__).parents[2])
    with (work.root / "driver.log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.faulty", place.uri, str(work.root)],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": root},
            stdout=log,
            stderr=log,
            cwd=root,
        )
    reached = work.faults / "reached"
    deadline = time.monotonic() + 120
    while not (reached.exists() and reached.read_text()):
        assert driver.poll() is None, (work.root / "driver.log").read_text()
        assert time.monotonic() < deadline, (work.root / "driver.log").read_text()
        time.sleep(0.05)
    victims = [int((work.faults / "jvm").read_text()), driver.pid, int(reached.read_text())]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    driver.wait()
    work.mend(point)

    register_faulty(spark, work.faults)
    assert run(spark, work, place) is None
    assert ids(spark, place) == list(range(ROWS))
    work.add_file()
    assert run(spark, work, place) is None
    assert ids(spark, place) == list(range(2 * ROWS))


def test_complete_output_replaces_the_table_at_each_batch(
    spark: SparkSession, place: Place, work: Work
) -> None:
    work.add_file()
    work.add_file()
    counts = source(spark, work.source).groupBy("k").count()
    writer = counts.writeStream.format("s3commit").outputMode("complete").queryName("counts")
    writer = writer.option("checkpointLocation", str(work.checkpoint))
    writer.trigger(availableNow=True).start(place.uri).awaitTermination()
    found = sorted(tuple(row) for row in load(spark, place).select("k", "count").collect())
    assert found == [(0, ROWS), (1, ROWS)]
    assert len(place.jobs) == 2
    assert len(place.data) <= 2
