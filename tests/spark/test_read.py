"""Reading back: what is visible, or what one job committed, with Spark's partition types."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import TimestampNTZType, TimestampType

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.discover import infer_type, typed
from s3commit.spark.zones import zone
from tests.spark.test_write import load, rows, save
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_JOB = "49f3d0eb-15fa-4d99-95ae-ddd67f0abad4"
VALUES: dict[str, list[str | None]] = {
    "ints": ["1", "-2", "007", None],
    "longs": ["1", "3000000000"],
    "decimals": ["1", "30000000000000000000"],
    "doubles": ["1", "2.5", "Infinity", "-0.5", "1.5f", " 7.5 "],
    "java_doubles": ["1.0E7", "1.5E-5"],
    "big_doubles": ["1.0E7", "3.0E10"],
    "longs_doubles": ["3000000000", "2.5"],
    "dates": ["2026-11-21", "0001-01-01", None],
    "no_dates": ["2026-02-30", "2026-1-2"],
    "mixed": ["2026-11-21", "5"],
    "strings": ["a", "5"],
    "nulls": [None],
    "huge": ["1" * 40],
}
TIMES: dict[str, list[str | None]] = {
    "time": ["2026-03-08 01:30:00", "1600-01-01 00:00:00", "1883-11-18 12:00:00", None],
    "tenths": ["2026-03-08 01:30:00.5"],
    "skipped": ["2026-03-08 02:30:00"],
    "twice": ["2026-11-01 01:30:00"],
    "with_date": ["2026-03-08 01:30:00", "2026-03-09"],
    "hundredths": ["2026-03-08 01:30:00.12"],
    "no_time": ["2026-03-08 24:00:00", "2026-02-30 00:00:00"],
    "other_form": ["2026-03-08T01:30:00", "2026-03-08 01:30"],
    "with_int": ["2026-03-08 01:30:00", "5"],
}


def test_partition_types_are_inferred_as_spark_infers_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name, texts in VALUES.items():
        for text in texts:
            directory = tmp_path / name / f"p={text or '__HIVE_DEFAULT_PARTITION__'}"
            directory.mkdir(parents=True)
            pq.write_table(pa.table({"id": [1]}), directory / "file.parquet")
        native = spark.read.parquet(str(tmp_path / name))
        kind = infer_type(texts)
        assert (name, kind) == (name, native.schema["p"].dataType)
        ours = sorted((typed(text, kind, "p") for text in texts), key=repr)
        assert (name, ours) == (name, sorted((row.p for row in native.collect()), key=repr))


def test_times_of_day_in_directories_are_read_in_the_sessions_zone(
    spark: SparkSession, tmp_path: Path, place: Place
) -> None:
    for name, texts in TIMES.items():
        part, native_files = Place(place.tiny), tmp_path / name
        for text in texts:
            directory = f"p={(text or '__HIVE_DEFAULT_PARTITION__').replace(':', '%3A')}"
            (native_files / directory).mkdir(parents=True)
            pq.write_table(pa.table({"id": [1]}), native_files / directory / "a.parquet")
            body = (native_files / directory / "a.parquet").read_bytes()
            part.put(f"{directory}/a.parquet", body)
        native = spark.read.parquet(str(native_files))
        ours = load(spark, part)
        assert (name, ours.schema) == (name, native.schema)
        micros = "unix_micros(p)" if ours.schema["p"].dataType.typeName() == "timestamp" else "p"
        assert rows(ours.selectExpr(micros)) == rows(native.selectExpr(micros))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-08 01:30", "2026-03-08T00:30:00+00:00"),
        ("2026-03-08T01:30:00.25Z", "2026-03-08T01:30:00.250000+00:00"),
        ("2026-03-08 1:3:0 America/New_York", "2026-03-08T06:03:00+00:00"),
        ("2026-03-08", "2026-03-07T23:00:00+00:00"),
        ("2026-03-08 02:30:00.123456789", "2026-03-08T01:30:00.123456+00:00"),
    ],
)
def test_a_column_that_is_said_to_be_a_time_takes_every_form_of_sparks_cast(
    text: str, moment: str
) -> None:
    found = typed(text, TimestampType(), "p", zone("+01:00"))
    assert dt.datetime.fromtimestamp(found / 1e6, dt.UTC).isoformat() == moment
    wall = typed(text, TimestampNTZType(), "p", zone("Europe/Berlin"))
    assert dt.datetime.fromtimestamp(wall / 1e6, dt.UTC).isoformat()[:10] == text[:10]


def test_a_zone_that_python_does_not_know_is_refused_with_the_setting() -> None:
    with pytest.raises(InvalidInputError, match=r"set spark\.sql\.session\.timeZone to UTC"):
        zone("Mars/Olympus")
    with pytest.raises(InvalidInputError, match="is no timestamp"):
        typed("5", TimestampType(), "p")


def test_a_partition_value_that_a_given_type_lacks_is_refused_in_one_line() -> None:
    from pyspark.sql.types import IntegerType

    with pytest.raises(InvalidInputError, match="p='x' is no int; read the column as a string"):
        typed("x", IntegerType(), "p")


def test_partition_columns_come_last_and_typed(spark: SparkSession, place: Place) -> None:
    frame = spark.range(6).selectExpr(
        "date_add(date'2026-01-01', cast(id % 2 as int)) dt", "id", "cast(id % 3 as int) h"
    )
    save(frame, place, partitionBy="dt,h")
    back = load(spark, place)
    assert back.schema.simpleString() == "struct<id:bigint,dt:date,h:int>"
    assert rows(back) == rows(frame.select("id", "dt", "h"))


def test_a_partition_column_of_nulls_alone_is_read(spark: SparkSession, place: Place) -> None:
    save(spark.range(2).selectExpr("id", "cast(null as string) p"), place, partitionBy="p")
    assert rows(load(spark, place)) == ["Row(id=0, p=None)", "Row(id=1, p=None)"]


def test_a_job_is_read_alone_by_its_id(spark: SparkSession, place: Place) -> None:
    save(spark.range(5), place)
    (first,) = place.jobs
    save(spark.range(5, 9), place)
    assert len(place.jobs) == 2
    assert sorted(row.id for row in load(spark, place, jobId=first).collect()) == list(range(5))


def test_hidden_names_and_empty_markers_are_no_data(spark: SparkSession, place: Place) -> None:
    save(spark.range(5), place)
    for name in ("_delta_log/0.json", ".part.crc", "dt=1/_temporary/x.parquet"):
        place.put(name, b"no parquet")
    place.put("table_$folder$", b"")
    assert load(spark, place).count() == 5


def test_files_that_spark_wrote_itself_are_read(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    frame = spark.range(4).selectExpr(
        "id", "timestamp'1600-01-01 00:00:00' t", "map(id, array(date'2026-01-01')) m", "id % 2 p"
    )
    with_int96 = frame.write.option("compression", "zstd")
    with_int96.partitionBy("p").parquet(str(tmp_path / "native"))
    for path in (tmp_path / "native").rglob("*.parquet"):
        place.put(str(path.relative_to(tmp_path / "native")), path.read_bytes())
    native = spark.read.parquet(str(tmp_path / "native"))
    ours = load(spark, place)
    assert ours.schema == native.schema
    assert rows(ours) == rows(native)


def test_a_file_without_sparks_metadata_and_with_fewer_columns(
    spark: SparkSession, place: Place
) -> None:
    for name, table in {
        "a.parquet": pa.table({"id": pa.array([1], pa.int64()), "s": ["x"]}),
        "b.parquet": pa.table({"ID": pa.array([2], pa.int32())}),
    }.items():
        body = io.BytesIO()
        pq.write_table(table, body)
        place.put(name, body.getvalue())
    assert sorted(load(spark, place).collect()) == [(1, "x"), (2, None)]


def test_a_large_file_is_read_by_several_tasks_each_row_once(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from s3commit.spark import reader
    from s3commit.spark.options import parse_options

    frame = spark.range(0, 150_000, 1, 1).selectExpr("id", "sha2(cast(id as string), 256) s")
    save(frame, place, memoryBudget="16MB", compression="none")
    (file,) = place.committed()
    monkeypatch.setattr(reader, "SPLIT_BYTES", file.length // 3)
    options = parse_options({"path": place.uri})
    planned = reader.CommittedReader(options, frame.schema.toNullable())
    splits = planned.partitions()
    found: list[list[int]] = [
        [number for batch in planned.read(split) for number in batch["id"].to_pylist()]
        for split in splits
    ]
    assert len([numbers for numbers in found if numbers]) == 3  # it has as many row groups
    assert sorted(number for numbers in found for number in numbers) == list(range(150_000))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "no data file is committed at"),
        ({"jobId": NO_JOB}, f"job {NO_JOB} is not committed at"),
        ({"partitionby": "x", "path_": "y"}, "no option 'path_'"),
    ],
)
def test_nothing_to_read_is_one_clear_line(
    spark: SparkSession, place: Place, options: dict[str, str], says: str
) -> None:
    with pytest.raises(Exception, match=says):
        load(spark, place, **options)


def test_conflicting_partition_columns_name_two_files(spark: SparkSession, place: Place) -> None:
    place.put("a=1/x.parquet", b"x")
    place.put("b=1/y.parquet", b"y")
    with pytest.raises(Exception, match=r"different partition columns: .*a=1/x.*b=1/y"):
        load(spark, place)


def test_what_is_no_parquet_file_is_named(spark: SparkSession, place: Place) -> None:
    place.put("notes.txt", b"some text that is no parquet")
    with pytest.raises(Exception, match=r"notes\.txt is no parquet file"):
        load(spark, place)
    other = Place(place.tiny)
    save(spark.range(3), other, fileFormat="json", compression="gzip")
    with pytest.raises(Exception, match=r"read the directory with spark\.read\.json\('s3a://"):
        load(spark, other)


def test_several_paths_are_refused_with_what_to_do(spark: SparkSession, place: Place) -> None:
    with pytest.raises(Exception, match="reads one path at a time, not 2"):
        spark.read.format("s3commit").load([place.uri, place.uri + "2"])
