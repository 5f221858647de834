"""`batch_writer` in ``foreachBatch``: each row of the source is visible once, wherever it dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import batch_writer
from tests.spark.batches import begin
from tests.spark.points import POINTS, ROWS, Work, kill_driver
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


def ids(spark: SparkSession, place: Place, tmp_path: Path) -> list[int]:
    if not place.data:
        return []
    copy = place.download(tmp_path / f"copy-{len(place.names)}")
    return sorted(row.id for row in spark.read.parquet(copy).collect())


def run(spark: SparkSession, work: Work, place: Place) -> BaseException | None:
    try:
        begin(spark, place.uri, work).awaitTermination()
    except Exception as error:
        return error
    return None


@pytest.mark.usefixtures("small_batches")
def test_i11_a_batch_replayed_after_a_failure_anywhere_is_there_once(
    spark: SparkSession, place: Place, work: Work, tmp_path: Path
) -> None:
    committed = 0
    for point in POINTS:
        work.add_file()
        work.fault(point, "raise")
        error = run(spark, work, place)
        assert error is not None
        assert "FaultError" in str(error)
        # I1 and I2: the batch that died is there as a whole, or not at all.
        place.settle()
        assert ids(spark, place, tmp_path) in (list(range(committed)), list(range(work.rows)))
        work.mend(point)
        assert run(spark, work, place) is None
        committed = work.rows
        assert ids(spark, place, tmp_path) == list(range(committed))
    work.forget_last_commit()
    assert run(spark, work, place) is None
    assert ids(spark, place, tmp_path) == list(range(committed))
    for job in place.jobs:
        place.tiny.wait_until_tidy(job)
    assert place.uploads == []


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("point", ["manifest_put", "request_put"])
def test_i11_a_killed_driver_loses_nothing_and_repeats_nothing(
    spark: SparkSession, place: Place, work: Work, point: str, tmp_path: Path
) -> None:
    work.add_file()
    work.fault(point, "stay")
    kill_driver("tests.spark.batches", place.uri, work)
    work.mend(point)
    assert run(spark, work, place) is None
    assert ids(spark, place, tmp_path) == list(range(ROWS))
    work.add_file()
    assert run(spark, work, place) is None
    assert ids(spark, place, tmp_path) == list(range(2 * ROWS))


def test_a_batch_without_rows_makes_no_file(spark: SparkSession, place: Place, work: Work) -> None:
    work.add_file()
    none = work.frames(spark).where("id < 0").writeStream.foreachBatch(batch_writer(place.uri))
    none = none.option("checkpointLocation", str(work.checkpoint))
    none.trigger(availableNow=True).start().awaitTermination()
    assert place.data == []
    place.tidy()


def test_i11_a_batch_of_spark_connect_has_the_name_of_its_query(
    connect: SparkSession, place: Place
) -> None:
    write = batch_writer(place.uri, query="numbers")
    write(connect.range(3), 7)
    before = place.data
    write(connect.range(3), 7)
    assert place.data == before != []
    with pytest.raises(InvalidInputError, match="give the query a name"):
        batch_writer(place.uri)(connect.range(3), 8)
