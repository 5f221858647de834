"""Streams that die: each row of the source is visible once, wherever the query was killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from s3commit.core.formats.file_names import owner_of
from s3commit.core.model.states import JobState
from tests.spark.faulty import begin
from tests.spark.points import POINTS, ROWS, Work, kill_driver
from tests.spark.test_write import load
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    query = begin(spark, place.uri, work)
    try:
        query.awaitTermination()
    except Exception as error:
        return error
    return None


def check_all_ended(place: Place) -> None:
    """I4: nothing is open of a job that was asked for; of the others the sweep has to know."""
    asked = place.settle()
    assert not asked & {owner_of(key) for key in place.uploads}


@pytest.mark.usefixtures("small_batches")
def test_i11_a_batch_replayed_after_a_failure_anywhere_is_there_once(
    spark: SparkSession, place: Place, work: Work
) -> None:
    committed = 0
    for point in POINTS:
        work.add_file()
        work.fault(point, "raise")
        error = run(spark, work, place)
        assert error is not None
        assert f"FaultError: {point}" in str(error)
        # I1 and I2: the batch that died is there as a whole, or not at all.
        place.settle()
        assert ids(spark, place) in (list(range(committed)), list(range(work.rows)))
        work.mend(point)
        assert run(spark, work, place) is None
        committed = work.rows
        assert ids(spark, place) == list(range(committed))

    work.forget_last_commit()
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
    kill_driver("tests.spark.faulty", place.uri, work)
    work.mend(point)

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
    counts = work.frames(spark).groupBy("k").count()
    writer = counts.writeStream.format("s3commit").outputMode("complete").queryName("counts")
    writer = writer.option("checkpointLocation", str(work.checkpoint))
    writer.trigger(availableNow=True).start(place.uri).awaitTermination()
    found = sorted(tuple(row) for row in load(spark, place).select("k", "count").collect())
    assert found == [(0, ROWS), (1, ROWS)]
    assert len(place.jobs) == 2
    assert len(place.data) <= 2
