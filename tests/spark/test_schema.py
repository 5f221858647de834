"""Schemas are checked before anything is uploaded, and each refusal names its column."""

import json

import pyspark
import pyspark.sql.types
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.schema import ROW_METADATA, SPARK_VERSION, check_schema


def schema(*fields: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields])


INT, STRING = IntegerType(), StringType()


def test_data_and_partition_columns_are_told_apart() -> None:
    checked = check_schema(schema(("a", INT), ("Dt", STRING), ("h", INT)), ("h", "dt"))
    assert checked.data.names == ["a"]
    assert checked.partition_names == ("h", "Dt")


def test_the_files_carry_sparks_metadata_of_the_data_columns_alone() -> None:
    metadata = check_schema(
        schema(("a", DayTimeIntervalType()), ("dt", STRING)), ("dt",)
    ).parquet_metadata
    assert [field["name"] for field in json.loads(metadata[ROW_METADATA])["fields"]] == ["a"]
    assert metadata[SPARK_VERSION] == pyspark.__version__.encode()


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (YearMonthIntervalType(), "c"),
        (StructType(), "c"),
        (ArrayType(NullType(), containsNull=False), r"c\[\]"),
        (MapType(STRING, NullType(), valueContainsNull=False), "c.value"),
        (schema(("d", ArrayType(StructType()))), r"c\.d\[\]"),
        (MapType(STRING, YearMonthIntervalType()), "c.value"),
    ],
)
def test_types_that_parquet_or_arrow_lack_are_refused(kind: DataType, path: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^column {path} has the type .*Nothing was") as e:
        check_schema(schema(("a", INT), ("c", kind)), ())
    assert e.value.code == "BAD_SCHEMA"


OF_LATER_RELEASES: dict[str, tuple[int, ...]] = {
    "CalendarIntervalType": (),
    "TimeType": (),
    "GeometryType": (4326,),
    "GeographyType": (4326,),
}


@pytest.mark.parametrize(
    "name", [name for name in OF_LATER_RELEASES if hasattr(pyspark.sql.types, name)]
)
def test_types_that_spark_cannot_read_back_are_refused(name: str) -> None:
    kind = getattr(pyspark.sql.types, name)(*OF_LATER_RELEASES[name])
    with pytest.raises(InvalidInputError, match="column c has the type"):
        check_schema(schema(("c", kind)), ())


@pytest.mark.parametrize("kind", [NullType(), ArrayType(NullType())])
def test_void_is_refused_where_spark_does_not_read_it(
    kind: DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.1")
    with pytest.raises(InvalidInputError, match=r"Spark 4\.0\.1 cannot read it from parquet"):
        check_schema(schema(("c", kind)), ())


@pytest.mark.parametrize(
    "kind",
    [ArrayType(INT), StructType([StructField("x", INT)]), NullType(), DayTimeIntervalType()],
)
def test_a_partition_column_without_a_plain_text_is_refused(kind: DataType) -> None:
    with pytest.raises(InvalidInputError, match="cast it"):
        check_schema(schema(("a", INT), ("p", kind)), ("p",))


@pytest.mark.parametrize(
    ("columns", "partition_by", "line"),
    [
        (schema(("id", INT), ("ID", INT)), (), "columns id and ID differ in case at most"),
        (schema(("s", schema(("x", INT), ("X", INT)))), (), r"columns s\.x and s\.X differ"),
        (schema(("id", INT), ("id", STRING)), (), "columns id and id differ"),
        (schema(("a", INT), ("dt", STRING)), ("day",), r"'day' is not in the DataFrame \(a, dt\)"),
        (schema(("a", INT), ("dt", STRING)), ("dt", "DT"), "names a column twice: dt, DT"),
        (schema(("a", INT), ("dt", STRING)), ("dt", "a"), "all columns are partition columns"),
        (schema(), (), "no columns"),
    ],
)
def test_columns_that_make_no_table_are_refused(
    columns: StructType, partition_by: tuple[str, ...], line: str
) -> None:
    with pytest.raises(InvalidInputError, match=line):
        check_schema(columns, partition_by)
