"""`batch_writer` in ``foreachBatch``: each row of the source is visible once, wherever it fails.

tests/spark/test_write.py has drivers that are killed.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import s3commit
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, S3CommitError
from s3commit.core.model.states import JobState
from s3commit.spark import batch_writer
from s3commit.writer.requests import wait_for_result
from s3commit.writer.table_write import commit
from tests.spark.tiny import Place

POINTS = ("before_request", "request_put", "committed")
ROWS = 20  # a file, and so a micro-batch


class FaultError(RuntimeError):
    """What the point raises, over and over."""


class Work:
    """The directories of one query, its source and checkpoint, and the point where it fails."""

    def __init__(self, root: Path) -> None:
        self.source, self.checkpoint = root / "in", root / "checkpoint"
        self.copies: list[Path] = []
        self.fault = ""
        self.source.mkdir()
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

    def forget_last_commit(self) -> None:
        """Spark's own log is behind the sink: a crash between the two."""
        commits = self.checkpoint / "commits"
        last = max((path.name for path in commits.glob("[0-9]*")), key=int)
        (commits / last).unlink()
        (commits / f".{last}.crc").unlink()

    def keep_copy(self) -> None:
        """As an operator does, or a snapshot of a volume."""
        name = f"{self.checkpoint.name}-{len(self.copies)}"
        self.copies.append(shutil.copytree(self.checkpoint, self.checkpoint.with_name(name)))

    @staticmethod
    def fail(*_: Any, **__: Any) -> None:
        """Raise, whatever is requested."""
        raise FaultError

    def at(self, point: str) -> None:
        """Raise if that is the point."""
        if self.fault == point:
            raise FaultError(point)

    def frames(self, spark: SparkSession) -> DataFrame:
        """A stream of the source's files, one a micro-batch, in two tasks."""
        reader = spark.readStream.schema("id bigint, k int").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.source)).repartition(2)


def faulty_writer(uri: str, work: Work) -> Any:
    """What `batch_writer` gives, which comes to each of `POINTS` in this order."""
    write = batch_writer(uri, partition_by="k", commit_timeout=60)

    def faulty_commit(*args: Any) -> Any:
        work.at("before_request")
        return commit(*args)

    def waiting(*args: Any) -> Any:
        work.at("request_put")
        return wait_for_result(*args)

    def write_batch(frame: DataFrame, number: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("s3commit.writer.table_write.commit", faulty_commit)
            patch.setattr("s3commit.writer.job.wait_for_result", waiting)
            write(frame, number)
        work.at("committed")

    return write_batch


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def ids(spark: SparkSession, place: Place, tmp_path: Path) -> list[int]:
    if not place.data:
        return []
    copy = place.download(tmp_path / f"copy-{len(place.names)}")
    return sorted(row.id for row in spark.read.parquet(copy).collect())


def run(spark: SparkSession, work: Work, place: Place) -> BaseException | None:
    try:
        writer = work.frames(spark).writeStream.foreachBatch(faulty_writer(place.uri, work))
        writer = writer.option("checkpointLocation", str(work.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
    except Exception as error:
        return error
    return None


def test_i11_a_batch_replayed_after_a_failure_anywhere_is_there_once(
    spark: SparkSession, place: Place, work: Work, tmp_path: Path
) -> None:
    committed = 0
    for point in POINTS:
        work.add_file()
        work.fault = point
        error = run(spark, work, place)
        assert error is not None
        assert "FaultError" in str(error)
        # I1 and I2: the batch that died is there as a whole, or not at all.
        place.settle()
        assert ids(spark, place, tmp_path) in (list(range(committed)), list(range(work.rows)))
        work.fault = ""
        assert run(spark, work, place) is None
        committed = work.rows
        assert ids(spark, place, tmp_path) == list(range(committed))
    work.forget_last_commit()
    assert run(spark, work, place) is None
    assert ids(spark, place, tmp_path) == list(range(committed))
    for job in place.jobs:
        place.tiny.wait_until_tidy(job)
    assert place.uploads == []


def test_a_batch_without_rows_is_a_job_without_files(
    spark: SparkSession, place: Place, work: Work
) -> None:
    work.add_file()
    none = work.frames(spark).where("id < 0").writeStream.foreachBatch(batch_writer(place.uri))
    none = none.option("checkpointLocation", str(work.checkpoint))
    none.trigger(availableNow=True).start().awaitTermination()
    assert place.data == place.uploads == []
    assert place.tidy().state is JobState.COMMITTED
    assert place.committed() == []


def test_i11_a_query_that_continues_from_an_older_copy_of_its_checkpoint_is_refused(
    spark: SparkSession, place: Place, work: Work, tmp_path: Path
) -> None:
    for _ in range(2):
        work.add_file()
        assert run(spark, work, place) is None
        work.keep_copy()
    work.checkpoint = work.copies[0]
    work.forget_last_commit()  # it repeats the first batch, and would go on with new ones
    error = run(spark, work, place)
    assert "batches 0 and 1 of the query" in str(error) and "Nothing was added" in str(error)
    assert ids(spark, place, tmp_path) == list(range(work.rows))


@pytest.mark.parametrize("writers", [1, 2])
@pytest.mark.parametrize("way_out", ["query", "union"])
def test_i11_a_second_frame_of_a_batch_is_refused_not_skipped(
    spark: SparkSession, place: Place, work: Work, tmp_path: Path, writers: int, way_out: str
) -> None:
    work.add_file()
    both = [batch_writer(place.uri) for _ in range(writers)]
    other = batch_writer(place.uri, query="odd") if way_out == "query" else both[-1]

    def halves(frame: DataFrame, number: int) -> None:
        both[0](frame.where("k = 0"), number)
        both[0](frame.where("k = 0"), number)  # as a program does that tries again
        other(frame.where("k = 1"), number)

    def start(function: Any) -> None:
        writer = work.frames(spark).writeStream.foreachBatch(function)
        writer = writer.option("checkpointLocation", str(work.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    if way_out == "union":
        with pytest.raises(Exception, match=r"would be skipped: .*Nothing was written") as refused:
            start(halves)
        place.settle()
        assert ids(spark, place, tmp_path) == list(range(0, ROWS, 2))
        (job,) = set(re.findall(r"written by job (\S+),", str(refused.value)))
        s3commit.undo(place.uri, job)
        place.settle()
        start(both[0])
    else:
        start(halves)
        start(halves)  # the next run has nothing to repeat
    place.settle()
    assert ids(spark, place, tmp_path) == list(range(ROWS))


def test_a_batch_that_failed_may_be_written_with_other_rows(
    connect: SparkSession, place: Place
) -> None:
    write = batch_writer(place.uri, query="numbers", min_rows=3)
    with pytest.raises(S3CommitError):
        write(connect.range(2), 0)
    write(connect.range(3), 0)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(FaultError):
        patch.setattr("s3commit.spark.stream_write.write_frame", Work.fail)
        write(connect.range(3), 0)  # again, which does not undo the first
    with pytest.raises(JobRefusedError, match="would be skipped"):
        write(connect.range(4), 0)
    write(connect.range(3), 0)
    place.settle()
    assert len(place.data) > 0


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_i11_a_batch_before_the_last_one_is_refused_under_a_used_name(
    connect: SparkSession, place: Place, mode: Any
) -> None:
    """Its batches have the numbers of the older one's; those of an overwrite have no files now."""
    write = batch_writer(place.uri, query="numbers", mode=mode)
    for number in range(3):
        write(connect.range(number + 1), number)
    write(connect.range(3), 2)  # as Spark repeats the last one
    place.settle()
    before = place.data
    for number in (0, 1):
        with pytest.raises(JobRefusedError, match=f"batches {number} and {number + 1} of") as error:
            write(connect.range(10, 11 + number), number)  # as many rows, but new ones
        assert error.value.code == "KEY_TAKEN"
    place.settle()
    assert place.data == before != []


def test_i11_a_connect_batch_has_its_querys_name(connect: SparkSession, place: Place) -> None:
    write = batch_writer(place.uri, query="numbers")
    write(connect.range(3), 7)
    before = place.data
    write(connect.range(3), 7)
    assert place.data == before != []
    with pytest.raises(InvalidInputError, match="name the query"):
        batch_writer(place.uri)(connect.range(3), 8)
