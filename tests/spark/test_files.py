"""The files of one task: limits, the memory budget, and one open file for sorted input."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3commit.core.model import Destination
from s3commit.spark.files import Limits, Router, TaskFiles
from s3commit.spark.options import COMPRESSIONS, MB, Options
from s3commit.spark.parquet import ParquetFile
from s3commit.spark.schema import ROW_METADATA

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
METADATA = {ROW_METADATA: b"{}"}


class MemoryOutput(io.BytesIO):
    """Takes the place of a pending upload."""

    rows: int | None = None
    sealed = False

    def seal(self) -> None:
        self.sealed = True


class Disk:
    """Remembers every file by directory and counter, and how many were open at once."""

    def __init__(self, compression: str = "snappy") -> None:
        self.outputs: dict[tuple[str, int], MemoryOutput] = {}
        self.compression = compression
        self.most_open = 0

    def open(self, directory: str, counter: int) -> ParquetFile:
        assert (directory, counter) not in self.outputs
        self.outputs[directory, counter] = MemoryOutput()
        unsealed = [output for output in self.outputs.values() if not output.sealed]
        self.most_open = max(self.most_open, len(unsealed))
        schema = SCHEMA.with_metadata(METADATA)
        return ParquetFile(self.outputs[directory, counter], schema, self.compression)

    def ids(self, directory: str = "") -> list[list[int]]:
        """The ids of each of the directory's files, in the order in which they were opened."""
        return [
            pq.read_table(io.BytesIO(output.getvalue()))["id"].to_pylist()
            for (where, _), output in self.outputs.items()
            if where == directory
        ]


def limits(
    *,
    buffer_bytes: int = 128 * MB,
    max_records: int | None = None,
    target_bytes: int | None = None,
) -> Limits:
    return Limits(64 * MB, MB, buffer_bytes, max_records, target_bytes)


def batch(ids: range | list[int], width: int = 10) -> pa.RecordBatch:
    ids = list(ids)
    return pa.record_batch([pa.array(ids), pa.array(["x" * width] * len(ids))], schema=SCHEMA)


def keyed(keys: list[int], ids: list[int]) -> pa.RecordBatch:
    rows = batch(ids)
    return pa.record_batch({"k": pa.array(keys), "id": rows["id"], "text": rows["text"]})


def routed(disk: Disk, batches: list[pa.RecordBatch], stage: int = MB) -> TaskFiles:
    files = TaskFiles(disk.open, limits())
    router = Router(files, ("k",), stage)
    for each in batches:
        router.add(each)
    router.drain()
    files.close_all()
    return files


def test_a_file_says_its_rows_and_carries_sparks_metadata() -> None:
    disk = Disk()
    files = TaskFiles(disk.open, limits())
    files.append("", batch(range(10)))
    files.append("", batch(range(10, 15)))
    files.close_all()
    output = disk.outputs["", 0]
    assert (output.rows, output.sealed, files.rows) == (15, True, 15)
    found = pq.ParquetFile(io.BytesIO(output.getvalue()))
    assert found.metadata.metadata[ROW_METADATA] == b"{}"
    assert found.metadata.num_row_groups == 1
    assert disk.ids() == [list(range(15))]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_each_codec_is_the_one_in_the_file(compression: str) -> None:
    disk = Disk(compression)
    files = TaskFiles(disk.open, limits())
    files.append("", batch(range(1000)))
    files.close_all()
    found = pq.ParquetFile(io.BytesIO(disk.outputs["", 0].getvalue())).metadata
    expected = "UNCOMPRESSED" if compression == "none" else compression.upper()
    assert found.row_group(0).column(1).compression == expected


def test_no_rows_make_no_file() -> None:
    disk = Disk()
    files = TaskFiles(disk.open, limits())
    files.append("", batch([]))
    files.close_all()
    assert not disk.outputs


def test_max_records_splits_batches_exactly() -> None:
    disk = Disk()
    files = TaskFiles(disk.open, limits(max_records=7))
    files.append("", batch(range(16)))
    files.append("", batch(range(16, 21)))
    files.close_all()
    assert disk.ids() == [list(range(7)), list(range(7, 14)), list(range(14, 21))]


def test_target_bytes_is_met_by_encoded_bytes() -> None:
    disk = Disk("none")
    files = TaskFiles(disk.open, limits(target_bytes=2 * MB))
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


def test_buffers_of_hundreds_of_files_stay_within_the_budget() -> None:
    disk = Disk()
    budget = 8 * MB
    files = TaskFiles(disk.open, limits(buffer_bytes=budget))
    size = batch(range(100), 200).nbytes
    for start in range(0, 200_000, 100):
        files.append(f"k={start // 100 % 300}/", batch(range(start, start + 100), 200))
    files.close_all()
    assert budget - size <= files.peak <= budget + size
    groups = [
        pq.ParquetFile(io.BytesIO(output.getvalue())).metadata.num_row_groups
        for output in disk.outputs.values()
    ]
    assert len(groups) == 300
    assert max(groups) > 1
    assert sum(len(ids) for k in range(300) for ids in disk.ids(f"k={k}/")) == 200_000


def test_sorted_input_has_one_file_open_at_a_time() -> None:
    disk = Disk()
    batches = [
        keyed([n // 40 for n in range(start, start + 100)], list(range(start, start + 100)))
        for start in range(0, 2000, 100)
    ]
    routed(disk, batches, stage=4000)
    assert disk.most_open == 1
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
    assert len(disk.outputs) == disk.most_open == 7
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
    files = TaskFiles(disk.open, limits())
    files.append("", batch(range(10)))
    output = disk.outputs["", 0]
    before = output.getvalue()
    files.discard()
    del files
    assert output.getvalue() == before
    assert not output.sealed


def test_memory_is_shared_out_within_what_there_is() -> None:
    for memory in (16 * MB, 256 * MB, 4096 * MB):
        shared = Limits.of(Options(Destination("bucket", "p/")), memory)
        assert shared.buffer_bytes + 2 * shared.stage_bytes <= memory
        assert shared.row_group_bytes <= shared.buffer_bytes
