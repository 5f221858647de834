"""S3A's settings: those of the moment are used, and those that can't be are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.native.conftest import FAILURES
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def bucket(spark: SparkSession, place: Place) -> Iterator[str]:
    """One of the test's own, since Spark keeps a file system for each."""
    name = "settings-" + place.destination.prefix.split("/")[0]
    place.tiny.add_bucket(name)
    yield name
    for key in ("checksum.generation", "encryption.algorithm"):
        spark._jsc.hadoopConfiguration().unset(f"fs.s3a.bucket.{name}.{key}")


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


def test_checksums_that_the_pipeline_can_not_complete(
    spark: SparkSession, place: Place, bucket: str
) -> None:
    spark._jsc.hadoopConfiguration().set(f"fs.s3a.bucket.{bucket}.checksum.generation", "true")
    with pytest.raises(FAILURES, match="BAD_SETTING") as refused:
        spark.range(10).write.parquet(f"s3a://{bucket}/t")
    assert "fs.s3a.checksum.generation=true" in str(refused.value)
    assert "fs.s3a.create.checksum.algorithm" in str(refused.value)
    assert list(place.tiny.store.list(bucket, "")) == []
