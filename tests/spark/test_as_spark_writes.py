"""`write` leaves what Spark's own writer leaves: values, names of files and of directories."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from s3commit.spark import write
from s3commit.spark.schema import running_release
from tests.spark.conftest import settings as settings_of_session
from tests.spark.tiny import BUCKET, Place


def load(spark: SparkSession, place: Place, target: Path) -> DataFrame:
    return spark.read.parquet(place.download(target))


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def local_directories(root: Path) -> list[str]:
    """The directory of each file below ``root``."""
    return sorted(str(path.parent.relative_to(root)) for path in root.rglob("*.parquet"))


PLAIN_TYPES = """
    id,
    cast(id as tinyint) byte, cast(id as smallint) short, cast(id as int) int,
    cast(id as float) float, cast(id as double) / 3 double, id % 2 = 0 boolean,
    concat('text ', id) string, cast(concat('b', id) as binary) binary,
    cast(id as decimal(9,2)) decimal9, cast(id as decimal(18,4)) decimal18,
    cast(id as decimal(38,10)) decimal38,
    date_add(date'1500-01-01', cast(id * 50000 as int)) date,
    timestamp'1600-03-01 12:13:14.123456' + make_dt_interval(cast(id as int) * 30000) timestamp,
    timestamp_ntz'1600-03-01 12:13:14.123456' ntz,
    array(cast(id as int), null) array, array(id) long_array, map('key', id) map,
    named_struct('x', id, 'y', named_struct('z', cast(id as string))) struct,
    array(map('k', named_struct('t', timestamp'2026-01-01 00:00:00'))) nested,
    if(id > 1, null, id) nullable
"""
# Null above what is declared not null. Other readers see it as optional there, since Arrow's writer
# refuses null in it; Spark's own file has it as required.
NULL_TYPES = """
    if(id > 1, null, array(id)) list, if(id > 1, null, map(id, id)) map,
    if(id > 1, null, named_struct('a', id, 'b', named_struct('c', id))) struct,
    if(id > 1, null, named_struct('l', array(id), 'm', map(id, id))) of_many,
    array(if(id > 1, null, named_struct('a', id))) in_list,
    map(id, if(id > 1, null, named_struct('a', id))) in_map
"""
UNUSUAL_TYPES = """
    id, make_dt_interval(cast(id as int)) daytime,
    if(id > 1, parse_json('{"a": [1, "x"]}'), null) variant, 'x' collate UNICODE_CI collated,
    map(id, timestamp'2026-01-01 00:00:00') time_map
"""
if running_release() >= (4, 1):  # before, Spark does not read them from parquet
    UNUSUAL_TYPES += ", null void, array(null) void_array"


TYPES = {"plain": PLAIN_TYPES} | ({} if running_release() < (4, 0) else {"unusual": UNUSUAL_TYPES})


def nullable(schema: StructType) -> StructType:
    """The schema as Parquet has it: Spark writes every field as one that may be null."""
    text = schema.json().replace('"nullable":false', '"nullable":true')
    text = text.replace('"containsNull":false', '"containsNull":true')
    text = text.replace('"valueContainsNull":false', '"valueContainsNull":true')
    return StructType.fromJson(json.loads(text))


WRITTEN = TYPES | {"null": NULL_TYPES}


@pytest.mark.parametrize("types", WRITTEN.values(), ids=WRITTEN)
def test_types_and_values_come_back_as_they_were(
    session: SparkSession, place: Place, tmp_path: Path, types: str
) -> None:
    written = session.sql(f"SELECT {types} FROM range(4)")
    write(written, place.uri)
    read = load(session, place, tmp_path)
    expected = nullable(written.schema)
    assert read.schema == expected
    texts = [column.name for column in expected if column.name != "variant"]
    extra = ["to_json(variant)"] if "variant" in expected.names else []
    assert rows(read.selectExpr(*texts, *extra)) == rows(written.selectExpr(*texts, *extra))


@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
def test_other_readers_see_the_types_that_spark_writes(
    session: SparkSession, place: Place, tmp_path: Path, types: str
) -> None:
    """Whatever the session's time zone and its Arrow settings are."""
    frame = session.sql(f"SELECT {types} FROM range(4)").coalesce(1)
    frame = frame.drop("variant")  # Spark shreds it
    chosen = {
        "spark__sql__parquet__outputTimestampType": "TIMESTAMP_MICROS",
        "spark__sql__execution__arrow__useLargeVarTypes": "true",
        "spark__sql__session__timeZone": "Asia/Tokyo",
        # By itself, Spark 3.5 writes no dates of before 1582.
        "spark__sql__parquet__datetimeRebaseModeInWrite": "CORRECTED",
    }
    with settings_of_session(session, **chosen):
        frame.write.parquet(str(tmp_path / "own"))
        write(frame, place.uri)
    own, ours = (
        parquet.read_schema(next(Path(root).glob("*.parquet"))).remove_metadata()
        for root in (tmp_path / "own", place.download(tmp_path / "ours"))
    )
    assert ours.equals(own, check_metadata=True)


def test_metadata_of_columns_are_kept(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    written = spark.range(1).selectExpr("id")
    written = written.withMetadata("id", {"comment": "the row", "unit": 7})
    write(written, place.uri)
    assert load(spark, place, tmp_path).schema["id"].metadata == {"comment": "the row", "unit": 7}


def test_marks_of_a_column_that_is_not_in_a_file_are_left_out(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    """With them Spark takes the written column for its own, and skips files by other values."""
    scala: Any = spark._jvm
    package = getattr(scala.org.apache.spark.sql.catalyst.util, "package$")
    keys = getattr(package, "MODULE$").INTERNAL_METADATA_KEYS().mkString(",").split(",")
    assert len(keys) >= 6
    metadata = {**dict.fromkeys(keys, True), "comment": "kept"}
    marked = spark.range(0, 1, 1, 1).withMetadata("id", metadata)
    marked.write.parquet(str(tmp_path / "own"))
    write(marked, place.uri)
    own = spark.read.parquet(str(tmp_path / "own"))
    assert load(spark, place, tmp_path / "ours").schema == own.schema

    sources, other = own.selectExpr("id", "_metadata", "_metadata AS source"), Place(place.tiny)
    (size,) = {path.stat().st_size for path in (tmp_path / "own").glob("*.parquet")}
    write(sources, other.uri)
    written = load(spark, other, tmp_path / "sources")
    for column in ("_metadata", "source"):
        assert written.where(f"{column}.file_size = {size}").count() == 1


def test_names_carry_partition_job_counter_and_codec(spark: SparkSession, place: Place) -> None:
    write(spark.range(0, 10, 1, 2), place.uri, compression="zstd")
    (job,) = place.jobs
    assert place.data == [f"part-0000{n}-{job}.c000.zstd.parquet" for n in (0, 1)]
    head = place.tiny.store.head(BUCKET, place.destination.prefix + place.data[0])
    assert head is not None
    assert head.metadata["s3commit-job"] == job
    assert head.metadata["s3commit-task"] == "00000"


PARTITION_VALUES = ["a/b", "a=b", "50%", "with space", "line\nbreak", "ünï", "日本", "a:b*c?d"]
PARTITION_VALUES += ["{x}[y]^", "#'\"\\", "tab\tend", "%2F", ".hidden", "", "__HIVE", "a.b"]


def test_directories_are_named_as_sparks(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    values = [(n, text) for n, text in enumerate([*PARTITION_VALUES, None])]
    written = spark.createDataFrame(values, "id int, p string").selectExpr("id", "p", "p `a=b/c`")
    written = written.coalesce(1)
    written.write.partitionBy("p", "A=B/C").parquet(str(tmp_path / "native"))
    write(written, place.uri, partition_by=["p", "A=B/C"])
    ours = load(spark, place, tmp_path / "ours")
    assert local_directories(tmp_path / "native") == local_directories(tmp_path / "ours")
    expected = sorted((n, text or None) for n, text in values)
    assert sorted((row.id, row.p) for row in ours.collect()) == expected


TYPED_PARTITIONS = {
    "boolean": "id % 2 = 0",
    "tinyint": "cast(id as tinyint)",
    "bigint": "id * 10000000000",
    "date": "date_add(date'0001-01-01', cast(id * 700000 as int))",
    "timestamp": "timestamp'2026-03-08 01:30:00' + make_dt_interval(0, cast(id as int), 0, 0.12)",
    "old_timestamp": "timestamp'1600-01-01 00:00:00'",
    "ntz": "timestamp_ntz'2026-03-08 02:30:00.5'",
    "decimal": "cast(id as decimal(20,7)) / 10000000",
    "double": "element_at(array(1D, 0.1D, 1e7D, 1.5e-5D, double('nan')), cast(id as int) + 1)",
    "float": "element_at(array(1F, 0.1F, 3.4e38F, float('-inf'), 1e-3F), cast(id as int) + 1)",
    "binary": "cast('a/b' as binary)",
    "bytes": "x'61ff'",
    "far": "date'12345-01-01'",
}


def test_typed_values_are_as_sparks(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    names = list(TYPED_PARTITIONS)
    written = spark.range(5).selectExpr(
        "id", *(f"{text} as `{name}`" for name, text in TYPED_PARTITIONS.items())
    )
    written = written.coalesce(1)
    written.write.partitionBy(*names).parquet(str(tmp_path / "native"))
    write(written, place.uri, partition_by=names)
    assert local_directories(tmp_path / "native") == local_directories(
        Path(place.download(tmp_path / "ours"))
    )


def test_a_task_makes_a_file_a_directory(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    frame = spark.range(0, 300, 1, 2).selectExpr("id", "id % 10 k", "id % 3 j")
    frame.write.partitionBy("k", "j").parquet(str(tmp_path / "native"))
    write(frame, place.uri, partition_by=["k", "j"])
    ours = local_directories(Path(place.download(tmp_path / "ours")))
    assert local_directories(tmp_path / "native") == ours
    assert len(ours) == 60


def test_sorted_rows_keep_their_order(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    frame = spark.range(0, 1000, 1, 1).selectExpr("(id * 7919) % 1000 id", "id % 3 k")
    by_key = frame.sortWithinPartitions("k", "id").withColumn("z", f.lit(1))
    write(by_key, place.uri, partition_by="k")
    (one,) = Path(place.download(tmp_path)).glob("k=1/*.parquet")
    ids = [row.id for row in spark.read.parquet(str(one)).collect()]
    assert ids == sorted(ids)
    other = Place(place.tiny)
    write(frame.sortWithinPartitions("id"), other.uri, partition_by="k")  # another order is no help
    assert len(other.data) == 3


# Columns of any name that Spark's own writer takes: none is parsed


NAMES = ["a.b", "a.b.c", "x.", "a`b", "``", "(id * 1.5)", "a b", "a,b", "größe", 'a"b', "x;y(z)"]
NAMES += ["c0", "c1", "*", "a['b']", "日本", "=", "%2F", "\\", "{x}[y]^", "a/b"]
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"])
ANY = st.text(st.sampled_from("ab.`'\"()[]{}*,:;=%/\\ $#@-é") | CHARACTERS, min_size=1, max_size=8)
FOLDED = st.lists(ANY, min_size=1, max_size=4, unique_by=str.casefold)


def compare(session: SparkSession, place: Place, target: Path, names: list[str], by: str) -> None:
    """What Spark's own writer leaves is what `write` leaves; a value says what its column was."""
    values = [tuple(f"{row}-{column}" for column in range(len(names))) for row in range(2)]
    frame = session.createDataFrame(values, names).coalesce(1)
    writer = frame.write.partitionBy(by) if by else frame.write
    own, ours = target / "own", target / "ours"
    writer.parquet(str(own))
    write(frame, place.uri, partition_by=[by] if by else None)
    found, wanted = (session.read.parquet(path) for path in (place.download(ours), str(own)))
    assert found.columns == wanted.columns
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, wanted.collect()))
    assert local_directories(ours) == local_directories(own)


@pytest.mark.parametrize("by", ["", "a.b", "a`b", "(id * 1.5)", "c1"])
def test_no_name_is_parsed(session: SparkSession, place: Place, tmp_path: Path, by: str) -> None:
    compare(session, place, tmp_path, [*NAMES, "last"], by)


def test_a_column_is_not_a_field(session: SparkSession, place: Place, tmp_path: Path) -> None:
    frame = session.sql("SELECT named_struct('b', 'field') AS a, 'column' AS `a.b`")
    write(frame, place.uri, partition_by=["a.b"])
    [row] = session.read.parquet(place.download(tmp_path / "ours")).collect()
    assert (row[0].b, row[1]) == ("field", "column")


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(names=FOLDED, partitioned=st.booleans())
def test_whatever_the_names_are_the_rows_are_those_of_sparks_own_writer(
    spark: SparkSession, place: Place, tmp_path: Path, names: list[str], partitioned: bool
) -> None:
    by = names[0] if partitioned and len(names) > 1 and not names[0].startswith(".") else ""
    another = Place(place.tiny)
    compare(spark, another, tmp_path / uuid.uuid4().hex, names, by)
