"""Tasks and drivers that fail, die or run twice: a job appears whole, or not at all."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from moto.s3.exceptions import S3AccessDeniedError
from moto.s3.responses import S3Response
from pyspark.sql import DataFrame, SparkSession

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.states import JobState
from tests.native.conftest import FAILURES, settings, uri
from tests.servers import until
from tests.spark.disturbed import disturbed, fail_always, fail_first_try, kill_first_try, task_ids
from tests.spark.tiny import BUCKET, Place, TinyPipeline

WHOLE = list(range(1000))


@pytest.fixture(autouse=True)
def batches_of_100(spark: SparkSession) -> Iterator[None]:
    with settings(spark, spark__sql__execution__arrow__maxRecordsPerBatch="100"):
        yield


def ids(spark: SparkSession, place: Place) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(uri(place)).collect())


def parts_on_disk(spark: SparkSession) -> list[str]:
    """What lies in Spark's local directories of parts that are to be uploaded."""
    local = Path(str(spark.conf.get("spark.local.dir")))
    assert any(local.iterdir())
    return [path.name for path in local.rglob("temp_local_*")]


def visible(place: Place) -> list[str]:
    """The data files; a delete by S3A may leave a marker of the empty directory."""
    return [name for name in place.data if name]


def save(frame: DataFrame, place: Place, **options: Any) -> None:
    frame.write.options(maxRecordsPerFile=50, **options).mode("append").parquet(uri(place))


@pytest.mark.parametrize("disturb", [fail_first_try, kill_first_try])
def test_i2_i3_i4_a_task_that_fails_once_is_counted_once(
    spark: SparkSession, place: Place, disturb: Callable[[int, int], None]
) -> None:
    save(disturbed(spark.range(0, 1000, 1, 2), disturb), place)
    assert ids(spark, place) == WHOLE
    place.tidy()
    assert len(place.data) == len(place.committed()) == 20
    assert place.uploads == []


def test_i1_i4_a_task_that_fails_for_good_leaves_nothing(spark: SparkSession, place: Place) -> None:
    with pytest.raises(FAILURES, match="this task always fails"):
        save(disturbed(spark.range(0, 1000, 1, 2), fail_always), place)
    place.await_no_uploads()
    assert visible(place) == []
    assert "_SUCCESS" not in place.names
    assert parts_on_disk(spark) == []


@contextmanager
def lines_of(spark: SparkSession, logger: str) -> Iterator[Callable[[], str]]:
    """What that logger of the JVM has said since."""
    jvm: Any = spark.sparkContext._jvm
    log4j, written = jvm.org.apache.logging.log4j, jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(
        None, None, written, "test", False, True
    )
    appender.start()
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.WARN)
    log4j.LogManager.getLogger(logger).addAppender(appender)
    try:
        yield written.toString
    finally:
        log4j.LogManager.getLogger(logger).removeAppender(appender)


def test_i4_an_upload_that_is_aborted_already_is_nothing_to_warn_of(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    done = tmp_path / "aborted"
    of_the_task = {"Bucket": BUCKET, "Prefix": f"{place.destination.prefix}part-00001"}

    def abort() -> None:
        s3: Any = boto3.client("s3")
        listed = until(lambda: s3.list_multipart_uploads(**of_the_task).get("Uploads"))
        for one in listed:
            s3.abort_multipart_upload(Bucket=BUCKET, Key=one["Key"], UploadId=one["UploadId"])
        done.touch()

    def abort_and_fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            yield batch
            if number == 2 and task_ids() == (1, 0):  # the first batch has left the process
                abort()
                raise RuntimeError("the first try fails")

    frame = spark.range(0, 1000, 1, 2).selectExpr("id", "repeat('x', 9000) as text")
    with lines_of(spark, "io.s3commit.spark.Attempt") as lines:
        save(frame.mapInArrow(abort_and_fail, frame.schema), place)
        assert lines() == ""
    assert done.exists()
    assert ids(spark, place) == WHOLE


def test_the_first_abort_stands(spark: SparkSession, tiny: TinyPipeline, place: Place) -> None:
    def abort_first(partition: int, attempt: int) -> None:
        if partition == 1:
            time.sleep(2)

    def abort() -> None:
        (job_id,) = until(lambda: place.jobs, "a job")
        directory = JobDirectory(place.destination, job_id)
        body = b'{"version":1,"jobId":"%s","action":"abort","reason":"by hand"}' % job_id.encode()
        tiny.store.put(BUCKET, directory.request, body, if_absent=True)

    operator = threading.Thread(target=abort)
    operator.start()
    with pytest.raises(FAILURES, match=r"its abort was requested first \(by hand\)"):
        save(disturbed(spark.range(0, 1000, 1, 2), abort_first), place)
    operator.join()
    place.await_no_uploads()
    assert [name for name in place.names if name] == []


def test_file_systems_that_somebody_closes_are_not_ours(spark: SparkSession, place: Place) -> None:
    """A Thrift server closes all that a user has in Hadoop's cache when a session of his ends."""
    spark.range(10).write.mode("append").parquet(uri(place))
    virtual_machine: Any = spark._jvm
    virtual_machine.org.apache.hadoop.fs.FileSystem.closeAll()
    spark.range(10).write.mode("append").parquet(uri(place))
    assert len(ids(spark, place)) == 20


# What a job that Spark gave up, or that was refused, leaves: nothing


def keys(tiny: TinyPipeline, prefix: str) -> list[str]:
    """What lies there, save the markers of directories that S3A makes."""
    return [one.key for one in tiny.store.list(BUCKET, prefix) if not one.key.endswith("/")]


def test_i1_a_refused_table_is_free(spark: SparkSession, tiny: TinyPipeline, place: Place) -> None:
    """As a program does that writes the directory itself, in Spark's own mode `error`."""
    with pytest.raises(FAILURES, match=r"none of its files are visible.*CONDITION_FAILED"):
        spark.range(10).write.option("conditions.minFiles", "9").parquet(uri(place))
    place.await_no_uploads()
    assert keys(tiny, place.destination.prefix) == []
    name = "t" + place.destination.prefix.split("/")[0]
    spark.sql(
        f"CREATE TABLE {name} USING parquet LOCATION '{uri(place)}' AS SELECT * FROM range(9)"
    )
    assert spark.table(name).count() == 9
    spark.sql(f"DROP TABLE {name}")


def test_without_the_right_to_delete_a_warning_says_what_stays(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = S3Response._bucket_response_delete_keys

    def refuse(self: S3Response, bucket: str) -> object:
        if b"/_job.json" in self.body:
            raise S3AccessDeniedError
        return sent(self, bucket)

    monkeypatch.setattr(S3Response, "_bucket_response_delete_keys", refuse)
    with (
        lines_of(spark, "io.s3commit.spark.Job") as lines,
        pytest.raises(FAILURES, match="CONDITION_FAILED"),
    ):
        save(spark.range(10), place, **{"conditions.minFiles": "5"})
    assert "Allow s3:DeleteObject on" in lines()
    assert place.tidy().state is JobState.ABORTED
