"""SQL and catalogs that know nothing of s3commit, committed by it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.states import JobState
from tests.native.conftest import FAILURES
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


def await_requests(tiny: TinyPipeline, prefix: str, count: int) -> None:
    """Until so many jobs below the prefix have asked for their commit."""
    end = time.monotonic() + 60
    while sum(one.key.endswith("/request.json") for one in tiny.store.list(BUCKET, prefix)) < count:
        assert time.monotonic() < end
        time.sleep(0.1)


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
        ("days/", replace, directory),  # Spark creates a table by an overwrite
        ("days/", replace, directory),
        ("large/", replace, directory),
        ("hived/", replace, partition),
        ("hived/", append, directory),
    ]
    open_uploads = list(tiny.store.list_uploads(BUCKET, f"{db}/"))
    assert open_uploads == []


@pytest.mark.parametrize("static", ["dt = 'a b'", "dt = 'x', hour = 1"])
def test_i6_the_first_overwrite_of_a_partition_replaces_it(
    spark: SparkSession, tiny: TinyPipeline, place: Place, db: str, static: str
) -> None:
    """Run again while the first one waits, as after a driver that died, its rows are there once."""
    table = f"{db}.t"
    spark.sql(
        f"CREATE TABLE {table} (id INT, dt STRING, hour INT) USING parquet"
        " PARTITIONED BY (dt, hour)"
    )
    rest = ", hour" if "hour" not in static else ""
    values = "VALUES (7, 1)" if rest else "VALUES (7)"
    insert = f"INSERT OVERWRITE {table} PARTITION ({static}{rest}) {values}"
    with ThreadPoolExecutor() as threads:
        with tiny.held():
            runs = [threads.submit(spark.sql, insert) for _ in range(2)]
            await_requests(tiny, f"{db}/", 2)
        for run in runs:
            run.result()
    assert rows(spark, f"SELECT id FROM {table}") == [(7,)]
    escaped = {"dt = 'a b'": "t/dt=a b/"}.get(static, "t/dt=x/hour=1/")
    assert jobs_below(tiny, f"{db}/") == [(escaped, Conflict.REPLACE, Scope.DIRECTORY)] * 2


def test_a_partition_in_another_bucket_is_refused(
    spark: SparkSession, tiny: TinyPipeline, place: Place, db: str
) -> None:
    """Unless the statement names another partition. Refused means: before a task runs."""
    bucket = "elsewhere-" + place.destination.prefix.split("/")[0]
    tiny.add_bucket(bucket)
    prefix = place.destination.prefix + "one"
    table = f"{db}.t"
    spark.sql(f"CREATE TABLE {table} (id INT, a INT) USING parquet PARTITIONED BY (a)")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION (a = 1) LOCATION 's3a://{bucket}/{prefix}'")
    for statement in (
        f"INSERT INTO {table} VALUES (1, 1), (2, 2)",
        f"INSERT INTO {table} PARTITION (a = 1) SELECT raise_error('a task ran')",
        f"INSERT OVERWRITE {table} SELECT 1, 1",
        f"INSERT OVERWRITE {table} PARTITION (a = 1) SELECT 1",
    ):
        # Spark itself deletes in the table's bucket only.
        with pytest.raises(FAILURES, match=r"PARTITION_ELSEWHERE|Wrong FS"):
            spark.sql(statement)
    assert spark.table(table).count() == 0
    assert [one.key for one in tiny.store.list(BUCKET, f"{db}/t/")] == [f"{db}/t/"]
    made = [one.key for one in tiny.store.list(bucket, prefix)]
    assert made == [f"{prefix}/"]  # by Hive, for the directory
    spark.sql(f"INSERT INTO {table} PARTITION (a = 2) SELECT 2")
    assert rows(spark, f"SELECT * FROM {table}") == [(2, 2)]


TYPES = """
  SELECT id, CAST(id % 7 AS TINYINT) AS tiny, CAST(id * 1.25 AS DECIMAL(20, 4)) AS price,
    IF(id % 5 = 0, NULL, concat('name ', id)) AS name, CAST(id / 3 AS DOUBLE) AS ratio,
    DATE '2026-01-01' + CAST(id % 300 AS INT) AS day,
    TIMESTAMP '2026-01-01 12:34:56.789' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS at,
    array(id, id + 1) AS list, map('k', id) AS map, named_struct('x', id, 'y', name) AS pair,
    CAST(concat('b', id) AS BINARY) AS raw, id % 3 = 0 AS flag
  FROM (SELECT id, concat('n', id) AS name FROM range(2000))
"""


@pytest.mark.parametrize(
    "form", ["parquet", *(pytest.param(form, marks=pytest.mark.long) for form in ("orc", "json"))]
)
def test_tables_of_all_types_read_back_equal(
    spark: SparkSession, place: Place, db: str, form: str
) -> None:
    """Facts by day beside a dimension, written by SQL, and a query over both."""
    spark.sql(f"CREATE TABLE {db}.facts USING {form} PARTITIONED BY (tiny) AS {TYPES}")
    spark.sql(f"CREATE TABLE {db}.names USING {form} AS SELECT DISTINCT id, name FROM ({TYPES})")
    columns = "id, tiny, price, name, ratio, day, at, to_json(list), to_json(map), to_json(pair)"
    columns += ", hex(raw), flag"
    wanted = spark.sql(f"SELECT {columns} FROM ({TYPES})")
    assert spark.sql(f"SELECT {columns} FROM {db}.facts").exceptAll(wanted).count() == 0
    assert spark.table(f"{db}.facts").count() == 2000
    star = """
      SELECT day, count(n.name), sum(price), max(at) FROM {facts} f JOIN {names} n USING (id)
      WHERE tiny IN (1, 2) GROUP BY day ORDER BY day
    """
    written = spark.sql(star.format(facts=f"{db}.facts", names=f"{db}.names"))
    source = spark.sql(star.format(facts=f"({TYPES})", names=f"(SELECT id, name FROM ({TYPES}))"))
    assert written.collect() == source.collect()
