"""Which types can be brought together: compared with what this release of Spark does."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from s3commit.spark.merging import Fitting, UnlikeError, is_wider
from tests.spark.conftest import VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "tinyint": "1",
    "int": "1",
    "bigint": "1",
    "float": "1.5",
    "double": "1.5",
    "decimal(10,2)": "1.5",
    "decimal(12,2)": "1.5",
    "decimal(12,4)": "1.5",
    "decimal(20,0)": "1",
    "string": "'a'",
    "boolean": "true",
    "date": "date'2026-01-01'",
    "timestamp": "timestamp'2026-01-01'",
    "timestamp_ntz": "timestamp_ntz'2026-01-01'",
    "array<int>": "array(1)",
    "array<bigint>": "array(1)",
    "struct<a:int>": "named_struct('a', 1)",
    "struct<b:int>": "named_struct('b', 1)",
    "struct<a:bigint>": "named_struct('a', 1)",
    "map<string,int>": "map('a', 1)",
    "interval day": "make_dt_interval(1)",
    "interval day to second": "make_dt_interval(1)",
}


def fits(ours: DataType, theirs: DataType) -> bool:
    try:
        Fitting().fit(ours, theirs)
    except UnlikeError:
        return False
    return True


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of one row and one column of each type, by Spark's own writer."""
    base = tmp_path_factory.mktemp("types")
    for number, (kind, value) in enumerate(VALUES.items()):
        frame = spark.range(0, 1, 1, 1).selectExpr(f"cast({value} as {kind}) x")
        frame.write.parquet(str(base / str(number)))
    return {kind: base / str(number) for number, kind in enumerate(VALUES)}


def kind_in(spark: SparkSession, path: Path) -> DataType:
    return spark.read.parquet(str(path)).schema["x"].dataType


def test_types_fit_if_spark_merges_them(spark: SparkSession, files: dict[str, Path]) -> None:
    differing = []
    for one, other in itertools.combinations(VALUES, 2):
        paths = [files[one], files[other]]
        try:
            spark.read.option("mergeSchema", "true").parquet(*map(str, paths)).schema  # noqa: B018
            merges = True
        except Exception:
            merges = False
        kinds = [kind_in(spark, path) for path in paths]
        if {fits(*kinds), fits(*reversed(kinds))} != {merges}:
            differing.append((one, other, merges))
    assert differing == []


@pytest.mark.skipif(VERSION < (4, 0), reason="its reader widens nothing")
def test_what_is_wider_is_read_from_files_of_the_narrower_type(
    spark: SparkSession, files: dict[str, Path]
) -> None:
    tried = 0
    for narrow, wide in itertools.permutations(VALUES, 2):
        kinds = kind_in(spark, files[narrow]), kind_in(spark, files[wide])
        if is_wider(kinds[1], kinds[0]):
            (row,) = spark.read.schema(f"x {wide}").parquet(str(files[narrow])).collect()
            assert row.x is not None
            tried += 1
    assert tried > 10


WIDER = [
    (ByteType(), LongType()),
    (ShortType(), DoubleType()),
    (IntegerType(), LongType()),
    (FloatType(), DoubleType()),
    (DateType(), TimestampNTZType()),
    (IntegerType(), DecimalType(12, 2)),
    (DecimalType(10, 2), DecimalType(12, 4)),
    (NullType(), StringType()),
    (ArrayType(IntegerType()), ArrayType(LongType())),
    (MapType(StringType(), IntegerType()), MapType(StringType(), LongType())),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_a_narrower_column_gets_the_type_of_the_files_and_a_wider_one_stays(
    narrow: DataType, wide: DataType
) -> None:
    with pytest.raises(UnlikeError):
        Fitting().fit(narrow, wide)
    fitting = Fitting(widen=True)
    assert (fitting.fit(narrow, wide, "x"), fitting.outgrown) == (wide, [])
    assert fitting.fit(wide, narrow, "x") == wide
    assert [path.rstrip("[]").removesuffix(".value") for path in fitting.outgrown] == ["x"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LongType(), DoubleType()),  # 2^53 + 1 is no double
        (LongType(), DecimalType(19, 0)),
        (DecimalType(12, 0), DecimalType(12, 2)),
        (TimestampType(), TimestampNTZType()),
        (StringType(), IntegerType()),
    ],
)
def test_what_would_lose_values_is_never_wider(one: DataType, other: DataType) -> None:
    for pair in ((one, other), (other, one)):
        with pytest.raises(UnlikeError):
            Fitting(widen=True).fit(*pair)


def test_a_difference_deep_inside_is_named_by_its_path() -> None:
    def table(kind: DataType) -> StructType:
        inner = StructType([StructField("B", ArrayType(kind))])
        return StructType([StructField("a", MapType(StringType(), inner))])

    with pytest.raises(UnlikeError) as unlike:
        Fitting().fit(table(IntegerType()), table(StringType()))
    assert unlike.value.path == "a.value.B[]"


def test_files_that_do_not_tell_times_apart_may_have_either() -> None:
    fitting = Fitting(guessed=True)
    assert fitting.fit(TimestampNTZType(), TimestampType()) == TimestampNTZType()
