"""Partitions that lie elsewhere, by the option partitionLocations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.options import Options, parse_options
from s3commit.spark.policy import policy_of
from tests.spark.by_hand import batch, run_task, start
from tests.spark.test_write import load, rows
from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def elsewhere_of(place: Place) -> str:
    return place.destination.prefix.split("/")[0] + "/elsewhere/k0/"


def option(place: Place, partition: str = "k=0") -> str:
    return json.dumps({partition: f"s3://{BUCKET}/{elsewhere_of(place)}"})


def keys(place: Place, prefix: str) -> list[str]:
    return [one.key.removeprefix(prefix) for one in place.tiny.store.list(BUCKET, prefix)]


def test_i2_a_partitions_rows_go_where_the_option_says_in_one_commit(
    spark: SparkSession, place: Place
) -> None:
    said = option(place)
    frame = spark.range(9).selectExpr("id", "id % 3 k").repartition(2)
    write = frame.write.format("s3commit").options(partitionBy="k", partitionLocations=said)
    write.mode("append").save(place.uri)
    place.tidy()
    assert {name.split("/")[0] for name in place.data} == {"k=1", "k=2"}
    (job,) = place.jobs
    hidden, *there = sorted(keys(place, elsewhere_of(place)))
    assert hidden == f"__magic_job-{job}/job.json"
    assert there
    assert all(name.endswith(".snappy.parquet") for name in there)
    assert load(spark, place).count() == 6
    assert rows(load(spark, place, partitionLocations=said)) == rows(frame)
    assert rows(load(spark, place, jobId=job)) == rows(frame)


def test_i10_overwritten_partitions_are_replaced_at_their_locations(
    spark: SparkSession, place: Place
) -> None:
    said = option(place)
    frame = spark.range(9).selectExpr("id", "id % 3 k")
    for wanted in (frame, frame.where("k = 0 and id > 0")):
        wanted.write.format("s3commit").options(
            partitionBy="k", partitionLocations=said, partitionOverwriteMode="dynamic"
        ).mode("overwrite").save(place.uri)
    found = load(spark, place, partitionLocations=said)
    assert rows(found) == rows(frame.where("id > 0"))


def test_i3_one_attempt_tells_of_all_places(place: Place) -> None:
    writer = start(place, partitionBy="k", partitionLocations=option(place))
    message = run_task(writer, 0, batch(range(9)))
    assert message.attempt is not None
    assert [one.location for one in (message.attempt, *message.attempt.elsewhere)].count("") == 1
    assert len(message.attempt.elsewhere) == 1
    run_task(writer, 0, batch(range(5)))  # another try, which is not counted
    writer.commit([message])
    place.tidy()
    assert [file.rows for file in place.committed()] == [3, 3, 3]
    assert len(keys(place, elsewhere_of(place))) == 2, "job.json, and the counted file"


def parse(**options: str) -> Options:
    return parse_options({"path": "s3://lake/t", **options})


def test_the_option_is_a_json_object_of_partitions_and_locations() -> None:
    options = parse(partitionBy="dt", partitionLocations='{"dt=1": "s3a://lake/x"}')
    assert options.locations == {"dt=1/": "x/"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dt=1", "give a JSON object"),
        ("[]", "give a JSON object"),
        ('{"dt=1": "s3://other/x"}', "another bucket"),
        ('{"dt=1": "s3://lake/t/x"}', "overlap"),
        ('{"dt=1": 3}', "must be a text"),
    ],
)
def test_what_is_no_such_object_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        parse(partitionBy="dt", partitionLocations=text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("partition_by", "partition"),
    [("dt", "date=1"), ("dt,hr", "dt=1"), ("dt", "dt=1/hr=2"), ("", "dt=1")],
)
def test_a_partition_that_no_row_can_go_to_is_refused(partition_by: str, partition: str) -> None:
    said = json.dumps({partition: "s3://lake/x/"})
    options = parse(partitionBy=partition_by, partitionLocations=said)
    with pytest.raises(InvalidInputError, match="no directory that partitionBy"):
        policy_of(options, overwrite=False)
