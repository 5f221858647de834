"""SQL and catalogs that know nothing of s3commit, committed by it."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.states import JobState
from tests.native.conftest import FAILURES, VERSION, settings, uri
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


def test_i7_i10_partitions_under_other_names(spark: SparkSession, place: Place, db: str) -> None:
    """Appended to and replaced, alone and among others, as ordinary directories of the table."""
    table = f"{db}.t"
    spark.sql(f"CREATE TABLE {table} (id INT, a INT, b INT) USING parquet PARTITIONED BY (a, b)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1)")
    root = f"s3a://{BUCKET}/{db}/t"
    spark.sql(f"ALTER TABLE {table} ADD PARTITION (a = 1, b = 9) LOCATION '{root}/flat/nine'")

    def found() -> list[tuple[object, ...]]:
        return rows(spark, f"SELECT id, a, b FROM {table}")

    def files() -> int:
        keys = (one.key for one in place.tiny.store.list(BUCKET, f"{db}/t/flat/nine/"))
        return sum("/part-" in key for key in keys)

    spark.sql(f"INSERT INTO {table} VALUES (4, 1, 9), (5, 2, 1)")
    assert found() == [(1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 1, 9), (5, 2, 1)]
    assert files() == 1
    spark.sql(f"INSERT OVERWRITE {table} PARTITION (a = 1, b = 9) SELECT 6")
    assert found() == [(1, 1, 1), (2, 1, 2), (3, 2, 1), (5, 2, 1), (6, 1, 9)]
    assert files() == 1
    with settings(spark, spark__sql__sources__partitionOverwriteMode="dynamic"):
        spark.sql(f"INSERT OVERWRITE {table} VALUES (7, 1, 9), (8, 1, 1)")
    assert found() == [(2, 1, 2), (3, 2, 1), (5, 2, 1), (7, 1, 9), (8, 1, 1)]
    assert files() == 1
    with pytest.raises(FAILURES, match="PARTITION_ELSEWHERE"):
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (a = 1, b) VALUES (9, 9), (10, 3)")
    spark.sql(f"INSERT OVERWRITE {table} VALUES (9, 1, 9), (10, 1, 3)")
    assert found() == [(9, 1, 9), (10, 1, 3)]
    assert files() == 1
    assert list(place.tiny.store.list_uploads(BUCKET, f"{db}/")) == []


@pytest.mark.parametrize("bucket", [BUCKET, "elsewhere"])
def test_a_partition_outside_of_the_table_is_refused(
    spark: SparkSession, tiny: TinyPipeline, place: Place, db: str, bucket: str
) -> None:
    """Unless the statement names another partition. Refused means: before a task runs."""
    if bucket != BUCKET:
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


@pytest.mark.parametrize("second", ["INSERT OVERWRITE {} PARTITION (a = 2)", "INSERT INTO {}"])
def test_i10_inserts_of_one_statement_that_differ_are_refused_or_right(
    spark: SparkSession, place: Place, db: str, second: str
) -> None:
    """Spark 3.5 runs them one by one; Spark 4 in one plan, which does not tell them apart."""
    table = f"{db}.t"
    spark.sql(f"CREATE TABLE {table} (id INT, a INT) USING parquet PARTITIONED BY (a)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    columns = "id" if "PARTITION" in second else "id, 2"
    statement = (
        f"FROM (SELECT 10 AS id) INSERT OVERWRITE {table} PARTITION (a = 1) SELECT id"
        f" {second.format(table)} SELECT {columns}"
    )
    if VERSION < (4, 0):
        spark.sql(statement)
        kept = [] if "OVERWRITE" in second else [(2, 2)]
        assert rows(spark, f"SELECT * FROM {table}") == [*kept, (10, 1), (10, 2)]
        return
    with pytest.raises(FAILURES, match="SEVERAL_INSERTS"):
        spark.sql(statement)
    assert rows(spark, f"SELECT * FROM {table}") == [(1, 1), (2, 2)]


def test_appends_of_one_statement_are_jobs_of_their_own(
    spark: SparkSession, place: Place, db: str
) -> None:
    spark.sql(f"CREATE TABLE {db}.t (id INT, a INT) USING parquet PARTITIONED BY (a)")
    spark.sql(f"FROM (SELECT 1 AS i) INSERT INTO {db}.t SELECT i, 1 INSERT INTO {db}.t SELECT i, 2")
    assert rows(spark, f"SELECT * FROM {db}.t") == [(1, 1), (1, 2)]


def test_i11_a_table_takes_its_key_from_the_session(
    spark: SparkSession, place: Place, db: str
) -> None:
    spark.sql(f"CREATE TABLE {db}.t (id BIGINT) USING parquet")
    for _ in range(2):
        with settings(spark, spark__s3commit__idempotencyKey="2026-11-21"):
            spark.sql(f"INSERT INTO {db}.t SELECT id FROM range(5)")
            spark.range(5).write.mode("append").saveAsTable(f"{db}.t")
    assert spark.table(f"{db}.t").count() == 5
    spark.sql("SET idempotencyKey=2026-11-21")  # a name that is not ours
    spark.sql(f"INSERT INTO {db}.t SELECT id FROM range(5)")
    spark.conf.unset("idempotencyKey")
    assert spark.table(f"{db}.t").count() == 10


def test_i11_an_option_of_a_table_is_refused(spark: SparkSession, place: Place, db: str) -> None:
    """Spark would keep it, and every later write would have the first one's key."""
    frame = spark.range(5)
    with pytest.raises(FAILURES, match=r"BAD_OPTIONS"):
        frame.write.option("idempotencyKey", "day 1").saveAsTable(f"{db}.t")
    with pytest.raises(FAILURES, match=r"BAD_OPTIONS"):
        spark.sql(f"CREATE TABLE {db}.u USING parquet OPTIONS (idempotencykey 'a') AS SELECT 1")
    assert spark.sql(f"SHOW TABLES IN {db}").count() == 0
    stored = "OPTIONS (idempotencyKey 'day 1') TBLPROPERTIES ('conditions.minFiles' = '1')"
    spark.sql(f"CREATE TABLE {db}.t (id BIGINT) USING parquet {stored}")
    for mend in (
        f"ALTER TABLE {db}.t UNSET TBLPROPERTIES ('conditions.minFiles')",
        f"ALTER TABLE {db}.t SET SERDEPROPERTIES ('idempotencyKey' = '') and REFRESH TABLE {db}.t",
    ):
        for write in (
            lambda: spark.sql(f"INSERT INTO {db}.t VALUES (1)"),
            lambda: frame.write.mode("append").saveAsTable(f"{db}.t"),
        ):
            with pytest.raises(FAILURES) as refused:
                write()
            assert mend in str(refused.value)
        for statement in mend.split(" and "):
            spark.sql(statement)
    spark.sql(f"INSERT INTO {db}.t VALUES (1)")
    frame.write.mode("append").saveAsTable(f"{db}.t")
    assert spark.table(f"{db}.t").count() == 6


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("INSERT INTO {db}.t VALUES (2, 2)", r"(MSCK REPAIR TABLE \S+)\. "),
        ("INSERT OVERWRITE {db}.t SELECT 2, 2", r"(MSCK REPAIR TABLE \S+ SYNC PARTITIONS)\. "),
        (
            "CREATE TABLE {db}.u USING orc AS SELECT 2 AS id",
            r"(CREATE TABLE .* LOCATION '.*') makes",
        ),
        (
            "CREATE TABLE {db}.u USING orc PARTITIONED BY (a) AS SELECT 2 AS id, 2 AS a",
            r"(CREATE TABLE .* LOCATION '.*') makes it, and then (MSCK REPAIR TABLE \S+) its",
        ),
    ],
)
def test_i1_an_unknown_outcome_says_what_mends_the_catalog(
    spark: SparkSession, tiny: TinyPipeline, place: Place, db: str, statement: str, advice: str
) -> None:
    spark.sql(f"CREATE TABLE {db}.t (id INT, a INT) USING parquet PARTITIONED BY (a)")
    spark.sql(f"INSERT INTO {db}.t VALUES (1, 1)")
    with (
        tiny.held(),
        settings(spark, spark__s3commit__commitTimeout="1s"),
        pytest.raises(FAILURES, match="OUTCOME_UNKNOWN") as unknown,
    ):
        spark.sql(statement.format(db=db))
    end = time.monotonic() + 60
    while len(jobs_below(tiny, f"{db}/")) < 2:
        assert time.monotonic() < end
        time.sleep(0.1)
    found = re.search(advice, str(unknown.value))
    assert found is not None, str(unknown.value)[:1000]
    for mend in found.groups():
        spark.sql(mend)
    table = "u" if "CREATE" in statement else "t"
    ids = [(2,)] if "INTO" not in statement else [(1,), (2,)]
    assert rows(spark, f"SELECT id FROM {db}.{table}") == ids


TYPES = """
  SELECT id, CAST(id % 7 AS TINYINT) AS tiny, CAST(id * 1.25 AS DECIMAL(20, 4)) AS price,
    IF(id % 5 = 0, NULL, concat('name ', id)) AS name, CAST(id / 3 AS DOUBLE) AS ratio,
    DATE '2026-01-01' + CAST(id % 300 AS INT) AS day,
    TIMESTAMP '2026-01-01 12:34:56.789' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS at,
    array(id, id + 1) AS list, map('k', id) AS map, named_struct('x', id, 'y', name) AS pair,
    CAST(concat('b', id) AS BINARY) AS raw, id % 3 = 0 AS flag
  FROM (SELECT id, concat('n', id) AS name FROM range(2000))
"""


@pytest.mark.parametrize("form", ["parquet", "orc", "json"])
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
