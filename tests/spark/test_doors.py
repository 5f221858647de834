"""Every door of Spark's: it works, or one line says which way does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import register
from s3commit.spark.formats.types import running_release
from s3commit.spark.guard import is_classic
from tests.spark.test_write import load, rows, spark_conf
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NO_PATH = r"no path: give one, .* INSERT INTO t WITH \(path = 's3://bucket/prefix'\)"


@pytest.fixture(params=["classic", "connect"])
def spark(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    """Both kinds of session in turn."""
    if request.param == "classic":
        return spark
    found: SparkSession = request.getfixturevalue("connect")
    register(found)
    return found


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    frame = spark.range(0, 4, 1, 1).selectExpr("id", "cast(id % 2 as int) k")
    frame.createOrReplaceTempView("src")
    return frame


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE TABLE doors (id bigint, k int) USING s3commit")
    yield "doors"
    spark.sql("DROP TABLE doors")


def ids(spark: SparkSession, place: Place) -> list[int]:
    return sorted(row.id for row in load(spark, place).collect())


def refused(line: str, call: Callable[[], Any], place: Place) -> None:
    with pytest.raises(Exception, match=line):
        call()
    assert place.names == place.uploads == []


def test_save_overwrites_by_mode_option_and_session(
    spark: SparkSession, place: Place, frame: DataFrame
) -> None:
    def save(frame: DataFrame, mode: str, **options: str) -> None:
        writer = frame.write.format("s3commit").mode(mode).option("partitionBy", "k")
        writer.options(**options).save(place.uri)

    save(frame, "append", conflict="fail")
    with pytest.raises(Exception, match="none of its files is visible"):
        save(frame, "append", conflict="fail")
    save(frame.where("k = 1"), "overwrite", partitionOverwriteMode="dynamic")
    assert ids(spark, place) == [0, 1, 2, 3]
    with spark_conf(spark, "spark.sql.sources.partitionOverwriteMode", "DYNAMIC"):
        save(frame.where("id = 1"), "overwrite")
        assert ids(spark, place) == [0, 1, 2]
        save(frame.where("id = 2"), "overwrite", partitionOverwriteMode="static")
    assert ids(spark, place) == [2]


def test_insert_into_a_table_with_options(
    spark: SparkSession, place: Place, frame: DataFrame, table: str
) -> None:
    where = f"WITH (path = '{place.uri}', partitionBy = 'k')"
    spark.sql(f"INSERT INTO {table} {where} SELECT * FROM src")
    spark.sql(f"INSERT INTO {table} {where} VALUES (10, 3)")
    assert ids(spark, place) == [0, 1, 2, 3, 10]
    spark.sql(f"INSERT OVERWRITE {table} {where} SELECT * FROM src WHERE id < 2")
    assert ids(spark, place) == [0, 1]
    read = spark.sql(f"SELECT id FROM {table} WITH (path = '{place.uri}')")
    assert sorted(row.id for row in read.collect()) == [0, 1]
    read = spark.read.option("path", place.uri).table(table)
    assert sorted(row.id for row in read.collect()) == [0, 1]
    with pytest.raises(Exception, match=NO_PATH):
        spark.table(table).collect()
    other = Place(place.tiny)
    refused(NO_PATH, lambda: spark.sql(f"INSERT INTO {table} SELECT * FROM src"), other)
    refused(NO_PATH, lambda: frame.write.insertInto(table), other)


def test_write_to_a_table_with_options(
    spark: SparkSession, place: Place, frame: DataFrame, table: str
) -> None:
    functions = "pyspark.sql.functions" if is_classic(spark) else "pyspark.sql.connect.functions"
    true = import_module(functions).lit(True)
    frame.writeTo(table).option("path", place.uri).append()
    frame.writeTo(table).option("path", place.uri).append()
    assert ids(spark, place) == sorted([0, 1, 2, 3] * 2)
    frame.writeTo(table).option("path", place.uri).overwrite(true)
    assert ids(spark, place) == [0, 1, 2, 3]
    refused(NO_PATH, frame.writeTo(table).append, Place(place.tiny))


def test_insert_into_method_with_format_and_mode(
    spark: SparkSession, place: Place, frame: DataFrame, table: str
) -> None:
    writer = frame.write.format("s3commit").mode("append").option("path", place.uri)
    writer.insertInto(table)
    assert ids(spark, place) == [0, 1, 2, 3]


def test_a_temporary_view_is_read_and_written_at_its_path(
    spark: SparkSession, place: Place, frame: DataFrame
) -> None:
    options = f"OPTIONS (path '{place.uri}', partitionBy 'k')"
    columns = "(id bigint, k int)"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v {columns} USING s3commit {options}")
    spark.sql("INSERT INTO v SELECT * FROM src")
    frame.writeTo("v").append()
    # Spark plans a view's read once: it stays at what was there then.
    assert sorted(row.id for row in spark.table("v").collect()) == sorted([0, 1, 2, 3] * 2)
    spark.sql("INSERT OVERWRITE v SELECT * FROM src WHERE k = 0")
    assert ids(spark, place) == [0, 2]


def test_save_as_table_with_options(spark: SparkSession, place: Place, frame: DataFrame) -> None:
    def save(mode: str | None = None) -> None:
        writer = frame.write.format("s3commit").option("path", place.uri)
        (writer if mode is None else writer.mode(mode)).saveAsTable("saved")

    try:
        save()  # the default mode: the table must not be there
        save("append")
        assert len(place.data) == 2
        save("overwrite")
        assert ids(spark, place) == [0, 1, 2, 3]
    finally:
        spark.sql("DROP TABLE IF EXISTS saved")


def test_a_new_table_is_filled_by_write_to_and_not_by_ctas(
    spark: SparkSession, place: Place, frame: DataFrame
) -> None:
    try:
        frame.writeTo("made").using("s3commit").option("path", place.uri).create()
        assert ids(spark, place) == [0, 1, 2, 3]
    finally:
        spark.sql("DROP TABLE IF EXISTS made")
    other = Place(place.tiny)
    made = f"CREATE TABLE made USING s3commit OPTIONS (path '{other.uri}') AS SELECT * FROM src"
    refused(NO_PATH, lambda: spark.sql(made), other)
    assert not spark.catalog.tableExists("made")


LAYOUTS: dict[str, tuple[Callable[[DataFrame, str], Any], str]] = {
    "partitionBy": (
        lambda frame, uri: frame.write.partitionBy("k").format("s3commit").mode("append").save(uri),
        r"save: .* \.partitionBy\(\.\.\.\), .* use \.option\('partitionBy', 'k'\)",
    ),
    "partitionBy as an argument": (
        lambda frame, uri: frame.write.save(uri, "s3commit", "append", ["k", "id"]),
        r"use \.option\('partitionBy', 'k,id'\)",
    ),
    "bucketBy": (
        lambda frame, uri: frame.write.bucketBy(2, "k").save(uri, "s3commit", "append"),
        r"save: .* \.bucketBy\(\.\.\.\), .*: leave it out",
    ),
    "sortBy": (
        lambda frame, uri: frame.write.sortBy("k").save(uri, "s3commit", "append"),
        "SORT_BY_WITHOUT_BUCKETING",
    ),
    "saveAsTable": (
        lambda frame, uri: frame.write.format("s3commit").saveAsTable(
            "none", partitionBy="k", path=uri
        ),
        r"saveAsTable: .* use \.option\('partitionBy', 'k'\)",
    ),
    "writeTo": (
        lambda frame, uri: (
            frame.writeTo("none").using("s3commit").partitionedBy(frame.k).option("path", uri)
        ).create(),
        r"create: .* \.partitionedBy\(\.\.\.\), .* use \.option\('partitionBy', 'column,\.\.\.'\)",
    ),
    "default mode": (
        lambda frame, uri: frame.write.format("s3commit").save(uri),
        'cannot be written in the "ErrorIfExists" mode.*use either the "Append" or "Overwrite"',
    ),
    "no path": (
        lambda frame, uri: frame.write.format("s3commit").mode("append").save(),
        NO_PATH,
    ),
}


@pytest.mark.parametrize("door", list(LAYOUTS))
def test_what_spark_would_drop_or_lacks_is_refused(
    spark: SparkSession, place: Place, frame: DataFrame, door: str
) -> None:
    call, line = LAYOUTS[door]
    refused(line, lambda: call(frame, place.uri), place)
    assert not spark.catalog.tableExists("none")


def test_the_layouts_of_other_formats_are_sparks_own(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    frame.write.partitionBy("k").parquet(str(tmp_path / "a"))
    frame.write.format("parquet").partitionBy("k").mode("append").save(str(tmp_path / "a"))
    assert spark.read.parquet(str(tmp_path / "a")).count() == 8


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("INSERT OVERWRITE DIRECTORY '{uri}' USING s3commit SELECT * FROM src", "FileFormat"),
        ("INSERT INTO s3commit.`{uri}` SELECT * FROM src", "TABLE_OR_VIEW_NOT_FOUND"),
        ("INSERT INTO {table} PARTITION (k = 1) SELECT id FROM src", "NON_PARTITION_COLUMN"),
        ("SELECT * FROM s3commit.`{uri}`", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"),
    ],
)
def test_what_spark_itself_refuses_writes_nothing(
    spark: SparkSession, place: Place, frame: DataFrame, table: str, sql: str, line: str
) -> None:
    refused(line, lambda: spark.sql(sql.format(uri=place.uri, table=table)), place)


def test_partitions_can_not_be_overwritten_by_write_to(
    place: Place, frame: DataFrame, table: str
) -> None:
    writer = frame.writeTo(table).option("path", place.uri)
    refused("does not support dynamic overwrite", writer.overwritePartitions, place)


def in_thread(work: Callable[[], Any]) -> None:
    """Run it in a thread of its own; raise what it raises."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in errors:
        raise error


def test_another_thread_writes_as_this_one_does(
    spark: SparkSession, place: Place, frame: DataFrame, table: str, tmp_path: Path
) -> None:
    writer = frame.write.format("s3commit").mode("append")
    in_thread(lambda: writer.save(place.uri))
    in_thread(lambda: frame.writeTo(table).option("path", place.uri).append())
    spark.createDataFrame([(7, 1)], "id bigint, k int").write.json(str(tmp_path / "in"))
    stream = spark.readStream.schema("id bigint, k int").json(str(tmp_path / "in")).writeStream
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream = stream.format("s3commit").trigger(availableNow=True)
    if running_release() >= (4, 1):
        in_thread(lambda: stream.start(place.uri).awaitTermination())
    else:
        line = "has no streams for this format.*batch_writer"
        with pytest.raises(Exception, match=line):
            in_thread(lambda: stream.start(place.uri).awaitTermination())
        append(spark.createDataFrame([(7, 1)], "id bigint, k int"), place)
    in_thread(lambda: spark.sql(f"INSERT INTO {table} WITH (path = '{place.uri}') VALUES (8, 1)"))
    assert ids(spark, place) == sorted([0, 1, 2, 3] * 2 + [7, 8])


def test_a_new_session_writes_once_it_is_registered(spark: SparkSession, place: Place) -> None:
    if getattr(spark, "newSession", None) is None:
        pytest.skip("this release of Spark Connect has no newSession")
    other = spark.newSession()
    refused("DATA_SOURCE_NOT_", lambda: append(other.range(3), place), place)
    register(other)
    append(other.range(3), place)
    append(spark.range(3, 5), place)  # whichever was registered last
    assert ids(spark, place) == [0, 1, 2, 3, 4]


def append(frame: DataFrame, place: Place) -> None:
    frame.write.format("s3commit").mode("append").save(place.uri)


def test_a_stream_is_refused_where_spark_would_drop_its_layout(
    spark: SparkSession, place: Place, table: str, tmp_path: Path
) -> None:
    def stream(**options: str) -> Any:
        frame = spark.readStream.format("rate").load().selectExpr("value id", "1 k")
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.options(path=place.uri, **options)

    line = r"start: .* use \.option\('partitionBy', 'k'\)"
    refused(line, stream().partitionBy("k").format("s3commit").start, place)
    refused(line, lambda: stream().start(format="s3commit", partitionBy=["k"]), place)
    refused("clusterBy.*leave it out", stream().format("s3commit").clusterBy("k").start, place)
    line = r"toTable: .* use \.option\('partitionBy', 'k'\)"
    refused(line, lambda: stream().partitionBy("k").toTable(table), place)
    update = stream().format("s3commit").outputMode("update").trigger(availableNow=True)
    refused("does not support Update mode", lambda: update.start().awaitTermination(), place)
    assert spark.streams.active == []
    with pytest.raises(InvalidInputError, match="k"):
        stream().partitionBy("k").toTable("none", format="s3commit")
    assert rows(spark.sql("SHOW TABLES LIKE 'none'")) == []
