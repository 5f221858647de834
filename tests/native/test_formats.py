"""Every file format of Spark's goes through the native protocol, whole and equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.native.conftest import HAS_AVRO, settings, uri
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ["parquet", "orc", "csv", "json", *(["avro"] if HAS_AVRO else [])]


@pytest.mark.parametrize("form", FORMATS)
def test_i1_i2_a_format_reads_back_equal(spark: SparkSession, place: Place, form: str) -> None:
    frame = spark.range(0, 3000, 1, 3).selectExpr("id", "id % 4 as k", "concat('t', id) as text")
    frame.write.partitionBy("k").format(form).save(uri(place))
    place.tidy()
    schema = "id bigint, text string, k bigint"
    found = spark.read.schema(schema).format(form).load(uri(place))
    wanted = sorted((row.id, row.text, row.k) for row in frame.collect())
    assert sorted((row.id, row.text, row.k) for row in found.collect()) == wanted
    assert len(place.data) == len(place.committed()) == 12
    assert place.uploads == []


def test_text(spark: SparkSession, place: Place) -> None:
    frame = spark.range(0, 100, 1, 2).selectExpr("concat('line ', id) as value")
    frame.write.option("compression", "gzip").text(uri(place))
    place.tidy()
    assert all(name.endswith(".c000.txt.gz") for name in place.data)
    assert sorted(spark.read.text(uri(place)).collect()) == sorted(frame.collect())


def test_a_file_of_many_parts(spark: SparkSession, place: Place) -> None:
    """Parts of 5 MB; the file has 17 MB."""
    frame = spark.range(0, 4400, 1, 1).selectExpr("id", "repeat(sha2(string(id), 512), 32) as text")
    frame.write.option("compression", "none").option("parquet.enable.dictionary", "false").parquet(
        uri(place)
    )
    place.tidy()
    (file,) = place.committed()
    assert file.etag.strip('"').endswith("-4")
    assert spark.read.parquet(uri(place)).exceptAll(frame).count() == 0


def test_no_rows_at_all(spark: SparkSession, place: Place) -> None:
    """Spark writes one file with the schema."""
    spark.range(0).write.parquet(uri(place))
    place.tidy()
    assert len(place.data) == 1
    assert spark.read.parquet(uri(place)).count() == 0


def test_a_limit_of_rows_a_file(spark: SparkSession, place: Place) -> None:
    with settings(spark, spark__sql__files__maxRecordsPerFile="100"):
        spark.range(0, 1000, 1, 2).write.parquet(uri(place))
    place.tidy()
    assert len(place.data) == 10
    assert spark.read.parquet(uri(place)).count() == 1000


def test_writers_side_by_side(spark: SparkSession, place: Place) -> None:
    """With this setting Spark does not sort first, and has several files of a task open."""
    frame = spark.range(0, 1000, 1, 2).selectExpr("id", "id % 10 as k")
    with settings(spark, spark__sql__maxConcurrentOutputFileWriters="20"):
        frame.write.partitionBy("k").parquet(uri(place))
    place.tidy()
    assert len(place.data) == 20
    assert spark.read.parquet(uri(place)).count() == 1000


def test_values_that_are_escaped_in_a_path(spark: SparkSession, place: Place) -> None:
    texts = ["a/b", "a=b", "50%", "a b", "ü", "2026-11-21 10:00", "", "x:y"]
    frame = spark.createDataFrame([(n, text) for n, text in enumerate(texts)], "id int, k string")
    frame.coalesce(1).write.partitionBy("k").json(uri(place))
    place.tidy()
    found = spark.read.schema("id int, k string").json(uri(place)).collect()
    assert sorted((row.id, row.k or "") for row in found) == list(enumerate(texts))
