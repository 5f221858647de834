"""A job that Spark gave up, or that was refused, leaves nothing where it was to write."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from moto.s3.exceptions import S3AccessDeniedError
from moto.s3.responses import S3Response

from s3commit.core.model.states import JobState
from tests.native.conftest import FAILURES, settings, uri
from tests.native.test_failures import lines_of, save
from tests.spark.disturbed import disturbed, fail_always
from tests.spark.tiny import BUCKET, Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Its task fails unless the session says otherwise, as by a file that is broken, then mended. It is
# the only one: Spark does not wait for others when it gives a job up, and they go on for a moment.
ROWS = (
    "SELECT id, IF('${broken}' = 'yes' AND id = 7, raise_error('broken'), 'x') AS v"
    " FROM range(0, 10, 1, 1)"
)


@pytest.fixture
def db(spark: SparkSession) -> Iterator[str]:
    name = f"db_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {name} LOCATION 's3a://{BUCKET}/{name}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


def keys(tiny: TinyPipeline, prefix: str) -> list[str]:
    """What lies there, save the markers of directories that S3A makes."""
    return [one.key for one in tiny.store.list(BUCKET, prefix) if not one.key.endswith("/")]


Statement = Callable[["SparkSession", str, str], object]


def ctas(spark: SparkSession, table: str, place: str) -> object:
    return spark.sql(f"CREATE TABLE {table} USING parquet AS {ROWS}")


def ctas_elsewhere(spark: SparkSession, table: str, place: str) -> object:
    return spark.sql(f"CREATE TABLE {table} USING parquet LOCATION '{place}' AS {ROWS}")


def ctas_of_partitions(spark: SparkSession, table: str, place: str) -> object:
    return spark.sql(f"CREATE TABLE {table} USING orc PARTITIONED BY (v) AS {ROWS}")


def managed(spark: SparkSession, table: str, place: str) -> None:
    spark.sql(ROWS).write.saveAsTable(table)


def overwritten(spark: SparkSession, table: str, place: str) -> None:
    spark.sql(ROWS).write.mode("overwrite").saveAsTable(table)


def at_a_path(spark: SparkSession, table: str, place: str) -> None:
    spark.sql(ROWS).write.option("path", place).saveAsTable(table)


OURS, SPARKS = "ours", "Spark's own"


@pytest.fixture(params=[OURS, SPARKS])
def protocol(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """The session's protocol, and Spark's own as control."""
    if request.param == OURS:
        yield
        return
    with settings(spark, spark__s3commit__prefixes="s3a://nowhere/"):
        yield


@pytest.mark.usefixtures("protocol")
@pytest.mark.parametrize(
    "write", [ctas, ctas_elsewhere, ctas_of_partitions, managed, overwritten, at_a_path]
)
def test_a_table_whose_creation_failed_can_be_created(
    spark: SparkSession,
    tiny: TinyPipeline,
    place: Place,
    db: str,
    write: Statement,
) -> None:
    table = f"{db}.t"
    with settings(spark, broken="yes"), pytest.raises(FAILURES, match="broken"):
        write(spark, table, uri(place))
    assert keys(tiny, f"{db}/") == keys(tiny, place.destination.prefix) == []
    with settings(spark, broken="no"):
        write(spark, table, uri(place))
    assert spark.table(table).count() == 10
    spark.sql(f"DROP TABLE {table}")
    assert place.uploads == []


def test_a_table_that_was_refused_can_be_created(
    spark: SparkSession, tiny: TinyPipeline, place: Place
) -> None:
    """As a program does that writes the directory itself, in Spark's own mode `error`."""
    with pytest.raises(FAILURES, match="CONDITION_FAILED"):
        spark.range(10).write.option("conditions.minFiles", "9").parquet(uri(place))
    assert keys(tiny, place.destination.prefix) == []
    name = "t" + place.destination.prefix.split("/")[0]
    spark.sql(
        f"CREATE TABLE {name} USING parquet LOCATION '{uri(place)}' AS SELECT * FROM range(9)"
    )
    assert spark.table(name).count() == 9
    spark.sql(f"DROP TABLE {name}")


def test_i8_the_ledger_remembers_the_job_and_a_repeated_event_puts_nothing(
    spark: SparkSession, tiny: TinyPipeline, place: Place
) -> None:
    before = {record.ref for record in tiny.ledger.jobs_in(JobState.ABORTED, before="9")}
    with pytest.raises(FAILURES, match="this task always fails"):
        save(disturbed(spark.range(0, 1000, 1, 2), fail_always), place)
    (record,) = (
        one for one in tiny.ledger.jobs_in(JobState.ABORTED, before="9") if one.ref not in before
    )
    assert record.destination == place.destination
    tiny.wait_until_tidy(record.job_id)
    tiny.handle(BUCKET, f"{place.destination.prefix}__magic_job-{record.job_id}/request.json")
    place.await_no_uploads()
    assert keys(tiny, place.destination.prefix) == []


def test_without_the_right_to_delete_a_warning_says_what_stays(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = S3Response._bucket_response_delete_keys

    def refuse(self: S3Response, bucket: str) -> object:
        if b"/job.json" in self.body:
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
