"""Rows are cut where the directory changes; the names of directories follow Spark's."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.partitions import directory, escape, runs, value_texts

DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def test_escapes_are_sparks() -> None:
    assert escape("a/b=c%d e\n:ü") == "a%2Fb%3Dc%25d e%0A%3Aü"


def test_null_and_the_empty_string_share_a_directory() -> None:
    assert directory(("dt",), (None,)) == directory(("dt",), ("",)) == f"dt={DEFAULT}/"


def texts(values: Sequence[object], kind: pa.DataType) -> list[str | None]:
    return value_texts(pa.array(values, kind))


def test_doubles_are_written_as_java_writes_them() -> None:
    numbers = [1.0, 0.1, 1e7, 9999999.0, 1e-3, 1.5e-5, -0.0, math.nan, -math.inf, 1e23]
    assert texts([*numbers, None], pa.float64()) == [
        *["1.0", "0.1", "1.0E7", "9999999.0", "0.001", "1.5E-5", "-0.0", "NaN", "-Infinity"],
        *["1.0E23", None],
    ]
    assert texts([0.1, 3.4e38], pa.float32()) == ["0.1", "3.4E38"]


def test_times_lose_trailing_zeros_and_follow_the_batchs_zone() -> None:
    moment = dt.datetime(2026, 11, 21, 23, 30, 0, 120000, tzinfo=dt.UTC)
    assert texts([moment], pa.timestamp("us", tz="Europe/Berlin")) == ["2026-11-22 00:30:00.12"]
    plain = [dt.datetime(2026, 1, 2), dt.datetime(1, 1, 1, 0, 0, 10)]
    assert texts(plain, pa.timestamp("us")) == ["2026-01-02 00:00:00", "0001-01-01 00:00:10"]
    assert texts([dt.date(2026, 1, 2), None], pa.date32()) == ["2026-01-02", None]


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("GMT+02:00", "2026-11-21 02:00:00"),
        ("-03:30", "2026-11-20 20:30:00"),
        ("UTC", "2026-11-21 00:00:00"),
        ("Z", "2026-11-21 00:00:00"),
    ],
)
def test_javas_names_of_offsets_are_understood(zone: str, text: str) -> None:
    assert texts([dt.datetime(2026, 11, 21)], pa.timestamp("us", tz=zone)) == [text]


def test_a_time_zone_that_is_unknown_is_refused_with_the_setting() -> None:
    with pytest.raises(InvalidInputError, match=r"spark\.sql\.session\.timeZone"):
        texts([dt.datetime(2026, 11, 21)], pa.timestamp("us", tz="PST"))


def test_a_year_of_five_digits_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="outside the years"):
        value_texts(pa.array([2932897], pa.int32()).cast(pa.date32()))


def test_other_types_are_written_as_sparks_cast_writes_them() -> None:
    assert texts([True, False], pa.bool_()) == ["true", "false"]
    assert texts([Decimal("1.50"), Decimal("0.00")], pa.decimal128(10, 2)) == ["1.50", "0.00"]
    assert texts([-3], pa.int8()) == ["-3"]
    assert texts([b"ab"], pa.binary()) == ["ab"]


KEYS = st.sampled_from(["a", "b", "", None, "ü/"])


@given(st.lists(st.tuples(KEYS, st.sampled_from([1, 2, None]))))
def test_runs_keep_every_row_once_in_order_under_its_directory(
    keys: list[tuple[str | None, int | None]],
) -> None:
    batch = pa.record_batch(
        {
            "p": pa.array([key[0] for key in keys], pa.string()),
            "row": pa.array(range(len(keys)), pa.int64()),
            "q": pa.array([key[1] for key in keys], pa.int32()),
        }
    )
    found = [(where, rows.schema.names, rows["row"].to_pylist()) for where, rows in cut(batch)]
    assert [row for _, _, rows in found for row in rows] == list(range(len(keys)))
    assert all(names == ["row"] and rows for _, names, rows in found)
    for where, _, rows in found:
        for row in rows:
            p, q = keys[row]
            assert where == directory(("p", "q"), (p, None if q is None else str(q)))
    changes = sum(one != other for one, other in itertools.pairwise(keys))
    assert len(found) == (changes + 1 if keys else 0)


def cut(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    return list(runs(batch, ("p", "q")))


def test_without_partition_columns_a_batch_is_one_run() -> None:
    batch = pa.record_batch({"v": [1, 2]})
    assert list(runs(batch, ())) == [("", batch)]
    assert list(runs(batch.slice(0, 0), ())) == []


def test_many_columns_of_many_values_do_not_overflow() -> None:
    rows = 3000
    batch = pa.record_batch(
        {f"p{n}": pa.array(range(rows), pa.int64()) for n in range(8)}
        | {"v": pa.array(range(rows))}
    )
    found = list(runs(batch, tuple(f"p{n}" for n in range(8))))
    assert len(found) == rows
    assert found[7][0] == "".join(f"p{n}=7/" for n in range(8))
