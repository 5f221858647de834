"""Files that lie on local disk until they are whole: for writers that seek and read back."""

from __future__ import annotations

import errno
import gc
import io
import os
import tracemalloc
import wave
import zipfile
from pathlib import Path
from typing import IO, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from s3commit.core.model.errors import AccessError, TransientError
from s3commit.writer.sizes import MIB, PartSizes, UploadSettings
from s3commit.writer.staged import StagedUpload
from s3commit.writer.transfer import Transfer
from s3commit.writer.values import StreamClosedError
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import (
    BUCKET,
    KEY,
    SmallSettings,
    completed_bytes,
    open_uploads,
    small,
    staged_on,
)
from tests.writer.test_memory import ForgetfulStore

PART = 64


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(BUCKET, min_part_bytes=1)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class AgainstAFile(RuleBasedStateMachine):
    """Whatever is done to a staged file is what it would be in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryObjectStore(BUCKET, min_part_bytes=1)
        self.stream = staged_on(self.store, small(8))
        self.model = io.BytesIO()

    @rule(data=st.binary(max_size=20))
    def write(self, data: bytes) -> None:
        assert self.stream.write(data) == self.model.write(data)

    @rule(offset=st.integers(0, 60), whence=st.sampled_from([os.SEEK_SET, os.SEEK_END]))
    def seek(self, offset: int, whence: int) -> None:
        assert self.stream.seek(offset, whence) == self.model.seek(offset, whence)

    @rule(size=st.none() | st.integers(-1, 60))
    def read(self, size: int | None) -> None:
        assert self.stream.read(size) == self.model.read(size)

    @rule(size=st.integers(0, 60))
    def readinto(self, size: int) -> None:
        ours, models = bytearray(size), bytearray(size)
        assert self.stream.readinto(ours) == self.model.readinto(models)
        assert ours == models

    @rule(size=st.integers(0, 60))
    @precondition(lambda self: not self.stream.closed)
    def truncate(self, size: int) -> None:
        self.stream.truncate(size)
        whole = self.model.getvalue()[:size]
        self.model = _at(whole.ljust(size, b"\0"), self.model.tell())

    @invariant()
    def same_place(self) -> None:
        assert self.stream.tell() == self.model.tell()

    def teardown(self) -> None:
        self.stream.close()
        assert completed_bytes(self.store, self.stream.pending) == self.model.getvalue()


def _at(body: bytes, position: int) -> io.BytesIO:
    file = io.BytesIO(body)
    file.seek(position)
    return file


TestAgainstAFile = AgainstAFile.TestCase
TestAgainstAFile.settings = settings(deadline=None, max_examples=40, stateful_step_count=20)


def test_p1_p4_a_file_costs_its_start_and_its_parts_and_nothing_before_it_is_whole(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    stream = staged_on(plan.wrap(store), small(PART))
    stream.write(b"x" * (3 * PART + 1))
    assert plan.count() == 0
    stream.close()
    assert plan.counts() == {"create_upload": 1, "upload_part": 4}
    assert completed_bytes(store, stream.pending) == b"x" * (3 * PART + 1)
    assert stream.statistics.bytes_uploaded == stream.statistics.bytes_spooled == 3 * PART + 1


@pytest.mark.parametrize("size", [5 * MIB - 1, 5 * MIB + 1, 11 * MIB])
def test_i2_parts_that_lie_anywhere_in_the_file_come_back_byte_for_byte(size: int) -> None:
    store = MemoryObjectStore(BUCKET)
    uneven = PartSizes(first=5 * MIB + 7)  # no part but the first starts at a page
    stream = staged_on(store, Transfer(UploadSettings(uneven)))
    body = os.urandom(size)
    for at in range(0, size, 1_000_003):
        stream.write(body[at : at + 1_000_003])
    stream.close()
    assert completed_bytes(store, stream.pending) == body


def test_writers_that_seek_write_through_it(store: MemoryObjectStore) -> None:
    with staged_on(store) as archive, zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("a.txt", "a" * 500)
        with zipped.open("b.txt", "w") as entry:  # its header is written over afterwards
            entry.write(b"b" * 500)
    read = zipfile.ZipFile(io.BytesIO(completed_bytes(store, archive.pending)))
    assert read.testzip() is None
    assert read.infolist()[1].flag_bits & 8 == 0  # sizes in the header: it could seek

    with (
        staged_on(store, key="t/sound") as sound,
        wave.open(cast("IO[bytes]", sound), "wb") as track,
    ):
        track.setparams((1, 2, 8000, 0, "NONE", ""))  # its length is not known yet
        track.writeframes(b"\1\2" * 800)
    with wave.open(io.BytesIO(completed_bytes(store, sound.pending))) as heard:
        assert heard.getnframes() == 800


def test_what_was_written_can_be_read_as_lines(store: MemoryObjectStore) -> None:
    with staged_on(store) as stream:
        stream.write(b"a\nb\n")
        stream.seek(0)
        assert list(stream) == [b"a\n", b"b\n"]
        assert stream.seek(0) == 0
        assert stream.read1(1) == b"a"
        assert (stream.readable(), stream.seekable(), stream.writable()) == (True, True, True)
        assert stream.mode == "w+b"
        with pytest.raises(io.UnsupportedOperation):
            stream.fileno()  # whoever wrote there could not be stopped by an abort
    for late in (stream.read, stream.tell, stream.truncate, lambda: stream.seek(0)):
        with pytest.raises(StreamClosedError, match=f"{KEY}, which is closed"):
            late()


def test_a_bad_argument_harms_nothing(store: MemoryObjectStore) -> None:
    stream = staged_on(store)
    stream.write(b"abc")
    with pytest.raises(OSError, match="Invalid argument"):
        stream.seek(-1)
    with pytest.raises(ValueError, match="whence"):
        stream.seek(0, 9)
    stream.close()
    assert completed_bytes(store, stream.pending) == b"abc"


def test_w5_a_file_that_grows_too_large_fails_and_stays_failed(store: MemoryObjectStore) -> None:
    stream = staged_on(store, small(4, max_parts=3))
    stream.write(b"x" * 12)
    with pytest.raises(OSError, match="larger than S3's parts can hold"):
        stream.truncate(13)
    with pytest.raises(OSError, match="larger"):
        stream.close()
    assert open_uploads(store) == []


# --- nothing is left, however it ends


def test_temporary_files_go_however_the_stream_ends(
    store: MemoryObjectStore, tmp_path: Path
) -> None:
    transfer = Transfer(SmallSettings(PartSizes(first=PART), spool_directory=str(tmp_path)))
    before = descriptors()

    def written() -> StagedUpload:
        stream = staged_on(store, transfer)
        stream.write(b"x" * 100_000)
        assert descriptors() == before + 1
        assert list(tmp_path.iterdir()) == []  # without a name: a killed process leaves none
        return stream

    written().close()
    assert descriptors() == before
    written().abort()
    assert descriptors() == before
    with pytest.raises(KeyError), written():
        raise KeyError
    assert descriptors() == before
    written()  # forgotten
    gc.collect()
    assert descriptors() == before
    plan = FaultPlan().fail("upload_part", TransientError("no"))
    failing = staged_on(plan.wrap(store), transfer)
    with pytest.raises(TransientError):
        failing.close()
    assert descriptors() == before
    transfer.close()


def test_i4_a_start_that_fails_fails_the_file_and_is_not_repeated(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    plan.fail("create_upload", AccessError("denied"))
    stream = staged_on(plan.wrap(store))
    for end in (stream.seal, stream.close):
        with pytest.raises(AccessError, match="denied"):
            end()
    assert stream.failed
    assert not stream.aborted  # a task leaves out aborted files
    assert plan.counts() == {"create_upload": 1}


def test_a_full_disk_is_one_line_that_says_what_to_do(
    store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = Path("/dev/full")  # takes nothing, as a disk without space
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full.open("w+b"))
    transfer = Transfer(SmallSettings(PartSizes(first=PART), spool_directory=str(tmp_path)))
    stream = staged_on(store, transfer)
    before = descriptors()
    with pytest.raises(OSError, match="No space left on device") as caught:
        stream.write(b"x" * 100_000)
    assert caught.value.errno == errno.ENOSPC
    assert str(tmp_path) in str(caught.value)
    assert "another spool directory" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert descriptors() == before - 1  # its disk is for others at once
    for again in (lambda: stream.write(b"x"), stream.close):
        with pytest.raises(OSError, match="No space left"):
            again()
    assert stream.failed
    assert open_uploads(store) == []


def test_a_disk_that_fills_up_at_the_last_flush_fails_the_close(
    store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full.open("w+b"))
    stream = staged_on(store)
    stream.write(b"x")  # waits in the buffer
    with pytest.raises(OSError, match="No space left on device"):
        stream.close()
    assert stream.closed
    forgotten = staged_on(store)
    forgotten.write(b"x")
    del forgotten
    gc.collect()  # would raise again if the buffer were flushed


def test_a_directory_that_is_not_there_is_named(store: MemoryObjectStore, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    transfer = Transfer(SmallSettings(PartSizes(first=PART), spool_directory=missing))
    with pytest.raises(FileNotFoundError, match="missing"):
        staged_on(store, transfer)


def test_a_large_file_takes_no_memory() -> None:
    store = ForgetfulStore()
    transfer = Transfer(UploadSettings(PartSizes(first=5 * MIB), in_flight_bytes=5 * MIB))
    chunk = os.urandom(MIB)
    tracemalloc.start()
    try:
        stream = staged_on(store, transfer)
        for _ in range(64):
            stream.write(chunk)
        stream.close()
        _, traced = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        transfer.close()
    assert store.received == 64 * MIB
    assert traced < MIB
    assert transfer.memory.peak == 0
