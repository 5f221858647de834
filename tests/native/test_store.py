"""S3A's settings: those of the moment are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def bucket(spark: SparkSession, place: Place) -> Iterator[str]:
    """One of the test's own, since Spark keeps a file system for each."""
    name = "settings-" + place.destination.prefix.split("/")[0]
    place.tiny.add_bucket(name)
    yield name
    spark._jsc.hadoopConfiguration().unset(f"fs.s3a.bucket.{name}.encryption.algorithm")


def test_a_setting_that_has_changed_since_is_used(
    spark: SparkSession, place: Place, bucket: str
) -> None:
    def write() -> set[object]:
        """How the files that are new are encrypted."""
        before = {one.key for one in place.tiny.store.list(bucket, "t/part-")}
        spark.range(0, 10, 1, 1).write.mode("append").parquet(f"s3a://{bucket}/t")
        new = {one.key for one in place.tiny.store.list(bucket, "t/part-")} - before
        assert new
        heads = [place.tiny.s3.head_object(Bucket=bucket, Key=key) for key in new]
        return {head.get("ServerSideEncryption") for head in heads}

    assert write() == {None}
    spark._jsc.hadoopConfiguration().set(f"fs.s3a.bucket.{bucket}.encryption.algorithm", "AES256")
    assert write() == {"AES256"}
