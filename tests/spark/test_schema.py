"""Schemas are checked before anything is uploaded, and each refusal names its column."""

from __future__ import annotations

import json

import pyspark
import pyspark.sql.types
import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VariantType,
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
    metadata = check_schema(schema(("a", VariantType()), ("dt", STRING)), ("dt",)).parquet_metadata
    assert [field["name"] for field in json.loads(metadata[ROW_METADATA])["fields"]] == ["a"]
    assert metadata[SPARK_VERSION] == pyspark.__version__.encode()


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (YearMonthIntervalType(), "c"),
        (CalendarIntervalType(), "c"),
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


OF_LATER_RELEASES = ("TimeType", "GeometryType", "GeographyType")


@pytest.mark.parametrize(
    "name", [name for name in OF_LATER_RELEASES if hasattr(pyspark.sql.types, name)]
)
def test_types_that_spark_cannot_read_back_are_refused(name: str) -> None:
    kind = getattr(pyspark.sql.types, name)(*([] if name == "TimeType" else [4326]))
    with pytest.raises(InvalidInputError, match="column c has the type"):
        check_schema(schema(("c", kind)), ())


@pytest.mark.parametrize(
    "kind", [NullType(), ArrayType(NullType()), DayTimeIntervalType(), VariantType()]
)
def test_types_that_only_look_unusual_are_taken(
    kind: DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.0")
    assert check_schema(schema(("c", kind)), ()).data.names == ["c"]


@pytest.mark.parametrize("kind", [NullType(), ArrayType(NullType())])
def test_void_is_refused_where_spark_does_not_read_it(
    kind: DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.1")
    with pytest.raises(InvalidInputError, match=r"Spark 4\.0\.1 cannot read it from parquet"):
        check_schema(schema(("c", kind)), ())


def test_columns_that_differ_in_case_only_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="columns id and ID differ in case only"):
        check_schema(schema(("id", INT), ("ID", INT)), ())
    with pytest.raises(InvalidInputError, match=r"columns s\.x and s\.X differ"):
        check_schema(schema(("s", schema(("x", INT), ("X", INT)))), ())


def test_a_column_that_is_there_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="column id is there twice"):
        check_schema(schema(("id", INT), ("id", STRING)), ())


def test_a_partition_column_that_is_missing_is_refused_with_the_columns() -> None:
    with pytest.raises(InvalidInputError, match=r"'day' is not in the DataFrame \(a, dt\)"):
        check_schema(schema(("a", INT), ("dt", STRING)), ("day",))


def test_a_partition_column_given_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="names a column twice: dt, DT"):
        check_schema(schema(("a", INT), ("dt", STRING)), ("dt", "DT"))


def test_only_partition_columns_are_refused_as_spark_refuses_them() -> None:
    with pytest.raises(InvalidInputError, match="all columns are partition columns"):
        check_schema(schema(("a", INT), ("dt", STRING)), ("dt", "a"))


def test_no_columns_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no columns"):
        check_schema(StructType(), ())


@pytest.mark.parametrize(
    "kind",
    [ArrayType(INT), StructType([StructField("x", INT)]), NullType(), DayTimeIntervalType()],
)
def test_a_partition_column_without_a_plain_text_is_refused(kind: DataType) -> None:
    with pytest.raises(InvalidInputError, match="makes no directory name; cast it to string"):
        check_schema(schema(("a", INT), ("p", kind)), ("p",))
