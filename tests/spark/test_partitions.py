"""Rows are cut where the directory changes; the names of directories follow Spark's."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from s3commit.spark.partitions import directory, runs

KEYS = st.sampled_from(["a", "b", "", None, "ü/"])


@given(st.lists(st.tuples(KEYS, KEYS)))
def test_runs_keep_every_row_once_in_order_under_its_directory(
    keys: list[tuple[str | None, str | None]],
) -> None:
    batch = pa.record_batch(
        {
            "p": pa.array([key[0] for key in keys], pa.string()),
            "row": pa.array(range(len(keys)), pa.int64()),
            "q": pa.array([key[1] for key in keys], pa.large_string()),
        }
    )
    found = [(where, rows.schema.names, rows["row"].to_pylist()) for where, rows in cut(batch)]
    assert [row for _, _, rows in found for row in rows] == list(range(len(keys)))
    assert all(names == ["row"] and rows for _, names, rows in found)
    for where, _, rows in found:
        for row in rows:
            assert where == names_of(keys[row])
    changes = sum(names_of(one) != names_of(other) for one, other in itertools.pairwise(keys))
    assert len(found) == (changes + 1 if keys else 0)


def names_of(key: tuple[str | None, str | None]) -> str:
    return directory(("p", "q"), [text or "" for text in key])


def cut(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    return list(runs(batch, ("p", "q")))


def test_without_partition_columns_a_batch_is_one_run() -> None:
    batch = pa.record_batch({"v": [1, 2]})
    assert list(runs(batch, ())) == [("", batch)]
    assert list(runs(batch.slice(0, 0), ())) == []


def test_bytes_that_are_no_text_are_replaced() -> None:
    bad = pa.array([b"\xff", b"a"]).view(pa.string())  # as Spark casts them
    batch = pa.record_batch({"p": bad, "v": pa.array([1, 2])})
    assert [where for where, _ in runs(batch, ("p",))] == ["p=\ufffd/", "p=a/"]
