"""The files of one task: limits, the memory budget, and one open file for sorted input."""

from __future__ import annotations

import io
import random
import threading
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3commit.core.model.job import Destination
from s3commit.spark.closing import WAITING
from s3commit.spark.datafile import DataFile, Maker
from s3commit.spark.files import CROWD, FileLimits, TaskFiles
from s3commit.spark.formats import FORMATS
from s3commit.spark.formats.encoders import Encoder, open_encoder
from s3commit.spark.formats.parquet import dictionary_columns
from s3commit.spark.formats.sink import Sink
from s3commit.spark.options import MB, Options
from s3commit.spark.partitions import DEFAULT_PARTITION
from s3commit.spark.router import Router
from s3commit.spark.schema import ROW_METADATA
from s3commit.writer.spool import Spool

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
METADATA = {ROW_METADATA: b"{}"}


class MemoryOutput(io.BytesIO):
    """Takes the place of a pending upload."""

    rows: int | None = None
    sealed = False

    def __init__(self) -> None:
        super().__init__()
        self.nulls: Mapping[str, int] = {}

    def seal(self) -> None:
        self.sealed = True


class Disk:
    """Remembers every file by directory and counter, and how many were open at once."""

    def __init__(self, compression: str = "snappy") -> None:
        self.outputs: dict[tuple[str, int], MemoryOutput] = {}
        self.compression = compression
        self.most_open = 0
        self.spool = Spool()

    def maker(self) -> Maker:
        return Maker(self.open, self.encoder, self.spool)

    def open(self, directory: str, counter: int) -> MemoryOutput:
        assert (directory, counter) not in self.outputs
        output = self.outputs[directory, counter] = MemoryOutput()
        unsealed = [output for output in self.outputs.values() if not output.sealed]
        self.most_open = max(self.most_open, len(unsealed))
        return output

    def encoder(self, sink: Sink, crowded: bool) -> Encoder:
        schema = SCHEMA.with_metadata(METADATA)
        return open_encoder("parquet", sink, schema, self.compression, crowded=crowded)

    def ids(self, directory: str = "") -> list[list[int]]:
        """The ids of each of the directory's files, by counter."""
        return [
            pq.read_table(io.BytesIO(output.getvalue()))["id"].to_pylist()
            for (where, _), output in sorted(self.outputs.items())
            if where == directory
        ]


def limits(
    *,
    buffer_bytes: int = 128 * MB,
    max_records: int | None = None,
    target_bytes: int | None = None,
) -> FileLimits:
    return FileLimits(64 * MB, MB, buffer_bytes, max_records, target_bytes)


def batch(ids: range | list[int], width: int = 10) -> pa.RecordBatch:
    ids = list(ids)
    return pa.record_batch([pa.array(ids), pa.array(["x" * width] * len(ids))], schema=SCHEMA)


def keyed(keys: list[int], ids: list[int]) -> pa.RecordBatch:
    rows = batch(ids)
    return pa.record_batch({"k": pa.array(keys), "id": rows["id"], "text": rows["text"]})


def routed(disk: Disk, batches: list[pa.RecordBatch], stage: int = MB) -> TaskFiles:
    files = TaskFiles(disk.maker(), limits())
    router = Router(files, ("k",), stage)
    for each in batches:
        router.add(each)
    router.drain()
    files.close_all()
    return files


def test_a_file_says_its_rows_and_carries_sparks_metadata() -> None:
    disk = Disk()
    files = TaskFiles(disk.maker(), limits())
    files.append("", batch(range(10)))
    files.append("", batch(range(10, 15)))
    files.close_all()
    output = disk.outputs["", 0]
    assert (output.rows, output.sealed, files.rows) == (15, True, 15)
    found = pq.ParquetFile(io.BytesIO(output.getvalue()))
    assert found.metadata.metadata[ROW_METADATA] == b"{}"
    assert found.metadata.num_row_groups == 1
    assert disk.ids() == [list(range(15))]


@pytest.mark.parametrize("compression", FORMATS["parquet"].codecs)
def test_each_codec_is_the_one_in_the_file(compression: str) -> None:
    disk = Disk(compression)
    files = TaskFiles(disk.maker(), limits())
    files.append("", batch(range(1000)))
    files.close_all()
    found = pq.ParquetFile(io.BytesIO(disk.outputs["", 0].getvalue())).metadata
    expected = "UNCOMPRESSED" if compression == "none" else compression.upper()
    assert found.row_group(0).column(1).compression == expected


def test_no_rows_make_no_file() -> None:
    disk = Disk()
    files = TaskFiles(disk.maker(), limits())
    files.append("", batch([]))
    files.close_all()
    assert not disk.outputs


def test_max_records_splits_batches_exactly() -> None:
    disk = Disk()
    files = TaskFiles(disk.maker(), limits(max_records=7))
    files.append("", batch(range(16)))
    files.append("", batch(range(16, 21)))
    files.close_all()
    assert disk.ids() == [list(range(7)), list(range(7, 14)), list(range(14, 21))]


def test_target_bytes_is_met_by_encoded_bytes() -> None:
    disk = Disk("none")
    files = TaskFiles(disk.maker(), limits(target_bytes=2 * MB))
    random.seed(7)
    for start in range(0, 400_000, 10_000):
        rows = batch(range(start, start + 10_000))
        noise = pa.array([random.randbytes(8).hex() for _ in range(10_000)])
        files.append("", pa.record_batch([rows["id"], noise], schema=SCHEMA))
    files.close_all()
    sizes = [len(output.getvalue()) for output in disk.outputs.values()]
    assert len(sizes) > 3
    assert all(1.7 * MB <= size <= 2.6 * MB for size in sizes[:-1]), sizes
    assert [id for ids in disk.ids() for id in ids] == list(range(400_000))


def test_rows_of_hundreds_of_directories_stay_within_the_budget_and_in_order() -> None:
    disk = Disk()
    budget = 8 * MB
    files = TaskFiles(disk.maker(), limits(buffer_bytes=budget))
    size = batch(range(100), 200).nbytes
    for start in range(0, 200_000, 100):
        files.append(f"k={start // 100 % 300}/", batch(range(start, start + 100), 200))
    assert not disk.outputs  # what does not fit is on disk, and no encoder is open
    assert disk.spool.extents_bytes > 0
    files.close_all()
    assert budget - size <= files.peak <= budget + size
    assert disk.most_open <= WAITING
    groups = {
        pq.ParquetFile(io.BytesIO(output.getvalue())).metadata.num_row_groups
        for output in disk.outputs.values()
    }
    assert (len(disk.outputs), groups) == (300, {1})
    for k in range(300):
        blocks = range(100 * k, 200_000, 30_000)
        assert disk.ids(f"k={k}/") == [[id for at in blocks for id in range(at, at + 100)]]


def test_few_large_directories_are_written_as_row_groups_and_never_spilled() -> None:
    disk = Disk()
    budget = 40 * MB
    files = TaskFiles(disk.maker(), limits(buffer_bytes=budget))
    for start in range(0, 1_000_000, 10_000):
        files.append(f"k={start // 10_000 % 2}/", batch(range(start, start + 10_000), 100))
    assert len(disk.outputs) == 2  # parts can go up while the task writes
    files.close_all()
    assert disk.spool.extents_bytes == 0
    assert files.peak <= budget + 2 * MB
    assert sum(len(ids) for k in range(2) for ids in disk.ids(f"k={k}/")) == 1_000_000


def test_a_directory_that_grows_on_disk_is_written_before_the_end() -> None:
    disk = Disk()
    files = TaskFiles(disk.maker(), FileLimits(4 * MB, MB, 8 * MB, None, None))
    for start in range(0, 600_000, 1000):
        files.append(f"k={start // 1000 % 20}/", batch(range(start, start + 1000), 200))
    assert len(disk.outputs) == 20 > CROWD
    files.close_all()
    assert files.peak <= 9 * MB
    for output in disk.outputs.values():
        assert pq.ParquetFile(io.BytesIO(output.getvalue())).metadata.num_row_groups == 2
    assert disk.ids("k=3/") == [
        [id for at in range(3000, 600_000, 20_000) for id in range(at, at + 1000)]
    ]


def test_an_error_of_a_file_that_is_closed_in_the_background_is_raised() -> None:
    disk = Disk()

    def refused(directory: str, counter: int) -> MemoryOutput:
        raise OSError(f"no upload for {directory}")

    files = TaskFiles(Maker(refused, disk.encoder, disk.spool), limits())
    files.append("k=1/", batch(range(10)))
    with pytest.raises(OSError, match="no upload for k=1/"):
        files.close_all()
    files.discard()


def test_sorted_input_is_closed_as_it_comes() -> None:
    disk = Disk()
    batches = [
        keyed([n // 40 for n in range(start, start + 100)], list(range(start, start + 100)))
        for start in range(0, 2000, 100)
    ]
    routed(disk, batches, stage=4000)
    assert disk.most_open <= WAITING
    assert disk.spool.extents_bytes == 0
    assert len(disk.outputs) == 50
    assert [disk.ids(f"k={k}/") for k in range(50)] == [
        [list(range(40 * k, 40 * k + 40))] for k in range(50)
    ]


def test_unsorted_input_keeps_one_file_a_directory() -> None:
    disk = Disk()
    batches = [
        keyed([n % 7 for n in range(start, start + 100)], list(range(start, start + 100)))
        for start in range(0, 2000, 100)
    ]
    routed(disk, batches, stage=4000)
    assert len(disk.outputs) == 7
    assert [disk.ids(f"k={k}/") for k in range(7)] == [[list(range(k, 2000, 7))] for k in range(7)]


def test_a_directory_that_comes_back_gets_a_second_file_and_no_more() -> None:
    disk = Disk()
    keys = [1, 1, 2, 2, 3, 1, 2, 3, 1, 2, 3]
    routed(disk, [keyed([key], [row]) for row, key in enumerate(keys)], stage=1)
    assert disk.ids("k=1/") == [[0, 1], [5, 8]]
    assert disk.ids("k=2/") == [[2, 3], [6, 9]]
    assert disk.ids("k=3/") == [[4, 7, 10]]


def test_discarded_files_send_nothing_more_not_even_a_footer() -> None:
    disk = Disk()
    files = TaskFiles(disk.maker(), FileLimits(MB, MB, 8 * MB, None, None))
    files.append("", batch(range(10_000), 200))
    output = disk.outputs["", 0]
    before = output.getvalue()
    assert before
    files.append("", batch(range(10)))
    files.discard()
    del files
    assert output.getvalue() == before
    assert not output.sealed


def test_a_file_that_is_being_closed_when_all_is_discarded_is_not_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk, started, go, cut = Disk(), threading.Event(), threading.Event(), DataFile.cut

    def cut_and_go(file: DataFile) -> None:
        cut(file)
        go.set()

    def slow(directory: str, counter: int) -> MemoryOutput:
        started.set()
        assert go.wait(10)
        return disk.open(directory, counter)

    files = TaskFiles(Maker(slow, disk.encoder, disk.spool), limits())
    files.append("", batch(range(10)))
    files.close("")
    assert started.wait(10)
    monkeypatch.setattr(DataFile, "cut", cut_and_go)
    files.discard()
    assert not disk.outputs["", 0].sealed
    assert disk.outputs["", 0].getvalue() == b""


def test_nulls_are_counted_for_each_file_and_partition_columns_have_their_directorys() -> None:
    disk = Disk()
    maker = replace(disk.maker(), null_columns=("text", "k", "id"))
    files = TaskFiles(maker, limits(max_records=3))
    for directory in ("k=1/", f"k={DEFAULT_PARTITION}/", f"k=x/j={DEFAULT_PARTITION}/"):
        texts = pa.array(["a", None, None, None, "b"])
        rows = pa.record_batch([pa.array(range(5)), texts], schema=SCHEMA)
        files.append(directory, rows)
    files.close_all()
    found = {place: output.nulls for place, output in disk.outputs.items()}
    assert found["k=1/", 0] == {"text": 2, "k": 0, "id": 0}
    assert found["k=1/", 1] == {"text": 1, "k": 0, "id": 0}
    assert found[f"k={DEFAULT_PARTITION}/", 1] == {"text": 1, "k": 2, "id": 0}
    assert found[f"k=x/j={DEFAULT_PARTITION}/", 0] == {"text": 2, "k": 0, "id": 0}


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
    output = MemoryOutput()
    encoder = open_encoder("parquet", Sink(output), table.schema, "none", crowded=False)
    encoder.write(table)
    encoder.close()
    found = pq.ParquetFile(io.BytesIO(output.getvalue())).metadata.row_group(0)
    columns = [found.column(number) for number in range(found.num_columns)]
    with_dictionary = {
        column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings
    }
    assert with_dictionary == set(dictionary_columns(table))
    assert set(dictionary_columns(table.slice(0, 100))) >= {"id", "unlike"}  # too few to tell


def test_memory_is_shared_out_within_what_there_is() -> None:
    for memory in (16 * MB, 256 * MB, 4096 * MB):
        shared = FileLimits.of(Options(Destination("bucket", "p/")), memory)
        assert shared.buffer_bytes + 2 * shared.stage_bytes <= memory
        assert shared.row_group_bytes <= shared.buffer_bytes
