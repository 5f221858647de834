"""ORC, CSV and JSON: what Spark itself reads back, with its default options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StructType,
    TimestampType,
)

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.formats import FORMATS
from s3commit.spark.formats.types import check_types
from tests.spark.test_as_spark_writes import READS_ORC_INSTANTS, rows, save, split_columns
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBERS = """
    id, cast(id as tinyint) byte, cast(id as smallint) short, cast(id as int) int,
    cast(id as float) / 3 float, cast(id as double) / 3 double, id % 2 = 0 boolean,
    cast(id as decimal(9,2)) decimal9, cast(-id / 7 as decimal(18,4)) decimal18,
    cast('0.0000000001' as decimal(38,18)) small, cast(id as decimal(38,0)) decimal38,
    cast(array('NaN', '-Infinity', 'Infinity', '-0.0', '1e300')[cast(id as int)] as double) odd,
    cast(array('NaN', '-Infinity', 'Infinity', '-0.0', '3.4e38')[cast(id as int)] as float) oddf,
    if(id > 1, null, id) nullable
"""
TEXTS = r"""
    id, concat('text ', id, ' äöü€😀') string, cast(concat('c', id) as char(5)) char,
    concat('a,"b"\\', id, '\\"') quotes, r'\n\\' backslashes, '#' hash, chr(39) apostrophe,
    if(id > 1, null, 'x') nullable, array('"', '""', r'\', r'\"', 'NaN')[cast(id as int)] odd,
    'x' collate UNICODE_CI collated
"""
DAYS = """
    id, date_add(date'1600-01-01', cast(id * 50000 as int)) date,
    timestamp'2026-10-25 00:30:00' + make_dt_interval(0, cast(id as int)) night,
    timestamp'1999-12-31 23:59:59.123' + make_dt_interval(cast(id as int)) millis
"""
OLD_DAYS = """
    id, date_add(date'0100-01-01', cast(id * 50000 as int)) date,
    timestamp'0100-01-01 00:00:00' + make_dt_interval(cast(id * 900000 as int)) old,
    timestamp_ntz'0100-01-01 00:00:00.12' + make_dt_interval(cast(id * 900000 as int)) ntz
"""
MICROS = """
    id, timestamp'2026-01-01 00:00:00.123456' + make_dt_interval(cast(id as int)) micros,
    timestamp_ntz'2026-01-01 00:00:00.000001' + make_dt_interval(cast(id as int)) ntz
"""
NESTED = """
    id, array(cast(id as int), null) array, if(id > 2, null, cast(array() as array<int>)) empty,
    if(id > 2, null, map('key', id, 'null', null)) map, cast(concat('b', id) as binary) binary,
    named_struct('x', if(id = 1, null, id), 'y', named_struct('z', cast(id as string))) struct,
    array(map('k', named_struct('t', timestamp'2026-01-01 00:00:00', 'd', date'2026-01-01'))) deep,
    array(X'00ff', null) binaries, if(id = 0, null, named_struct('a', array(1.5D))) whole
"""
MAPS = "id, map(id, timestamp'2026-01-01 00:00:00') times, map(true, array(id)) lists"
VOID = "id, null void, array(null) void_array"


def read(spark: SparkSession, file_format: str, frame: DataFrame, path: str) -> DataFrame:
    return spark.read.schema(frame.schema).format(file_format).load(path)


@pytest.mark.parametrize(
    ("file_format", "types"),
    [
        *(("orc", types) for types in (NUMBERS, TEXTS, DAYS, NESTED, MAPS)),
        *(("csv", types) for types in (NUMBERS, TEXTS, DAYS, OLD_DAYS)),
        *(("json", types) for types in (NUMBERS, TEXTS, DAYS, OLD_DAYS, NESTED, VOID)),
    ],
)
def test_spark_reads_back_what_was_written_as_from_its_own_writer(
    spark: SparkSession, place: Place, tmp_path: Path, file_format: str, types: str
) -> None:
    columns = split_columns(types)
    if file_format == "orc":  # Spark's own ORC reader fails on collated columns
        columns = [column for column in columns if "collate" not in column]
    written = spark.range(5).selectExpr(*columns).repartition(2)
    if file_format == "orc" and "timestamp'" in types and not READS_ORC_INSTANTS:
        with pytest.raises(InvalidInputError, match="cannot read it from orc"):
            save(written, place, fileFormat=file_format)
        return
    save(written, place, fileFormat=file_format)
    ours = read(spark, file_format, written, place.download(tmp_path / "ours"))
    written.write.format(file_format).save(str(tmp_path / "spark"))
    native = read(spark, file_format, written, str(tmp_path / "spark"))
    assert rows(ours) == rows(written)
    assert rows(ours) == rows(native)


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_microseconds_are_kept_which_sparks_own_writer_cuts_off(
    spark: SparkSession, place: Place, tmp_path: Path, file_format: str
) -> None:
    written = spark.range(3).selectExpr(*split_columns(MICROS))
    save(written, place, fileFormat=file_format)
    assert rows(read(spark, file_format, written, place.download(tmp_path))) == rows(written)


def test_csv_keeps_white_space_and_rows_of_one_null_which_sparks_own_writer_loses(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    texts = [" lead", "trail ", "  ", "\t", "\x00a", "\ufeffx", None, "#c", "x"]
    written = spark.createDataFrame([(text,) for text in texts], "text string")
    save(written, place, fileFormat="csv")
    assert rows(read(spark, "csv", written, place.download(tmp_path))) == rows(written)


def test_csv_reads_an_empty_string_as_null_and_line_breaks_with_multi_line_as_sparks_own(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    written = spark.createDataFrame([("a\nb", 1), ("", 2), ('c\r\n"d"', 3)], "text string, n int")
    save(written, place, fileFormat="csv")
    written.write.csv(str(tmp_path / "spark"))
    path = place.download(tmp_path / "ours")
    lines = spark.read.schema(written.schema).option("multiLine", True)
    found = lines.csv(path).orderBy("n").collect()
    assert [row.text for row in found] == ["a\nb", None, 'c\r\n"d"']
    assert found == lines.csv(str(tmp_path / "spark")).orderBy("n").collect()


def test_json_escapes_control_characters(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    every = "".join(map(chr, range(0x20))) + '"\\/\x7f\u2028'
    written = spark.createDataFrame([(every, {every: every})], "text string, m map<string,string>")
    save(written, place, fileFormat="json")
    assert rows(read(spark, "json", written, place.download(tmp_path))) == rows(written)


@pytest.mark.parametrize(
    ("file_format", "codec"),
    [(name, codec) for name in ("orc", "csv", "json") for codec in FORMATS[name].codecs],
)
def test_each_codec_is_named_as_spark_names_it_and_read_by_spark(
    spark: SparkSession, place: Place, tmp_path: Path, file_format: str, codec: str
) -> None:
    written = spark.range(1000).selectExpr("id", "concat('row ', id) text").coalesce(1)
    save(written, place, fileFormat=file_format, compression=codec)
    written.write.format(file_format).option("compression", codec).save(str(tmp_path / "spark"))
    [native] = (tmp_path / "spark").glob("part-*")
    suffix = FORMATS[file_format].suffixes[codec]
    assert native.name.partition("-c000")[2] == suffix
    assert [name.partition(".c000")[2] for name in place.data] == [suffix]
    assert rows(read(spark, file_format, written, place.download(tmp_path))) == rows(written)


@pytest.mark.parametrize("file_format", ["orc", "csv", "json"])
def test_partitions_limits_and_counts_work_in_every_format(
    spark: SparkSession, place: Place, tmp_path: Path, file_format: str
) -> None:
    written = spark.range(100).selectExpr("id", "if(id % 4 = 0, null, id) n", "id % 3 as k")
    options = {"conditions.maxNullFraction.n": "0.25", "conditions.minRows": "100"}
    save(
        written.coalesce(1),
        place,
        fileFormat=file_format,
        partitionBy="k",
        maxRecordsPerFile=20,
        **options,
    )
    assert len(place.data) == 6
    assert rows(read(spark, file_format, written, place.download(tmp_path))) == rows(written)


@pytest.mark.parametrize(
    ("file_format", "column", "line"),
    [
        ("csv", "array(1) c", "column c has the type array<int>, which fileFormat csv does not"),
        ("csv", "named_struct('a', 1) c", "write to_json(column)"),
        ("csv", "map('a', 1) c", "write to_json(column)"),
        ("csv", "X'00' c", "write base64(column)"),
        ("csv", "null c", "cast it to the type that you mean"),
        ("csv", "interval '1' day c", "cast it to string"),
        ("json", "map(1, 2) c", "keys of type string alone"),
        ("json", "array(parse_json('1')) c", "column c[] has the type variant"),
        ("orc", "named_struct('n', timestamp_ntz'2026-01-01') c", "column c.n has the type"),
        ("orc", "null c", "cast it to the type that you mean"),
    ],
)
def test_a_type_that_would_not_read_back_is_refused_before_anything_is_written(
    spark: SparkSession, place: Place, file_format: str, column: str, line: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        save(spark.range(1).selectExpr("id", column), place, fileFormat=file_format)
    assert line in str(refused.value)
    assert "Nothing was written" in str(refused.value)
    assert place.names == []


@pytest.mark.parametrize(
    "kind", [TimestampType(), ArrayType(MapType(IntegerType(), TimestampType()))], ids=str
)
def test_timestamps_in_orc_are_refused_for_a_spark_that_cannot_read_them(
    monkeypatch: pytest.MonkeyPatch, kind: DataType
) -> None:
    schema = StructType().add("c", kind)
    monkeypatch.setattr(pyspark, "__version__", "4.2.0")
    check_types("orc", schema)
    monkeypatch.setattr(pyspark, "__version__", "4.1.1")
    check_types("parquet", schema)
    with pytest.raises(InvalidInputError, match=r"Spark 4\.1\.1 cannot read it from orc"):
        check_types("orc", schema)


@pytest.mark.parametrize(
    ("file_format", "column"),
    [
        ("orc", "date'1582-10-14' c"),
        ("orc", "array(map(1, timestamp'1500-01-01 00:00:00')) c"),
        ("orc", "named_struct('t', timestamp'1969-12-31 00:00:00.5') c"),
        ("csv", "date'-0001-01-01' c"),
        ("json", "array(timestamp'+12000-01-01 00:00:00') c"),
    ],
)
def test_a_day_that_would_not_read_back_fails_the_task_and_names_it(
    spark: SparkSession, place: Place, file_format: str, column: str
) -> None:
    with pytest.raises(InvalidInputError, match=r"BAD_VALUE.*write parquet|write parquet"):
        save(spark.range(1).selectExpr("id", column), place, fileFormat=file_format)
    assert place.data == []


@pytest.mark.parametrize("file_format", list(FORMATS))
@pytest.mark.parametrize("codec", ["default", "none"])
def test_files_of_zero_rows_are_read_as_zero_rows(
    spark: SparkSession, tmp_path: Path, file_format: str, codec: str
) -> None:
    import pyarrow as pa

    from s3commit.spark.formats.encoders import open_encoder
    from s3commit.spark.formats.sink import Sink
    from tests.spark.test_files import MemoryOutput

    frame = spark.range(0).selectExpr("id", "'x' text")
    codec = FORMATS[file_format].default if codec == "default" else codec
    output = MemoryOutput()
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    open_encoder(file_format, Sink(output), schema, codec, crowded=False).close()
    suffix = FORMATS[file_format].suffixes[codec]
    (tmp_path / f"part{suffix}").write_bytes(output.getvalue())
    assert read(spark, file_format, frame, str(tmp_path)).collect() == []
    if file_format in {"parquet", "orc"}:
        assert (
            spark.read.format(file_format).load(str(tmp_path)).schema == frame.schema.toNullable()
        )
