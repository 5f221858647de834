"""A job in a closure: Spark's tasks write through it, and the driver gets their attempts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

import s3commit
from s3commit.core.model.job import CountedAttempt
from tests.spark.tiny import BUCKET, Place


def test_a_job_travels_to_map_partitions_and_its_attempts_come_back(
    spark: SparkSession, place: Place
) -> None:
    job = s3commit.open_job(place.destination.uri, client="map-partitions")

    def write(number: int, rows: Iterable[int]) -> Iterator[CountedAttempt | None]:
        with job.task(str(number)) as task, task.open(f"part-{number}.txt") as file:
            file.write(b"".join(b"%d\n" % row for row in rows))
        yield task.counted

    numbers = spark.sparkContext.parallelize(range(9), 3)
    result = job.commit(numbers.mapPartitionsWithIndex(write).collect())
    assert result.files == 3
    place.tidy()
    bodies = [
        place.tiny.store.get(BUCKET, place.destination.prefix + name, max_bytes=100).body
        for name in place.data
    ]
    assert sorted(bodies) == [b"0\n1\n2\n", b"3\n4\n5\n", b"6\n7\n8\n"]
    assert place.uploads == []
