"""After a commit the session reads what was committed, though it has cached what was there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from s3commit.spark import read, write
from tests.native.conftest import uri
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("client", ["jar", "write"])
def test_a_cached_read_of_the_path_gives_the_new_rows(
    spark: SparkSession, place: Place, client: str
) -> None:
    write(spark.range(5), place.uri)
    cached = read(spark, place.uri).cache()
    assert cached.count() == 5
    after = spark.range(100, 102)
    if client == "jar":
        after.write.mode("overwrite").parquet(uri(place))
    else:
        write(after, place.uri, mode="overwrite")
    assert sorted(row.id for row in read(spark, place.uri).collect()) == [100, 101]


def test_a_cached_read_gives_the_rows_that_another_program_has_committed_under_the_key(
    spark: SparkSession, place: Place
) -> None:
    write(spark.range(2), place.uri)
    other = spark.newSession()
    assert read(spark, place.uri).cache().count() == 2
    write(other.range(3), place.uri, mode="append", idempotencyKey="k")
    result = write(spark.range(3), place.uri, mode="append", idempotencyKey="k")
    assert result.already_committed
    assert read(spark, place.uri).count() == 5
