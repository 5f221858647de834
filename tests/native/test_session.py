"""What one session writes and then reads: large files, many writers, its cache, two at once."""

import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.states import JobState
from s3commit.spark import read, write
from tests.native.conftest import settings, uri
from tests.native.sides import CONTROL
from tests.servers import until
from tests.spark.test_spark_guide import run_page
from tests.spark.tiny import BUCKET, Place, TinyPipeline

__all__ = ["run_page"]


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


def test_values_that_are_escaped_in_a_path(spark: SparkSession, place: Place) -> None:
    texts = ["a/b", "a=b", "50%", "a b", "ü", "2026-11-21 10:00", "", "x:y"]
    frame = spark.createDataFrame([(n, text) for n, text in enumerate(texts)], "id int, k string")
    frame.coalesce(1).write.partitionBy("k").json(uri(place))
    place.tidy()
    found = spark.read.schema("id int, k string").json(uri(place)).collect()
    assert sorted((row.id, row.k or "") for row in found) == list(enumerate(texts))


def types(place: Place, bucket: str, prefix: str) -> set[str]:
    """The content types of the data files."""
    keys = [one.key for one in place.tiny.store.list(bucket, f"{prefix}part-")]
    assert keys
    return {place.tiny.s3.head_object(Bucket=bucket, Key=key)["ContentType"] for key in keys}


@pytest.mark.usefixtures("beside_sparks_own")
def test_content_types_are_those_of_s3as_parts(spark: SparkSession, place: Place) -> None:
    """So of S3A's committers too. S3A's uploads take no other one from a caller."""
    frame = spark.range(0, 9000, 1, 1).selectExpr("id", "repeat(sha2(string(id), 512), 5) as text")
    prefix = place.destination.prefix
    frame.write.json(f"s3a://{CONTROL}/{prefix}")
    frame.limit(9).write.json(uri(place))
    (found,) = types(place, CONTROL, prefix)
    assert types(place, BUCKET, prefix) == {found}


def s3_threads(spark: SparkSession) -> Counter[str]:
    """Those of the driver's JVM that are S3A's, the SDK's or ours: how many of each name."""
    machine: Any = spark._jvm
    names = [thread.getName() for thread in machine.Thread.getAllStackTraces().keySet()]
    named = (re.sub(r"\d+", "#", name) for name in names)
    return Counter(name for name in named if re.match("s#|sdk|java-sdk|idle-conn", name))


def test_threads_do_not_grow_with_jobs(spark: SparkSession, place: Place) -> None:
    """S3A's pools have at most ``fs.s3a.threads.max`` threads, here few, of each file system."""
    bucket = "threads-" + place.destination.prefix.split("/")[0]
    place.tiny.add_bucket(bucket)
    spark._jsc.hadoopConfiguration().set(f"fs.s3a.bucket.{bucket}.threads.max", "2")

    def write_some(count: int) -> Counter[str]:
        for _ in range(count):
            spark.range(0, 100, 1, 2).write.mode("append").parquet(f"s3a://{bucket}/table")
        return s3_threads(spark)

    before = write_some(4)
    assert any("transfer-threads" in name for name in before)
    until(lambda: not write_some(1) - before, "that no more threads are there")


# What the session has cached


@pytest.mark.parametrize("client", ["jar", "write"])
def test_a_cached_read_gives_the_new_rows(spark: SparkSession, place: Place, client: str) -> None:
    write(spark.range(5), place.uri)
    cached = read(spark, place.uri).cache()
    assert cached.count() == 5
    after = spark.range(100, 102)
    if client == "jar":
        after.write.mode("overwrite").parquet(uri(place))
    else:
        write(after, place.uri, mode="overwrite")
    assert sorted(row.id for row in read(spark, place.uri).collect()) == [100, 101]


def test_a_cached_read_gives_anothers_rows_of_the_key(spark: SparkSession, place: Place) -> None:
    write(spark.range(2), place.uri)
    other = spark.newSession()
    assert read(spark, place.uri).cache().count() == 2
    write(other.range(3), place.uri, mode="append", idempotency_key="k")
    result = write(spark.range(3), place.uri, mode="append", idempotency_key="k")
    assert result.already_committed
    assert read(spark, place.uri).count() == 5


OF_THE_JAR = {
    "idempotencyKey": "k",
    "conditions.minFiles": "99",
    "checkPartitions": "false",
    "commitTimeout": "1ms",
    "prefixes": "s3a://elsewhere/",
    "otherwise": "no.such.Class",
}


def test_the_settings_of_the_jar_are_none_of_writes(spark: SparkSession, place: Place) -> None:
    """The guide says so: `write` has keywords, and goes by them alone."""
    with settings(spark, **{f"spark.s3commit.{name}": one for name, one in OF_THE_JAR.items()}):
        for _ in range(2):
            write(spark.range(3), place.uri, mode="append")
    assert read(spark, place.uri).count() == 6


# A statement that is run again while the first one waits


def await_requests(tiny: TinyPipeline, prefix: str, count: int) -> None:
    """Until so many jobs below the prefix have asked for their commit."""

    def are_there() -> bool:
        keys = [one.key for one in tiny.store.list(BUCKET, prefix)]
        return sum(key.endswith("/_request.json") for key in keys) >= count

    until(are_there, f"{count} requests")


@pytest.mark.parametrize(
    ("static", "where"), [("dt = 'a b', hour", "dt=a b/"), ("dt = 'x', hour = 1", "dt=x/hour=1/")]
)
def test_i6_the_first_overwrite_of_a_partition_replaces_it(
    spark: SparkSession, tiny: TinyPipeline, place: Place, db: str, static: str, where: str
) -> None:
    """The rows are there once."""
    table = f"{db}.t"
    spark.sql(
        f"CREATE TABLE {table} (id INT, dt STRING, hour INT) USING parquet"
        " PARTITIONED BY (dt, hour)"
    )
    values = "VALUES (7, 1)" if static.endswith("hour") else "VALUES (7)"
    insert = f"INSERT OVERWRITE {table} PARTITION ({static}) {values}"
    with ThreadPoolExecutor() as threads:
        with tiny.held():
            runs = [threads.submit(spark.sql, insert) for _ in range(2)]
            await_requests(tiny, f"{db}/", 2)
        for run in runs:
            run.result()
    assert [row.id for row in spark.sql(f"SELECT id FROM {table}").collect()] == [7]
    committed = tiny.ledger.jobs_in(JobState.COMMITTED, before="9")
    jobs = [job for job in committed if job.destination.prefix == f"{db}/t/{where}"]
    assert [(one.conflict, one.scope) for one in jobs] == [
        (Conflict.REPLACE, Scope.DIRECTORY),
        (Conflict.REPLACE, Scope.DIRECTORY),
    ]


# The guide's page on Spark's own writers


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("statement", "by"),
    [
        ("TRUNCATE TABLE", ""),
        ("TRUNCATE TABLE", "PARTITIONED BY (dt)"),  # the lists of files stay
        ("DROP TABLE", ""),
        ("DROP TABLE", "PARTITIONED BY (dt)"),
    ],
)
def test_i11_a_used_key_is_free_where_the_files_are_deleted(
    spark: SparkSession, db: str, statement: str, by: str
) -> None:
    for _ in range(2):
        spark.sql(f"CREATE TABLE IF NOT EXISTS {db}.t (id INT, dt STRING) USING parquet {by}")
        with settings(spark, spark__s3commit__idempotencyKey="monday"):
            spark.sql(f"INSERT INTO {db}.t VALUES (1, 'a')")
        found = spark.table(f"{db}.t").count()
        spark.sql(f"{statement} {db}.t")
    assert found == 1


def test_the_page_does_what_it_says(run_page: Callable[[str], None]) -> None:
    run_page("native.md")
