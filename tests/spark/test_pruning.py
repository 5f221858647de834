"""What a read does not open: files of other directories, row groups, and columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import StructType

from s3commit.spark import pruning, ranges, reader
from s3commit.spark.options import parse_options
from s3commit.spark.pruning import Condition, Values, conditions_of, may_hold
from tests.spark.conftest import VERSION
from tests.spark.test_write import load, save
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
needs_pushdown = pytest.mark.skipif(VERSION < (4, 1), reason="Spark pushes no filter down")


def table(spark: SparkSession) -> DataFrame:
    return spark.range(0, 12, 1, 1).selectExpr(
        "id", "date_add(date'2026-11-20', cast(id % 3 as int)) dt", "if(id > 5, null, 'x') k"
    )


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    """As a session may have it for the sake of other sources."""
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


def pruned(spark: SparkSession, place: Place) -> DataFrame:
    return load(spark, place, pushFilters="true")


# By Spark. A file that is no file ends the read if it is opened.


@needs_pushdown
@pytest.mark.usefixtures("pushdown")
def test_files_of_directories_that_a_filter_rules_out_are_not_opened(
    spark: SparkSession, place: Place
) -> None:
    save(table(spark), place, partitionBy="dt")
    place.put("dt=2026-12-31/part-0.parquet", b"no parquet, and nobody is to open it")
    for condition, count in {
        "dt = date'2026-11-20'": 4,
        "dt < date'2026-11-22' and dt >= date'2026-11-21'": 4,
        "dt in (date'2026-11-20', date'2026-11-21')": 8,
        "dt is not null and dt < date'2026-11-25'": 12,
        "dt = date'2026-11-20' and (id = 0 or id = 3)": 2,
    }.items():
        assert (condition, pruned(spark, place).where(condition).count()) == (condition, count)
    for found in (pruned(spark, place), load(spark, place).where("dt = date'2026-11-20'")):
        with pytest.raises(Exception, match="is no parquet file"):
            found.count()


CONDITIONS = (
    *("k is null", "k = 'x'", "k <=> null", "k like 'x%'"),
    *("id > 8", "id = 7 or id = 3", "dt = date'2026-11-20' and id < 6"),
)


@needs_pushdown
@pytest.mark.usefixtures("pushdown")
def test_pushed_filters_give_the_same_rows(spark: SparkSession, place: Place) -> None:
    save(table(spark), place, partitionBy="k")
    for condition in CONDITIONS:
        wanted = sorted(map(repr, table(spark).where(condition).collect()))
        found = pruned(spark, place).where(condition).select("id", "dt", "k")
        assert (condition, sorted(map(repr, found.collect()))) == (condition, wanted)


@pytest.mark.usefixtures("pushdown")
def test_without_the_option_a_dataframe_may_be_filtered_again_and_again(
    spark: SparkSession, place: Place
) -> None:
    """Spark would give the rows of the filter before: see `PruningReader`."""
    save(table(spark), place, partitionBy="k")
    found = load(spark, place).select("id", "dt", "k")
    for condition in (*CONDITIONS, "true"):
        wanted = sorted(map(repr, table(spark).where(condition).collect()))
        assert sorted(map(repr, found.where(condition).collect())) == wanted
    other = found.where("k is null").join(found.where("id = 0").select("dt"), "dt")
    assert other.count() == 2


@needs_pushdown
def test_the_option_needs_the_sessions_word(spark: SparkSession, place: Place) -> None:
    save(table(spark), place)
    with pytest.raises(Exception, match=PUSHDOWN):
        pruned(spark, place).count()


# Without Spark.


def read_by(place: Place, schema: StructType, *conditions: Condition) -> list[dict[str, Any]]:
    """The rows that a reader gives to Spark, which filters them."""
    planned = reader.CommittedReader(parse_options({"path": place.uri}), schema.toNullable())
    planned.conditions = list(conditions)
    batches = [batch for split in planned.partitions() for batch in planned.read(split)]
    return [row for batch in batches for row in batch.to_pylist()]


def test_row_groups_that_hold_no_such_value_are_not_read(spark: SparkSession, place: Place) -> None:
    frame = spark.range(0, 150_000, 1, 1).selectExpr("id", "sha2(cast(id as string), 256) s")
    save(frame, place, memoryBudget="16MB", compression="none")
    all_rows = len(read_by(place, frame.schema))
    some = read_by(place, frame.schema, Condition("id", "GreaterThan", 149_990))
    assert 9 <= len(some) < all_rows / 2
    assert read_by(place, frame.schema, Condition("id", "IsNull")) == []
    assert read_by(place, frame.schema, Condition("id", "EqualTo", -1)) == []
    assert len(read_by(place, frame.schema, Condition("s", "EqualTo", "0"))) <= all_rows


def test_columns_that_the_schema_does_not_name_are_not_read(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 50_000, 1, 1).selectExpr("id", "sha2(cast(id as string), 256) s", "1 p")
    save(frame, place, compression="none", partitionBy="p")
    read = ranges.RangeFile.read
    sizes: list[int] = []

    def counted(self: ranges.RangeFile, size: int | None = -1) -> bytes:
        data = read(self, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(ranges.RangeFile, "read", counted)

    def bytes_for(*names: str) -> int:
        sizes.clear()
        rows = read_by(place, StructType([frame.schema[name] for name in names]))
        assert len(rows) == 50_000
        assert set(rows[0]) == set(names)
        return sum(sizes)

    assert bytes_for("p") <= bytes_for("id", "p") < bytes_for("id", "s", "p") / 3


def condition(name: str, value: Any = None, column: str = "x") -> Any:
    said = {} if name in {"IsNull", "IsNotNull"} else {"value": value}
    return type(name, (SimpleNamespace,), {})(attribute=(column,), **said)


SCHEMA = (
    StructType()
    .add("X", "integer")
    .add("s", "string")
    .add("d", "double")
    .add("t", "timestamp")
    .add("b", "boolean")
    .add("n", StructType().add("x", "integer"))
)


def test_filters_that_are_not_understood_are_left_to_spark() -> None:
    def names(*filters: Any) -> list[str]:
        return [one.name for one in conditions_of(filters, SCHEMA)]

    assert names(condition("EqualTo", 1), condition("StringContains", "x", "s")) == ["EqualTo"]
    nested = type("EqualTo", (SimpleNamespace,), {})(attribute=("n", "x"), value=1)
    assert names(type("Not", (SimpleNamespace,), {})(child=nested), nested) == []
    for column in ("d", "t", "b", "n", "nobody's"):
        assert names(condition("LessThan", 1, column)) == []


HOLDS = Values(3, 7, nulls=False)
WITH_NULLS = Values(3, 7, nulls=True)


@pytest.mark.parametrize(
    ("name", "value", "values", "may"),
    [
        ("EqualTo", 3, HOLDS, True),
        ("EqualTo", 8, HOLDS, False),
        ("EqualTo", None, WITH_NULLS, False),
        ("EqualTo", Decimal("3.5"), HOLDS, True),
        ("EqualNullSafe", None, WITH_NULLS, True),
        ("EqualNullSafe", None, HOLDS, False),
        ("EqualNullSafe", 2, WITH_NULLS, False),
        ("GreaterThan", 7, HOLDS, False),
        ("GreaterThan", 6, HOLDS, True),
        ("GreaterThanOrEqual", 7, HOLDS, True),
        ("GreaterThanOrEqual", 8, HOLDS, False),
        ("LessThan", 3, HOLDS, False),
        ("LessThan", 4, HOLDS, True),
        ("LessThanOrEqual", 3, HOLDS, True),
        ("LessThanOrEqual", 2, HOLDS, False),
        ("In", (1, 5), HOLDS, True),
        ("In", (1, 2, None), WITH_NULLS, False),
        ("IsNull", None, HOLDS, False),
        ("IsNull", None, WITH_NULLS, True),
        ("IsNotNull", None, HOLDS, True),
        ("IsNotNull", None, Values.only(None), False),
        ("EqualTo", 1, Values.only(None), False),
        ("IsNull", None, Values.only(None), True),
        ("EqualTo", "a text", HOLDS, True),
        ("LessThan", dt.date(2026, 1, 1), HOLDS, True),
        ("StringStartsWith", "ab", Values("a", "b", nulls=False), True),
        ("StringStartsWith", "ab", Values("abc", "abd", nulls=False), True),
        ("StringStartsWith", "ab", Values("ac", "b", nulls=False), False),
        ("StringStartsWith", "b", Values("a", "ab", nulls=False), False),
        ("StringStartsWith", "a", HOLDS, True),
    ],
)
def test_what_a_condition_rules_out(name: str, value: Any, values: Values, may: bool) -> None:
    assert may_hold([Condition("x", name, value)], {"x": values}) is may
    assert may_hold([Condition("another", name, value)], {"x": values})


def test_every_condition_that_is_understood_is_in_the_table() -> None:
    rows = test_what_a_condition_rules_out.pytestmark[0].args[1]
    assert {row[0] for row in rows} == set(pruning._TESTS)
