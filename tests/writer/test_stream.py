"""The stream as a file among files: sizes, threads, the io protocol."""

import io
import os
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.target import StreamClosedError
from s3commit.writer.transfer import (
    MAX_PART_BYTES,
    MAX_PARTS,
    MIB,
    MIN_PART_BYTES,
    TIB,
    PartSizes,
    Transfer,
    UploadSettings,
)
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.servers import ran
from tests.writer.support import (
    BUCKET,
    JOB,
    KEY,
    Forgetful,
    Gate,
    beside,
    completed_bytes,
    resident_bytes,
    small,
    stream_on,
)

PART = 64
NEAR_PARTS = st.integers(0, 4).flatmap(
    lambda parts: st.integers(-2, 2).map(lambda off: max(0, parts * PART + off))
)


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(BUCKET, min_part_bytes=PART)


@settings(deadline=None, max_examples=150)
@given(st.lists(NEAR_PARTS, max_size=4))
def test_i2_any_writes_around_the_part_size_come_back_byte_for_byte(writes: list[int]) -> None:
    store = MemoryObjectStore(BUCKET, min_part_bytes=PART)
    transfer = small(PART)
    stream = stream_on(store, transfer)
    expected = b""
    for number, size in enumerate(writes):
        chunk = bytes((number + at) % 251 for at in range(size))
        assert stream.write(chunk) == size
        expected += chunk
    assert stream.tell() == len(expected)
    stream.close()
    transfer.close()
    assert len(stream.pending.etags) == max(1, -(-len(expected) // PART))
    assert completed_bytes(store, stream.pending) == expected


def test_ten_thousand_parts_hold_five_tebibytes_and_none_is_too_big() -> None:
    for first in (MIN_PART_BYTES, 8 * MIB, 64 * MIB, MAX_PART_BYTES):
        sizes = PartSizes(first=first)
        assert sum(map(sizes.size, range(1, MAX_PARTS + 1))) >= sizes.max_bytes == 5 * TIB
        assert sizes.size(1) == first
        assert sizes.size(MAX_PARTS) <= MAX_PART_BYTES
    grown = [PartSizes().size(number) for number in range(1, MAX_PARTS + 1)]
    assert grown == sorted(grown)
    assert grown[:1000] == [8 * MIB] * 1000
    assert grown[-1] == 1178 * MIB


def test_parts_grow_as_the_file_does(store: MemoryObjectStore) -> None:
    stream = stream_on(store, small(PART, flat=2, every=1, step=PART))
    stream.write(b"x" * (PART * (1 + 1 + 2 + 3) + 1))
    stream.close()
    assert len(stream.pending.etags) == 5
    assert len(completed_bytes(store, stream.pending)) == 7 * PART + 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"parts": PartSizes(first=5 * MIB - 1)},
        {"parts": PartSizes(first=MAX_PART_BYTES + 1)},
        {"threads": 0},
        {"in_flight_bytes": 0},
    ],
)
def test_settings_out_of_bounds_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match="is not a whole number from") as caught:
        UploadSettings(**wrong)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_OPTION"


def test_bytes_in_flight_are_bounded(store: MemoryObjectStore) -> None:
    gate = Gate()
    plan = FaultPlan()
    plan.run_before("upload_part", gate.hold, nth=1).run_before("upload_part", gate.hold, nth=2)
    transfer = small(PART, in_flight=2 * PART)
    stream = stream_on(plan.wrap(store), transfer)
    writing = beside(lambda: stream.write(b"x" * (PART * 10)))
    assert gate.entered.wait(30)
    with pytest.raises(TimeoutError):
        writing.result(0.05)
    assert stream.tell() <= 3 * PART
    gate.opened.set()
    writing.result(30)
    stream.close()
    assert len(completed_bytes(store, stream.pending)) == 10 * PART


def test_a_part_larger_than_what_may_be_in_flight_is_sent_alone(store: MemoryObjectStore) -> None:
    stream = stream_on(store, small(PART, in_flight=1))
    stream.write(b"x" * PART * 3)
    stream.close()
    assert len(completed_bytes(store, stream.pending)) == 3 * PART


def test_sealed_files_are_sent_side_by_side(store: MemoryObjectStore) -> None:
    both = threading.Barrier(2, timeout=30)
    plan = FaultPlan()
    plan.run_before("upload_part", both.wait, nth=1).run_before("upload_part", both.wait, nth=2)
    wrapped, transfer = plan.wrap(store), small(PART)
    streams = [stream_on(wrapped, transfer, key) for key in (f"t/a-{JOB}", f"t/b-{JOB}")]
    for stream in streams:
        stream.write(b"x")
        stream.seal()
        stream.seal()
        with pytest.raises(StreamClosedError, match="sealed"):
            stream.write(b"y")
        assert not stream.closed
    for stream in streams:
        stream.close()
        assert completed_bytes(store, stream.pending) == b"x"


def test_it_is_a_file_to_the_io_module(store: MemoryObjectStore) -> None:
    stream = stream_on(store)
    assert stream.writable()
    assert not stream.readable()
    assert not stream.seekable()
    assert stream.name == f"s3://{BUCKET}/{KEY}"
    assert stream.mode == "wb"
    with pytest.raises(io.UnsupportedOperation):
        stream.read()
    stream.abort()


# What open files hold in memory


STREAMS = 300
KIB = 1024


def write_three_hundred() -> None:
    """Print by how many bytes the process grew, and how many it was given to write."""
    store, total = Forgetful(BUCKET), 256 * KIB
    transfer, chunk, before = (
        Transfer(UploadSettings()),
        os.urandom(16 * KIB),
        resident_bytes("VmRSS"),
    )
    streams = [stream_on(store, transfer, f"t/{number}-{JOB}") for number in range(STREAMS)]
    for _ in range(total // len(chunk)):
        for stream in streams:
            stream.write(chunk)
    for stream in streams:
        stream.close()
    transfer.close()
    assert store.received == STREAMS * total
    print(resident_bytes("VmHWM") - before, STREAMS * total, resident_bytes("VmRSS") - before)


def test_an_open_file_takes_the_memory_of_what_was_written_and_gives_it_back() -> None:
    code = "from tests.writer.test_stream import write_three_hundred; write_three_hundred()"
    done = ran(sys.executable, "-c", code)
    peak, written, left = map(int, done.stdout.split())
    assert written <= peak <= written + 16 * MIB  # not a whole part of 8 MiB for each
    assert left <= 16 * MIB
