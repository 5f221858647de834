"""Hundreds of open files within a budget of bytes."""

from __future__ import annotations

import errno
import mmap
import os
import tracemalloc
from pathlib import Path

import pytest

from s3commit.writer.sizes import DEFAULT_MEMORY_BYTES, MIB, PartSizes, UploadSettings
from s3commit.writer.spool import MemoryBudget, PartBuffer, Spool
from s3commit.writer.transfer import Transfer
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import (
    BUCKET,
    JOB,
    SmallSettings,
    completed_bytes,
    open_uploads,
    small,
    stream_on,
)

STREAMS = 300
KIB = 1024


class ForgetfulStore:
    """Takes parts and keeps none of their bytes, so that what is measured is the writer's."""

    def __init__(self) -> None:
        self.received = 0

    def create_upload(
        self, bucket: str, key: str, *, metadata: dict[str, str], content_type: str
    ) -> str:
        return key

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        self.received += len(body)
        return f'"{number}"'

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        return


def test_three_hundred_open_files_hold_within_the_budget() -> None:
    store, budget, total = ForgetfulStore(), 8 * MIB, 256 * KIB
    transfer = Transfer(UploadSettings(memory_bytes=budget))
    chunk = os.urandom(16 * KIB)
    tracemalloc.start()
    try:
        streams = [stream_on(store, transfer, f"t/{number}-{JOB}") for number in range(STREAMS)]
        for _ in range(total // len(chunk)):
            for stream in streams:
                stream.write(chunk)
        assert len(list(Path("/proc/self/fd").iterdir())) < STREAMS
        for stream in streams:
            stream.close()
        _, traced = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        transfer.close()
    assert store.received == STREAMS * total
    assert budget - 16 * KIB <= transfer.memory.peak <= budget
    # bytearrays grow by an eighth at most; streams, futures and threads are some KiB each
    assert traced < budget * 9 / 8 + STREAMS * 16 * KIB
    assert transfer.memory.used == 0


def test_one_fast_file_never_touches_the_disk() -> None:
    store = ForgetfulStore()
    transfer = Transfer(UploadSettings())
    stream = stream_on(store, transfer)
    for _ in range(256):
        stream.write(b"x" * MIB)
    stream.close()
    transfer.close()
    assert store.received == 256 * MIB
    assert stream.statistics.bytes_spooled == 0
    assert transfer.spool.extents_bytes == 0
    assert transfer.memory.peak <= DEFAULT_MEMORY_BYTES


def test_a_part_larger_than_the_budget_goes_by_way_of_the_disk() -> None:
    store = MemoryObjectStore(BUCKET)
    transfer = Transfer(UploadSettings(memory_bytes=MIB))
    stream = stream_on(store, transfer)
    body = os.urandom(20 * MIB)
    for at in range(0, len(body), 300_000):
        stream.write(body[at : at + 300_000])
    stream.close()
    transfer.close()
    assert transfer.memory.peak <= MIB
    assert completed_bytes(store, stream.pending) == body


def test_a_file_that_ends_or_is_aborted_gives_its_share_back() -> None:
    store, transfer = MemoryObjectStore(BUCKET), small(100, memory=150)
    first, second = (stream_on(store, transfer, f"t/{name}-{JOB}") for name in "ab")
    first.write(b"x" * 90)
    second.write(b"y" * 90)
    assert transfer.memory.used == 90
    first.abort()
    assert transfer.memory.used == 0
    second.close()
    assert transfer.memory.used == 0
    assert second.statistics.bytes_spooled == 90


def test_a_failed_part_gives_memory_and_disk_back() -> None:
    plan = FaultPlan().fail("upload_part", OSError("reset"), times=None)
    transfer = small(100, memory=50)
    for number in range(5):
        stream = stream_on(plan.wrap(MemoryObjectStore(BUCKET)), transfer, f"t/{number}-{JOB}")
        stream.write(b"x" * 60)
        with pytest.raises(OSError, match="reset"):
            stream.close()
    assert transfer.memory.used == 0
    assert transfer.spool.extents_bytes == mmap.ALLOCATIONGRANULARITY  # one, again and again
    transfer.close()


def test_the_spool_leaves_no_file_behind(tmp_path: Path) -> None:
    settings = SmallSettings(PartSizes(first=64), memory_bytes=0, spool_directory=str(tmp_path))
    transfer = Transfer(settings)
    stream = stream_on(MemoryObjectStore(BUCKET), transfer)
    stream.write(b"x" * 100)
    assert transfer.spool.extents_bytes > 0
    assert list(tmp_path.iterdir()) == []
    stream.close()
    transfer.close()


def test_a_full_disk_fails_the_file_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = MemoryObjectStore(BUCKET)
    stream = stream_on(store, small(100, memory=0))
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        stream.write(b"x")
    with pytest.raises(OSError, match="No space left"):
        stream.close()
    assert open_uploads(store) == []


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    settings = SmallSettings(PartSizes(first=64), memory_bytes=0, spool_directory=missing)
    stream = stream_on(MemoryObjectStore(BUCKET), Transfer(settings))
    with pytest.raises(FileNotFoundError, match="missing"):
        stream.write(b"x")
    stream.abort()


def test_a_budget_never_gives_more_than_it_has() -> None:
    budget = MemoryBudget(10)
    assert budget.try_take(6)
    assert not budget.try_take(5)
    assert budget.try_take(4)
    budget.give(4)
    assert (budget.used, budget.peak) == (6, 10)


def test_a_buffer_keeps_the_order_of_what_was_spooled_and_what_came_after() -> None:
    budget, spool = MemoryBudget(4), Spool()
    buffer = PartBuffer(100, budget, spool)
    for piece in (b"ab", b"cde", b"f", b"ghijklm", b"no"):
        assert buffer.append(memoryview(piece)) == len(piece)
    with buffer.view() as view:
        assert bytes(view) == b"abcdefghijklmno"
    buffer.discard()
    assert (len(buffer), budget.used) == (0, 0)
    spool.close()
    spool.close()


def test_freed_extents_are_used_again() -> None:
    spool = Spool()
    first = spool.allocate(5000)
    assert spool.allocate(5000) != first
    spool.free(first, 5000)
    assert spool.allocate(8000) == first
    assert spool.extents_bytes == 2 * 8192
    spool.close()
