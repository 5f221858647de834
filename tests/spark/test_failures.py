"""Tasks that fail, die or run twice: all of the counted attempts are visible, or nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from s3commit.core.model.states import JobState
from s3commit.spark.batch import BatchWriter
from s3commit.spark.job import TaskMessage
from s3commit.spark.source import S3CommitDataSource
from tests.spark.disturbed import (
    disturbed,
    fail_always,
    fail_first_try,
    kill_first_try,
    task_ids,
)
from tests.spark.test_write import load, save
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


@pytest.fixture(autouse=True)
def batches_of_100(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_i2_i3_a_task_that_fails_once_is_counted_once(spark: SparkSession, place: Place) -> None:
    save(disturbed(spark.range(0, 1000, 1, 2), fail_first_try), place, maxRecordsPerFile=50)
    assert ids(load(spark, place)) == list(range(1000))
    place.tidy()
    assert len(place.data) == len(place.committed()) == 20
    assert place.uploads == []


def test_i1_i4_a_task_that_fails_for_good_leaves_nothing(spark: SparkSession, place: Place) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="this task always fails"):
        save(disturbed(spark.range(0, 1000, 1, 2), fail_always), place, maxRecordsPerFile=50)
    assert place.tidy().state is JobState.ABORTED
    place.await_no_uploads()
    assert place.data == []
    assert "_SUCCESS" not in place.names


class DisturbedWriter(BatchWriter):
    """Calls ``disturb`` in the writer's own process: in the middle of a write, or at its end."""

    def __init__(self, inner: BatchWriter, disturb: Callable[[int, int], None], at_end: bool):
        super().__init__(inner.job, by_session=inner.by_session)
        self.disturb = disturb
        self.at_end = at_end

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        def watched() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(iterator):
                if number == 3 and not self.at_end:
                    self.disturb(*task_ids())
                yield batch

        message = super().write(watched())
        if self.at_end:
            self.disturb(*task_ids())
        return message


def save_disturbed(
    spark: SparkSession, place: Place, disturb: Callable[[int, int], None], *, at_end: bool
) -> None:
    """Save 1000 rows of two tasks, 20 files in all, with a disturbed writer."""

    class Disturbed(S3CommitDataSource):
        @classmethod
        def name(cls) -> str:
            return "s3commit_disturbed"

        def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
            inner = super().writer(schema, overwrite)
            assert isinstance(inner, BatchWriter)
            return DisturbedWriter(inner, disturb, at_end)

    spark.dataSource.register(Disturbed)
    writer = spark.range(0, 1000, 1, 2).write.format("s3commit_disturbed")
    writer.option("maxRecordsPerFile", 50).mode("append").save(place.uri)


def test_i2_i4_a_writer_process_killed_in_the_middle_is_tried_again(
    spark: SparkSession, place: Place
) -> None:
    save_disturbed(spark, place, kill_first_try, at_end=False)
    assert ids(load(spark, place)) == list(range(1000))
    place.tidy()
    assert sum(file.rows or 0 for file in place.committed()) == 1000
    assert place.uploads == []


def test_i3_i4_of_two_attempts_that_finish_one_counts(spark: SparkSession, place: Place) -> None:
    # The first try fails when its manifest is in S3 and before Spark hears of it.
    save_disturbed(spark, place, fail_first_try, at_end=True)
    record = place.tidy()
    attempts = {(one.task_id, one.attempt_id) for one in place.tiny.ledger.attempts(record.ref)}
    assert len({task for task, _ in attempts}) == 2
    assert len(attempts) == 3
    assert ids(load(spark, place)) == list(range(1000))
    assert len(place.data) == 20
    assert place.uploads == []
