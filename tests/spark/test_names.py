"""Columns of any name that Spark's own writer takes, as data and as partitions: none is parsed."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3commit.spark import write
from tests.spark.test_as_spark_writes import local_directories
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ["a.b", "a.b.c", "x.", "a`b", "``", "(id * 1.5)", "a b", "a,b", "größe", 'a"b', "x;y(z)"]
NAMES += ["c0", "c1", "*", "a['b']", "日本", "=", "%2F", "\\", "{x}[y]^", "a/b"]
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"])
ANY = st.text(st.sampled_from("ab.`'\"()[]{}*,:;=%/\\ $#@-é") | CHARACTERS, min_size=1, max_size=8)
FOLDED = st.lists(ANY, min_size=1, max_size=4, unique_by=str.casefold)


def frame_of(session: SparkSession, names: list[str]) -> DataFrame:
    """Two rows; each value says in which column it was."""
    values = [tuple(f"{row}-{column}" for column in range(len(names))) for row in range(2)]
    return session.createDataFrame(values, names).coalesce(1)


def compare(session: SparkSession, place: Place, target: Path, names: list[str], by: str) -> None:
    """What Spark's own writer leaves is what `write` leaves."""
    frame = frame_of(session, names)
    writer = frame.write.partitionBy(by) if by else frame.write
    own, ours = target / "own", target / "ours"
    writer.parquet(str(own))
    write(frame, place.uri, partition_by=[by] if by else None)
    found, wanted = (session.read.parquet(path) for path in (place.download(ours), str(own)))
    assert found.columns == wanted.columns
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, wanted.collect()))
    assert local_directories(ours) == local_directories(own)


def test_names_that_mean_something_to_a_parser_are_names(
    session: SparkSession, place: Place, tmp_path: Path
) -> None:
    compare(session, place, tmp_path, NAMES, "")


@pytest.mark.parametrize("by", ["a.b", "a`b", "(id * 1.5)", "c1"])
def test_a_partition_column_may_have_such_a_name(
    session: SparkSession, place: Place, tmp_path: Path, by: str
) -> None:
    compare(session, place, tmp_path, [*NAMES, "last"], by)


def test_a_column_is_not_taken_for_a_field_of_another(
    session: SparkSession, place: Place, tmp_path: Path
) -> None:
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
