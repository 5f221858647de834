"""`read`: what is committed, as a DataFrame of Spark's own reader.

No file system for S3 comes with PySpark: the files are copied, and named where the copies are.
"""

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.spark import read, write
from tests.spark.tiny import BUCKET, Place


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("id", "k").collect())


@pytest.mark.usefixtures("copies")
def test_all_that_is_visible_or_one_jobs_files_are_read(
    session: SparkSession, place: Place
) -> None:
    frame = session.range(4).selectExpr("id", "id % 2 k")
    first = write(frame, place.uri, partition_by="k")
    write(frame.where("id = 3"), place.uri, mode="append", partition_by="k")
    assert rows(read(session, place.uri)) == [(0, 0), (1, 1), (2, 0), (3, 1), (3, 1)]
    assert rows(read(session, place.uri, job_id=first.job_id)) == rows(frame)
    assert dict(read(session, place.uri, job_id=first.job_id).dtypes) == {
        "id": "bigint",
        "k": "int",
    }


@pytest.mark.usefixtures("copies")
def test_names_with_the_characters_of_a_pattern_are_read(
    session: SparkSession, place: Place
) -> None:
    frame = session.sql("select 1 id, 'a{b},*[c]\\'d' k")
    job = write(frame, place.uri, partition_by="k").job_id
    assert rows(read(session, place.uri, job_id=job)) == rows(frame)


@pytest.mark.usefixtures("copies")
def test_schema_and_options_are_for_sparks_reader(session: SparkSession, place: Place) -> None:
    place.put("part-0.csv", b"1,x\n")
    found = read(session, place.uri, format="csv", schema="id int, k string", nullValue="x")
    assert rows(found) == [(1, None)]


def test_what_is_not_there_or_no_path_is_refused(session: SparkSession, place: Place) -> None:
    with pytest.raises(NotFoundError, match="is not committed at"):
        read(session, place.uri, job_id="11111111-1111-4111-8111-111111111111")
    nothing = session.range(1).selectExpr("id", "id k").where("id < 0")
    job = write(nothing, place.uri, partition_by="k").job_id
    with pytest.raises(NotFoundError, match="has committed no file at"):
        read(session, place.uri, job_id=job)
    with pytest.raises(InvalidInputError, match="must look like"):
        read(session, "/tmp/table")


@pytest.mark.parametrize(
    ("header", "file", "code"),
    [
        ({"destination": "s3://tests-spark/other/table/"}, {}, "WRONG_JOB"),
        ({"jobId": "22222222-2222-4222-8222-222222222222"}, {}, "WRONG_JOB"),
        ({}, {"key": "another/tenant/part-0-{job}.parquet"}, "NOT_CONTAINED"),
        ({}, {"key": "{table}../tenant/part-0-{job}.parquet"}, "NOT_CONTAINED"),
    ],
)
def test_i12_a_list_that_was_copied_or_forged_makes_a_reader_load_nothing(
    spark: SparkSession, place: Place, header: dict[str, str], file: dict[str, str], code: str
) -> None:
    """A reader may have more rights than who has put the list."""
    job = write(spark.range(0, 1, 1, 1), place.uri).job_id
    table = place.destination.prefix
    listed = f"{table}_commits/_{job}.jsonl"
    body = place.tiny.store.get(BUCKET, listed, max_bytes=10**6).body
    first, second = map(json.loads, body.splitlines())
    forged = {name: text.format(job=job, table=table) for name, text in file.items()}
    lines = (json.dumps(one).encode() for one in ({**first, **header}, {**second, **forged}))
    place.tiny.store.put(BUCKET, listed, b"\n".join(lines) + b"\n")
    with pytest.raises(InvalidInputError) as caught:
        read(spark, place.uri, job_id=job)
    assert caught.value.code == code


def test_a_spark_without_s3a_is_said_in_one_line(spark: SparkSession, place: Place) -> None:
    line = r"no file system for s3a://: start .*=org.apache.hadoop:hadoop-aws:[0-9.]+, or"
    with pytest.raises(InvalidInputError, match=line) as caught:
        read(spark, place.uri)
    assert "\n" not in caught.value.message
