"""The batches of Arrow that a task gets are bounded, by a setting of the write's own."""

import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession, functions

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import batches
from s3commit.spark.batches import BYTES, BYTES_KEY, FEWEST, RECORDS, RECORDS_KEY, collect
from s3commit.writer.transfer import MIB
from tests.servers import until
from tests.spark.conftest import VERSION, settings
from tests.spark.disturbed import fail_always, task_ids


def wide(spark: SparkSession, rows: int, size: int) -> DataFrame:
    return spark.range(0, rows, 1, 1).selectExpr("id", f"repeat('x', {size}) AS text")


def sizes(frame: DataFrame) -> list[tuple[int, int]]:
    """The rows and the bytes of each batch that reaches Python."""

    def spy(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = [(batch.num_rows, batch.nbytes) for batch in found]
        yield pa.record_batch({"seen": [pickle.dumps(seen)]})

    (row,) = collect(frame.mapInArrow(spy, "seen binary"))
    found: list[tuple[int, int]] = pickle.loads(row.seen)
    return found


@pytest.mark.parametrize(("rows", "size"), [(5_000, 1_000), (2_500, 20_000), (200, 230_000)])
def test_a_batch_is_bounded_on_the_session(spark: SparkSession, rows: int, size: int) -> None:
    found = sizes(wide(spark, rows, size))
    assert sum(count for count, _ in found) == rows
    if VERSION >= (4, 0):
        assert max(size for _, size in found) <= BYTES + size + MIB
    else:
        assert max(count for count, _ in found) == min(rows, RECORDS)
    assert all(spark.conf.get(key, None) is None for key in (RECORDS_KEY, BYTES_KEY))


def test_a_sessions_bound_counts_and_too_large_batches_become_smaller(spark: SparkSession) -> None:
    with settings(spark, spark__sql__execution__arrow__maxRecordsPerBatch="100"):
        assert max(count for count, _ in sizes(wide(spark, 1_000, 10))) == 100
    frame = wide(spark, 25, 10).mapInArrow(too_large_above(FEWEST), "rows long")
    assert [row.rows for row in collect(frame)] == [FEWEST, FEWEST, 5]


def too_large_above(rows: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in found:
            if batch.num_rows > rows:
                raise MemoryError("org.apache.arrow.vector.util.OversizedAllocationException")
            yield pa.record_batch({"rows": [batch.num_rows]})

    return task


def test_rows_too_large_for_any_batch_are_refused_with_the_setting(session: SparkSession) -> None:
    frame = wide(session, 3, 10)
    with pytest.raises(InvalidInputError, match=RECORDS_KEY) as refused:
        collect(frame.mapInArrow(too_large_above(0), "rows long"))
    assert refused.value.code == "ROWS_TOO_LARGE"


class Failing:
    """A frame of Spark whose tasks end with the error, on a session with that bound."""

    def __init__(self, asked: str, error: str) -> None:
        bounds = {RECORDS_KEY: asked}
        conf = SimpleNamespace(get=bounds.get, isModifiable=lambda _: True)
        self.sparkSession = SimpleNamespace(conf=conf)
        self.error, self.runs = error, 0

    def collect(self) -> None:
        self.runs += 1
        raise RuntimeError(self.error)


@pytest.mark.parametrize(
    ("asked", "error", "again"),
    [
        (str(FEWEST), "org.apache.arrow.memory.OutOfMemoryException", False),
        (str(FEWEST + 1), "org.apache.arrow.memory.OutOfMemoryException", True),
        ("0", "org.apache.arrow.memory.OutOfMemoryException", True),  # of any number
        ("100", "io.netty.util.internal.OutOfDirectMemoryError", False),
        ("100", "OutOfDirectMemoryError at org.apache.arrow.memory.Allocator", True),
    ],
)
def test_tasks_run_again_for_arrows_errors_alone_and_if_there_is_a_smaller_batch(
    monkeypatch: pytest.MonkeyPatch, asked: str, error: str, again: bool
) -> None:
    frame: Any = Failing(asked, error)
    monkeypatch.setattr(batches, "_with", lambda *_: frame)
    with pytest.raises(Exception, match=RECORDS_KEY if "arrow" in error else error):
        collect(frame)
    assert frame.runs == 1 + again


# What Spark does for a session's own plans alone


@pytest.mark.parametrize("ends", ["well", "after smaller batches", "with an error"])
def test_what_a_frame_observes_reaches_its_program(spark: SparkSession, ends: str) -> None:
    """As it does when Spark itself writes the frame."""
    seen = Observation()
    frame = spark.range(0, 50, 1, 2).observe(seen, functions.count("id").alias("rows"))

    def task(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if ends == "with an error":
            fail_always(*task_ids())
        yield from too_large_above(FEWEST if ends == "after smaller batches" else 50)(found)

    try:
        collect(frame.mapInArrow(task, "rows long"))
    except Exception as error:
        assert "this task always fails" in str(error)
    told: list[dict[str, Any]] = []
    threading.Thread(target=lambda: told.append(seen.get), daemon=True).start()
    until(lambda: told, "the observation", seconds=300)
    # Releases before 4.3 complete an observation once, with what the first run has seen.
    of_first_run = [{"rows": 0}] if VERSION < (4, 3) and ends == "after smaller batches" else []
    if ends != "with an error":  # then each release says something else
        assert told[0] in [{"rows": 50}, *of_first_run]


@pytest.mark.skipif(VERSION < (4, 0), reason="Spark 3.5 has interrupts with Connect alone")
def test_an_interrupt_of_the_session_ends_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    def task(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        Path(tmp_path, "runs").touch()
        threading.Event().wait(60)
        yield from found

    interrupted: list[str] = []

    def interrupt() -> None:
        until(Path(tmp_path, "runs").exists, "a task")
        interrupted.extend(spark.interruptAll())

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Exception, match="CANCELLED"):
        collect(spark.range(0, 2, 1, 1).mapInArrow(task, "id long"))
    thread.join()
    assert len(interrupted) == 1
    assert not spark.sparkContext.getJobTags()
