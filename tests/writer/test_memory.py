"""What open files hold in memory: the parts that they fill, and those on their way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from s3commit.writer.settings import MIB, UploadSettings
from s3commit.writer.transfer import PartBuffer, Transfer
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import BUCKET, JOB, completed_bytes, small, stream_on

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


def write_three_hundred() -> None:
    """Print by how many bytes the process grew, and how many it was given to write."""
    store, total = ForgetfulStore(), 256 * KIB
    transfer, chunk, before = Transfer(UploadSettings()), os.urandom(16 * KIB), _status("VmRSS")
    streams = [stream_on(store, transfer, f"t/{number}-{JOB}") for number in range(STREAMS)]
    for _ in range(total // len(chunk)):
        for stream in streams:
            stream.write(chunk)
    for stream in streams:
        stream.close()
    transfer.close()
    assert store.received == STREAMS * total
    print(_status("VmHWM") - before, STREAMS * total, _status("VmRSS") - before)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * KIB for line in lines if line.startswith(f"{name}:"))


def test_an_open_file_takes_the_memory_of_what_was_written_and_gives_it_back() -> None:
    code = "from tests.writer.test_memory import write_three_hundred; write_three_hundred()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak, written, left = map(int, done.stdout.split())
    assert written <= peak <= written + 16 * MIB  # not a whole part of 8 MiB for each
    assert left <= 16 * MIB


def test_one_fast_file_waits_for_room_and_holds_no_more_than_is_on_its_way() -> None:
    store = ForgetfulStore()
    transfer = Transfer(UploadSettings())
    stream = stream_on(store, transfer)
    for _ in range(256):
        stream.write(b"x" * MIB)
    stream.close()
    transfer.close()
    assert store.received == 256 * MIB
    assert stream.statistics.parts_uploaded == 32


def test_a_part_keeps_its_bytes_in_order_until_it_is_discarded() -> None:
    buffer = PartBuffer(100)
    for piece in (b"ab", b"cde", b"f", b"ghijklm", b"no"):
        assert buffer.append(memoryview(piece)) == len(piece)
    with buffer.view() as view:
        assert bytes(view) == b"abcdefghijklmno"
    assert buffer.append(memoryview(b"x" * 100)) == 85
    buffer.discard()
    assert len(buffer) == 0
    buffer.discard()


def test_a_failed_part_does_not_hide_its_error() -> None:
    plan = FaultPlan().fail("upload_part", OSError("reset"), times=None)
    transfer = small(100)
    for number in range(5):
        stream = stream_on(plan.wrap(MemoryObjectStore(BUCKET)), transfer, f"t/{number}-{JOB}")
        stream.write(b"x" * 60)
        with pytest.raises(OSError, match="reset"):
            stream.close()
    transfer.close()


def test_a_file_of_many_parts_is_whole() -> None:
    store, transfer = MemoryObjectStore(BUCKET), Transfer(UploadSettings())
    stream = stream_on(store, transfer)
    body = os.urandom(20 * MIB)
    for at in range(0, len(body), 300_000):
        stream.write(body[at : at + 300_000])
    stream.close()
    transfer.close()
    assert len(stream.pending.etags) == 3
    assert completed_bytes(store, stream.pending) == body
