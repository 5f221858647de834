"""Files of many parts, writers side by side, names that are escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.native.conftest import settings, uri
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
