"""SQL and catalogs that know nothing of s3commit, committed by it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.states import JobState
from tests.native.conftest import settings, uri
from tests.spark.tiny import BUCKET, Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As dbt and people write it.
SCRIPT = """
CREATE TABLE {db}.orders (id BIGINT, amount DECIMAL(10, 2), day STRING)
  USING parquet PARTITIONED BY (day);
INSERT INTO {db}.orders
  VALUES (1, 10.5, '2026-11-20'), (2, 20, '2026-11-20'), (3, 5, '2026-11-21');
INSERT INTO {db}.orders PARTITION (day = '2026-11-22') SELECT id + 10, amount FROM {db}.orders;
INSERT OVERWRITE {db}.orders PARTITION (day = '2026-11-21') SELECT 4, 7.25;
CREATE TABLE {db}.days USING orc
  AS SELECT day, count(*) AS orders, sum(amount) AS amount FROM {db}.orders GROUP BY day;
INSERT OVERWRITE {db}.days
  SELECT day, count(*), sum(amount) FROM {db}.orders WHERE day > '2026-11-20' GROUP BY day;
CREATE TABLE {db}.large USING json OPTIONS (compression 'gzip')
  AS SELECT * FROM {db}.orders WHERE amount > 7;
CREATE TABLE {db}.hived (id BIGINT) PARTITIONED BY (day STRING) STORED AS PARQUET;
INSERT OVERWRITE TABLE {db}.hived PARTITION (day) SELECT id, day FROM {db}.orders;
INSERT INTO {db}.hived PARTITION (day = 'last') SELECT max(id) FROM {db}.orders;
"""


@pytest.fixture
def db(spark: SparkSession) -> Iterator[str]:
    name = f"db_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {name} LOCATION 's3a://{BUCKET}/{name}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


def rows(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.sql(query).collect())


def jobs_below(tiny: TinyPipeline, prefix: str) -> list[tuple[str, Conflict, Scope]]:
    """Destination, conflict and scope of each job, in the order in which they were decided."""
    committed = tiny.ledger.jobs_in(JobState.COMMITTED, before="9")
    records = [job for job in committed if job.destination.prefix.startswith(prefix)]
    records.sort(key=lambda job: job.decided_at or "")
    return [(job.destination.prefix[len(prefix) :], job.conflict, job.scope) for job in records]


def test_a_script_that_knows_nothing_of_us(
    spark: SparkSession, tiny: TinyPipeline, place: Place, db: str
) -> None:
    for statement in SCRIPT.format(db=db).strip().removesuffix(";").split(";\n"):
        spark.sql(statement)
    day_sums = "SELECT day, count(*), CAST(sum(amount) AS STRING) FROM {db}.orders GROUP BY day"
    assert rows(spark, day_sums.format(db=db)) == [
        ("2026-11-20", 2, "30.50"),
        ("2026-11-21", 1, "7.25"),
        ("2026-11-22", 3, "35.50"),
    ]
    assert rows(spark, f"SELECT day, orders FROM {db}.days") == [
        ("2026-11-21", 1),
        ("2026-11-22", 3),
    ]
    assert rows(spark, f"SELECT id FROM {db}.large") == [(1,), (2,), (4,), (11,), (12,)]
    assert rows(spark, f"SHOW PARTITIONS {db}.hived") == [
        ("day=2026-11-20",),
        ("day=2026-11-21",),
        ("day=2026-11-22",),
        ("day=last",),
    ]
    assert rows(spark, f"SELECT id FROM {db}.hived WHERE day = 'last'") == [(13,)]
    append, replace = Conflict.APPEND, Conflict.REPLACE
    directory, partition = Scope.DIRECTORY, Scope.PARTITION
    assert jobs_below(tiny, f"{db}/") == [
        ("orders/", append, directory),
        ("orders/", append, directory),
        ("orders/day=2026-11-21/", replace, directory),
        ("days/", append, directory),
        ("days/", replace, directory),
        ("large/", append, directory),
        ("hived/", replace, partition),
        ("hived/", append, directory),
    ]
    open_uploads = list(tiny.store.list_uploads(BUCKET, f"{db}/"))
    assert open_uploads == []


def test_i10_a_static_partition_is_replaced_and_nothing_else(
    spark: SparkSession, place: Place, db: str
) -> None:
    table = f"{db}.t"
    spark.sql(f"CREATE TABLE {table} (id INT, a INT, b INT) USING parquet PARTITIONED BY (a, b)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1)")
    spark.sql(f"INSERT OVERWRITE {table} PARTITION (a = 1, b) VALUES (9, 3)")
    assert rows(spark, f"SELECT id, a, b FROM {table}") == [(3, 2, 1), (9, 1, 3)]
    with settings(spark, spark__sql__sources__partitionOverwriteMode="dynamic"):
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (a, b) VALUES (7, 2, 1), (8, 2, 2)")
    assert rows(spark, f"SELECT id, a, b FROM {table}") == [(7, 2, 1), (8, 2, 2), (9, 1, 3)]
    spark.sql(f"INSERT OVERWRITE {table} PARTITION (a = 2, b = 2) SELECT 1 WHERE false")
    assert rows(spark, f"SELECT id, a, b FROM {table}") == [(7, 2, 1), (9, 1, 3)]


def test_a_bucketed_and_sorted_table(spark: SparkSession, place: Place, db: str) -> None:
    frame = spark.range(0, 1000, 1, 2).selectExpr("id", "id % 7 as k")
    frame.write.bucketBy(4, "k").sortBy("id").saveAsTable(f"{db}.b", format="parquet")
    # Spark finds the bucket in a file's name: it joins two such tables without a shuffle.
    with settings(spark, spark__sql__autoBroadcastJoinThreshold="-1"):
        joined = spark.sql(f"SELECT * FROM {db}.b x JOIN {db}.b y ON x.k = y.k")
        plan = joined._jdf.queryExecution().executedPlan().toString()
        assert "Exchange hashpartitioning" not in plan
        assert joined.count() == 6 * 143**2 + 142**2
    assert spark.table(f"{db}.b").where("k = 3").count() == 143


def test_modes_of_a_dataframe(spark: SparkSession, place: Place) -> None:
    from pyspark.errors import AnalysisException

    target = uri(place)
    first, second = spark.range(0, 10, 1, 1), spark.range(100, 105, 1, 1)
    first.write.parquet(target)
    with pytest.raises(AnalysisException, match=r"PATH_ALREADY_EXISTS|already exists"):
        second.write.parquet(target)
    second.write.mode("ignore").parquet(target)
    second.write.mode("append").parquet(target)
    assert spark.read.parquet(target).count() == 15
    second.write.mode("overwrite").parquet(target)
    assert sorted(row.id for row in spark.read.parquet(target).collect()) == list(range(100, 105))
    spark.range(0).write.mode("overwrite").parquet(target)
    assert spark.read.parquet(target).count() == 0


def test_a_dynamic_overwrite_by_the_writers_option(spark: SparkSession, place: Place) -> None:
    frame = spark.range(0, 30, 1, 2).selectExpr("id", "id % 3 as k")
    frame.write.partitionBy("k").parquet(uri(place))
    again = spark.range(100, 101, 1, 1).selectExpr("id", "1L as k")
    again.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(
        "k"
    ).parquet(uri(place))
    found = spark.read.parquet(uri(place)).groupBy("k").count().collect()
    assert {row.k: row["count"] for row in found} == {0: 10, 1: 1, 2: 10}


def test_i11_a_key_commits_once(spark: SparkSession, place: Place) -> None:
    for _ in range(2):
        spark.range(10).write.mode("append").option("idempotencyKey", "2026-11-21").parquet(
            uri(place)
        )
    assert spark.read.parquet(uri(place)).count() == 10
