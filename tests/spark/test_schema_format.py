"""A table of another schema, by ``format("s3commit")``: batches, and the session's scope."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.options import parse_options
from s3commit.spark.policy import SESSION_SCOPE
from tests.spark.conftest import VERSION
from tests.spark.test_write import load, save
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def dynamic(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(SESSION_SCOPE, "dynamic")
    yield
    spark.conf.unset(SESSION_SCOPE)


def overwrite(frame: DataFrame, place: Place, **options: Any) -> None:
    frame.write.format("s3commit").options(**options).mode("overwrite").save(place.uri)


def test_an_append_is_refused_before_any_task_runs(spark: SparkSession, place: Place) -> None:
    save(spark.sql("select 1 id"), place)
    jobs = set(place.jobs)
    with pytest.raises(Exception, match="column id is string here and int in the files at"):
        save(spark.sql("select 'x' id"), place)
    assert set(place.jobs) <= jobs
    save(spark.sql("select 'x' id"), place, schemaPolicy="ignore")
    assert len(place.data) == 2


def test_merge_writes_the_tables_types(spark: SparkSession, place: Place) -> None:
    save(spark.sql("select 1L id, 'x' s"), place)
    save(spark.sql("select 2 id"), place, schemaPolicy="merge")
    assert sorted(load(spark, place).collect()) == [(1, "x"), (2, None)]


@pytest.mark.usefixtures("dynamic")
def test_where_the_session_says_that_partitions_stay_the_tasks_are_refused(
    spark: SparkSession, place: Place
) -> None:
    save(spark.sql("select 1 id, 1 k"), place, partitionBy="k")
    other = spark.sql("select 'x' id, 2 k")
    with pytest.raises(Exception, match="column id is string here and int in the files at"):
        overwrite(other, place, partitionBy="k")
    assert len(place.data) == 1
    overwrite(spark.sql("select 2Y id, 2 k"), place, partitionBy="k", schemaPolicy="merge")
    assert sorted(load(spark, place).collect()) == [(1, 1), (2, 2)]


def test_where_the_session_says_nothing_all_is_replaced_whatever_it_was(
    spark: SparkSession, place: Place
) -> None:
    save(spark.sql("select 1 id, 1 k"), place, partitionBy="k")
    overwrite(spark.sql("select 'x' id, 2 k"), place, partitionBy="k")
    assert load(spark, place).collect() == [("x", 2)]


@pytest.mark.skipif(VERSION < (4, 1), reason="Spark has no streams for the format")
def test_a_stream_is_refused_when_it_starts(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    from s3commit.spark.streaming import start_stream

    save(spark.sql("select 1 id, 1 k"), place, partitionBy="k")
    other = spark.sql("select 'x' id, 2 k").schema
    options = parse_options({"path": place.uri, "partitionBy": "k"})
    with pytest.raises(InvalidInputError, match="column id is string here"):
        start_stream(options, other, overwrite=False)
    complete = start_stream(options, other, overwrite=True)
    assert isinstance(complete.by_session, InvalidInputError)

    spark.sql("select 'x' id").write.json(str(tmp_path / "in"))
    stream = spark.readStream.schema("id string").json(str(tmp_path / "in"))
    writer = stream.writeStream.format("s3commit").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(Exception, match="partitioned by k"):
        writer.trigger(availableNow=True).start(place.uri).awaitTermination()
