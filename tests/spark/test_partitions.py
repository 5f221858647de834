"""Rows are cut where the directory changes; the names of directories follow Spark's."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.partitions import directory, runs, value_texts


def texts(values: Sequence[object], kind: pa.DataType) -> list[str | None]:
    return value_texts(pa.array(values, kind))


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
