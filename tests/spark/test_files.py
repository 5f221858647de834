"""The files of one task: limits, row groups, memory, and the directories of its rows."""

import io
import itertools
import sys
import threading
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.arrow.files import CLOSING_BYTES, OPENERS, DataFile, Layout, TaskFiles
from s3commit.arrow.parquet import Sink, dictionary_columns, open_writer
from s3commit.arrow.partitions import directory, runs
from s3commit.spark.schema import ROW_METADATA
from s3commit.writer.options import make_options
from s3commit.writer.transfer import MIB
from tests.servers import ran

OPTIONS = make_options("s3://bucket/t/")
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


class MemoryOutput(io.BytesIO):
    """Takes the place of a pending upload."""

    rows: int | None = None
    sealed = False

    def seal(self) -> None:
        self.sealed = True


class Disk:
    """Remembers every file by directory and counter, and how many were open at once."""

    def __init__(self) -> None:
        self.outputs: dict[tuple[str, int], MemoryOutput] = {}
        self.most_open = 0

    def layout(self) -> Layout:
        return Layout(self.open, SCHEMA.with_metadata({ROW_METADATA: b"{}"}), OPTIONS)

    def open(self, directory: str, counter: int) -> Any:
        assert (directory, counter) not in self.outputs
        output = self.outputs[directory, counter] = MemoryOutput()
        unsealed = [output for output in list(self.outputs.values()) if not output.sealed]
        self.most_open = max(self.most_open, len(unsealed))
        return output

    def ids(self, directory: str = "") -> list[list[int]]:
        """The ids of each of the directory's files, by counter."""
        return [
            pq.read_table(io.BytesIO(output.getvalue()))["id"].to_pylist()
            for (where, _), output in sorted(self.outputs.items())
            if where == directory
        ]


def batch(ids: range | list[int], width: int = 10) -> pa.RecordBatch:
    ids = list(ids)
    return pa.record_batch([pa.array(ids), pa.array(["x" * width] * len(ids))], schema=SCHEMA)


def keyed(keys: list[int], ids: list[int]) -> pa.RecordBatch:
    rows = batch(ids)
    return pa.record_batch({"k": pa.array(map(str, keys)), "id": rows["id"], "text": rows["text"]})


def written(disk: Disk, batches: list[pa.RecordBatch]) -> None:
    files = TaskFiles(disk.layout())
    for each in batches:
        for where, rows in runs(each, ("k",)):
            files.append(where, rows)
    files.finish()


def test_a_file_says_its_rows_and_carries_sparks_metadata() -> None:
    disk = Disk()
    files = TaskFiles(disk.layout())
    files.append("", batch(range(10)))
    files.append("", batch(range(10, 15)))
    files.finish()
    output = disk.outputs["", 0]
    assert (output.rows, output.sealed, files.rows) == (15, True, 15)
    found = pq.ParquetFile(io.BytesIO(output.getvalue()))
    assert found.metadata.metadata[ROW_METADATA] == b"{}"
    assert found.metadata.num_row_groups == 1
    assert disk.ids() == [list(range(15))]


def test_max_records_splits_batches_exactly() -> None:
    disk = Disk()
    files = TaskFiles(replace(disk.layout(), options=replace(OPTIONS, max_records_per_file=7)))
    files.append("", batch(range(16)))
    files.append("", batch(range(16, 21)))
    files.finish()
    assert disk.ids() == [list(range(7)), list(range(7, 14)), list(range(14, 21))]


def test_a_large_file_is_encoded_in_row_groups_while_it_is_written() -> None:
    disk = Disk()
    files = TaskFiles(replace(disk.layout(), row_group_bytes=4 * MIB))
    for start in range(0, 100_000, 10_000):
        files.append("", batch(range(start, start + 10_000), 100))
    assert disk.outputs["", 0].getvalue()  # parts go up while the task writes
    files.finish()
    found = pq.ParquetFile(io.BytesIO(disk.outputs["", 0].getvalue())).metadata
    assert found.num_row_groups == 3
    assert disk.ids() == [list(range(100_000))]


NAN = float("nan")


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    ("groups", "stated"),
    [
        ([[1.0, 5.0], [-0.0, 2.0]], [True]),
        ([[1.0, NAN], [0.0, 2.0]], [False]),
        ([[NAN, None], [NAN, NAN]], [False]),
        ([[1.0, 2.0], [NAN, 3.0], [4.0, 5.0]], [True, False]),  # a file each
    ],
    ids=str,
)
def test_a_column_with_nan_has_no_statistics(
    kind: pa.DataType, groups: list[list[Any]], stated: list[bool]
) -> None:
    """To Spark it is the greatest number, and Arrow leaves it out of them."""
    schema = pa.schema({"id": pa.int64(), "n": kind, "s": pa.struct({"n": kind})})
    disk = Disk()
    files = TaskFiles(replace(disk.layout(), schema=schema, row_group_bytes=1))  # each row is one
    for group in groups:
        columns = [range(len(group)), group, [{"n": one} for one in group]]
        arrays = map(pa.array, columns, schema.types)
        files.append("", pa.record_batch(list(arrays), schema=schema))
    files.finish()
    found = [pq.ParquetFile(io.BytesIO(one.getvalue())) for one in disk.outputs.values()]
    read = [row["n"] for file in found for row in file.read().to_pylist()]
    assert list(map(str, read)) == [str(one) for group in groups for one in group]
    for file, of_n in zip(found, stated, strict=True):
        for at, wanted in enumerate((True, of_n, False)):
            groups_of = map(file.metadata.row_group, range(file.num_row_groups))
            statistics = [group.column(at).statistics for group in groups_of]
            assert {bool(one and one.has_min_max) for one in statistics} == {wanted}


def test_nan_ends_a_file_once_a_column_at_most() -> None:
    schema = pa.schema({"a": pa.float64(), "b": pa.float64()})
    disk = Disk()
    files = TaskFiles(replace(disk.layout(), schema=schema, row_group_bytes=1))
    for n in range(20):
        row = [[1.0, NAN], [NAN, 1.0]][n % 2]
        files.append("", pa.record_batch([pa.array([one]) for one in row], schema=schema))
    files.finish()
    assert len(disk.outputs) == 2


class Celsius(pa.ExtensionType):  # type: ignore[misc]
    """Arrow's statistics of it are those of its floats."""

    def __init__(self) -> None:
        super().__init__(pa.float64(), "celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


NUMBERS = pa.array([1.0, NAN])
WITHIN = pa.array([{"b": 1.0}, {"b": NAN}])


@pytest.mark.parametrize(
    "columns",
    [
        {"n": pa.ExtensionArray.from_storage(Celsius(), NUMBERS)},
        {"a.b": pa.array([1.0, 2.0]), "a": WITHIN},
        {"a.b": pa.array([1, 2]), "a": WITHIN},
        {"a.b": NUMBERS, "a": pa.array([{"b": 1}, {"b": 2}])},
        {"n": pa.array([[1.0, NAN], []])},
        {"n": pa.array([{"k": 1.0}, {"k": NAN}]).cast(pa.struct({"k": pa.float32()}))},
        {"n": pa.array([[("k", NAN)], []], pa.map_(pa.string(), pa.float64()))},
    ],
    ids=["extension", "float and field", "integer and field", "field", "list", "struct", "map"],
)
def test_no_float_within_another_type_has_statistics(columns: dict[str, pa.Array]) -> None:
    rows = pa.record_batch(columns)
    disk = Disk()
    files = TaskFiles(replace(disk.layout(), schema=rows.schema))
    files.append("", rows)
    files.finish()
    found = pq.ParquetFile(io.BytesIO(disk.outputs["", 0].getvalue())).metadata
    leaves = [found.row_group(0).column(at) for at in range(found.num_columns)]
    floats = [one for one in leaves if one.physical_type in {"FLOAT", "DOUBLE"}]
    assert floats
    assert not any(one.statistics and one.statistics.has_min_max for one in floats)


def test_sorted_rows_have_one_file_a_directory_and_few_open_at_once() -> None:
    disk = Disk()
    batches = [
        keyed([n // 40 for n in range(start, start + 100)], list(range(start, start + 100)))
        for start in range(0, 2000, 100)
    ]
    written(disk, batches)
    assert disk.most_open <= OPENERS
    assert [disk.ids(f"k={k}/") for k in range(50)] == [
        [list(range(40 * k, 40 * k + 40))] for k in range(50)
    ]


def test_a_directory_that_comes_back_gets_another_file() -> None:
    """Sorted rows do so seldom: two instants may share a name when the clocks go back."""
    disk = Disk()
    keys = [1, 1, 2, 1, 2]
    written(disk, [keyed([key], [row]) for row, key in enumerate(keys)])
    assert disk.ids("k=1/") == [[0, 1], [3]]
    assert disk.ids("k=2/") == [[2], [4]]


def test_files_that_are_being_closed_are_bounded_by_their_bytes() -> None:
    disk, most, handed, rows = Disk(), 0, 0, batch(range(40_000), 200)

    def slow(directory: str, counter: int) -> Any:
        nonlocal most
        sealed = sum(output.sealed for output in list(disk.outputs.values()))
        most = max(most, (handed - sealed) * rows.nbytes)
        time.sleep(0.05)
        return disk.open(directory, counter)

    files = TaskFiles(replace(disk.layout(), open=slow))
    for k in range(12):
        files.append(f"k={k}/", rows)
        handed = k  # this one is still open
    files.finish()
    assert len(disk.outputs) == 12
    assert CLOSING_BYTES // 2 < most <= CLOSING_BYTES


def test_an_error_of_a_file_that_is_closed_in_the_background_is_raised() -> None:
    def refused(directory: str, _: int) -> Any:
        raise OSError(f"no upload for {directory}")

    files = TaskFiles(replace(Disk().layout(), open=refused))
    files.append("k=1/", batch(range(10)))
    with pytest.raises(OSError, match="no upload for k=1/"):
        files.finish()
    files.discard()


def test_discarded_files_send_nothing_more_not_even_a_footer() -> None:
    disk = Disk()
    files = TaskFiles(replace(disk.layout(), row_group_bytes=MIB))
    files.append("", batch(range(10_000), 200))
    output = disk.outputs["", 0]
    before = output.getvalue()
    assert before
    files.append("", batch(range(10)))
    files.discard()
    del files
    assert output.getvalue() == before
    assert not output.sealed


def test_a_file_closed_while_discarded_is_unsealed(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, started, go, discard = Disk(), threading.Event(), threading.Event(), DataFile.discard

    def discard_and_go(file: DataFile) -> None:
        discard(file)
        go.set()

    def slow(directory: str, counter: int) -> Any:
        started.set()
        assert go.wait(10)
        return disk.open(directory, counter)

    files = TaskFiles(replace(disk.layout(), open=slow))
    files.append("a/", batch(range(10)))
    files.append("b/", batch(range(10)))
    assert started.wait(10)
    monkeypatch.setattr(DataFile, "discard", discard_and_go)
    files.discard()
    assert not disk.outputs["a/", 0].sealed
    assert disk.outputs["a/", 0].getvalue() == b""


def test_columns_of_unlike_values_get_no_dictionary() -> None:
    rows = 5000
    table = pa.table(
        {
            "id": pa.array(range(rows)),
            "few": pa.array([n % 10 for n in range(rows)]),
            "some": pa.array([f"x{n % 1500}" for n in range(rows)]),
            "unlike": pa.array([f"x{n}" for n in range(rows)]),
            "nulls": pa.array([n if n % 3 else None for n in range(rows)]),
            "list": pa.array([[1, 2]] * rows),
            "map": pa.array([[("a", 1)]] * rows, pa.map_(pa.string(), pa.int32())),
            "a.b": pa.array([{"c": [{"d": 1}]}] * rows),
        }
    )
    assert set(dictionary_columns(table)) == {
        *("few", "some", "list.list.element", "map.key_value.key", "map.key_value.value"),
        "a.b.c.list.element.d",
    }
    output: Any = MemoryOutput()
    with open_writer(Sink(output), table.schema, "none", table, ()) as writer:
        writer.write_table(table)
    found = pq.ParquetFile(io.BytesIO(output.getvalue())).metadata.row_group(0)
    columns = [found.column(number) for number in range(found.num_columns)]
    with_dictionary = {
        column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings
    }
    assert with_dictionary == set(dictionary_columns(table))
    assert set(dictionary_columns(table.slice(0, 100))) >= {"id", "unlike"}  # too few to tell


# Rows are cut where the directory changes


KEYS = st.sampled_from(["a", "b", "", None, "ü/"])


@given(st.lists(st.tuples(KEYS, KEYS)))
def test_runs_keep_rows_in_their_directories(keys: list[tuple[str | None, str | None]]) -> None:
    batch = pa.record_batch(
        {
            "p": pa.array([key[0] for key in keys], pa.string()),
            "row": pa.array(range(len(keys)), pa.int64()),
            "q": pa.array([key[1] for key in keys], pa.large_string()),
        }
    )
    cut = runs(batch, ("p", "q"))
    found = [(where, rows.schema.names, rows["row"].to_pylist()) for where, rows in cut]
    assert [row for _, _, rows in found for row in rows] == list(range(len(keys)))
    assert all(names == ["row"] and rows for _, names, rows in found)
    for where, _, rows in found:
        for row in rows:
            assert where == names_of(keys[row])
    changes = sum(names_of(one) != names_of(other) for one, other in itertools.pairwise(keys))
    assert len(found) == (changes + 1 if keys else 0)


def names_of(key: tuple[str | None, str | None]) -> str:
    return directory(("p", "q"), [text or "" for text in key])


def test_without_partition_columns_a_batch_is_one_run() -> None:
    batch = pa.record_batch({"v": [1, 2]})
    assert list(runs(batch, ())) == [("", batch)]
    assert list(runs(batch.slice(0, 0), ())) == []


def test_bytes_that_are_no_text_are_replaced() -> None:
    bad = pa.array([b"\xff", b"a"]).view(pa.string())  # as Spark casts them
    batch = pa.record_batch({"p": bad, "v": pa.array([1, 2])})
    assert [where for where, _ in runs(batch, ("p",))] == ["p=\ufffd/", "p=a/"]


@pytest.mark.parametrize(
    ("partitions", "width"),
    [
        *(("1", "256"), ("200", "256"), ("1", "200000")),
        pytest.param("1", "20000", marks=pytest.mark.long),
    ],
)
def test_a_process_takes_no_more_memory_than_is_said(partitions: str, width: str) -> None:
    added = int(ran(sys.executable, "-m", "tests.spark.wide_rows", partitions, width).stdout)
    assert added <= 256 * MIB, f"{added >> 20} MIB above idle"  # docs/guide/platforms.md
    assert added >= 64 * MIB  # or nothing was measured


def test_rows_that_wait_are_counted_also_in_lists_without_inner_offsets() -> None:
    """Arrow's Java library leaves them out in Spark 4.1; `nbytes` crashes the worker on that."""
    nothing = pa.py_buffer(b"")
    kind = pa.list_(pa.int64())
    inner = pa.Array.from_buffers(kind, 0, [None, nothing], children=[pa.array([], pa.int64())])
    offsets = pa.py_buffer(bytes(3 * 4))
    lists = pa.Array.from_buffers(pa.list_(kind), 2, [None, offsets], children=[inner])
    lists_alone = pa.record_batch([lists], names=["lists"])
    part = batch(range(10_000)).slice(100, 100)
    for rows, data in ((lists_alone, 3 * 4), (part, part.nbytes)):
        file = DataFile(Disk().layout(), "", 0)
        file.append(rows, frozenset())
        assert data <= file.waiting <= data + 500
