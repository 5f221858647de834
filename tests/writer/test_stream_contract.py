"""The pending-upload stream against Hadoop's output stream contract, an id a test.

The ids are those of hadoop-common's ``outputstream.md`` and ``abortable.md`` as the project lists
them; a test of this page says that each has one.

S2 and S3 are of methods that a Python file does not have: `os.fsync` is refused instead.
"""

import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from s3commit.core.model.errors import AccessError, S3CommitError, TransientError
from s3commit.writer.target import StreamClosedError
from s3commit.writer.transfer import Transfer
from tests.fakes.faults import FaultPlan, Predicate
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import (
    BUCKET,
    KEY,
    Gate,
    beside,
    completed_bytes,
    open_uploads,
    small,
    stream_on,
    visible,
)


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(BUCKET, min_part_bytes=1)


def test_w1_write_after_close_is_an_io_error_that_names_the_path(store: MemoryObjectStore) -> None:
    stream = stream_on(store)
    stream.close()
    with pytest.raises(StreamClosedError, match=f"s3://{BUCKET}/{KEY}, which is closed") as caught:
        stream.write(b"x")
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, ValueError)


def test_w2_only_bytes_are_taken_and_no_bytes_are_legal(store: MemoryObjectStore) -> None:
    stream = stream_on(store)
    for wrong in (None, "text", 3):
        with pytest.raises(TypeError):
            stream.write(cast("bytes", wrong))
    assert stream.write(b"") == 0
    assert stream.write(memoryview(b"abc")) == 3
    stream.close()
    assert completed_bytes(store, stream.pending) == b"abc"


def test_w3_the_callers_buffer_may_be_reused_after_write(store: MemoryObjectStore) -> None:
    stream, reused = stream_on(store, small(8)), bytearray(8)
    for value in range(5):
        reused[:] = bytes([value]) * 8
        stream.write(reused)
    stream.close()
    expected = b"".join(bytes([value]) * 8 for value in range(5))
    assert completed_bytes(store, stream.pending) == expected


def test_w4_concurrent_writes_keep_each_write_whole(store: MemoryObjectStore) -> None:
    stream = stream_on(store, small(64))

    def write(value: int) -> None:
        for _ in range(200):
            stream.write(bytes([value]) * 10)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    stream.close()
    body = completed_bytes(store, stream.pending)
    assert len(body) == 8000
    assert all(len(set(body[at : at + 10])) == 1 for at in range(0, 8000, 10))


def test_w5_a_file_too_large_fails_at_the_write_and_stays_failed(store: MemoryObjectStore) -> None:
    stream = stream_on(store, small(4, max_parts=3))
    stream.write(b"x" * 12)
    with pytest.raises(OSError, match="larger than S3's parts can hold"):
        stream.write(b"x")
    with pytest.raises(OSError, match="larger"):
        stream.close()
    assert open_uploads(store) == []


def test_f1_flush_never_fails_nor_asks_s3(store: MemoryObjectStore) -> None:
    plan = FaultPlan()
    stream = stream_on(plan.wrap(store))
    stream.write(b"x")
    plan.forget_calls()
    stream.flush()
    assert plan.count() == 0
    stream.close()
    stream.flush()


def test_c3_close_waits_for_parts_on_their_way(store: MemoryObjectStore) -> None:
    gate = Gate()
    stream = stream_on(FaultPlan().run_before("upload_part", gate.hold).wrap(store), small(4))
    stream.write(b"abcd")
    closing = beside(stream.close)
    assert gate.entered.wait(30)
    assert not closing.done()
    gate.opened.set()
    closing.result(30)
    assert completed_bytes(store, stream.pending) == b"abcd"


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_c3_the_error_of_any_part_is_raised(store: MemoryObjectStore, nth: int) -> None:
    plan = FaultPlan().fail("upload_part", AccessError("denied"), nth=nth)
    stream = stream_on(plan.wrap(store), small(4))
    with pytest.raises(AccessError, match="denied"):
        for _ in range(4):
            stream.write(b"abcd")
        stream.close()
    stream.abort()
    assert open_uploads(store) == []


def test_i1_c4_a_closed_file_is_invisible_what_was_there_stays(store: MemoryObjectStore) -> None:
    store.put(BUCKET, KEY, b"before")
    stream = stream_on(store)
    stream.write(b"after")
    stream.close()
    assert store.get(BUCKET, KEY, max_bytes=10).body == b"before"
    assert open_uploads(store) == [KEY]
    assert completed_bytes(store, stream.pending) == b"after"


def test_i4_c1_c2_c5_a_failed_close_aborts_and_is_not_tried_again(store: MemoryObjectStore) -> None:
    plan = FaultPlan().fail("upload_part", TransientError("no"), nth=3)
    stream = stream_on(plan.wrap(store), small(4))
    stream.write(b"abcdefgh")
    stream.write(b"i")
    with pytest.raises(TransientError):
        stream.close()
    assert (stream.failed, stream.closed) == (True, True)
    with pytest.raises(StreamClosedError, match="failed"):
        _ = stream.pending
    assert open_uploads(store) == []
    plan.forget_calls()
    stream.close()
    assert plan.count() == 0


def test_c5_a_failed_abort_does_not_hide_the_error_of_the_part(store: MemoryObjectStore) -> None:
    plan = FaultPlan().fail("upload_part", TransientError("the part"))
    plan.fail("abort_upload", TransientError("the cleanup"))
    stream = stream_on(plan.wrap(store))
    with pytest.raises(TransientError, match="the part"):
        stream.close()


def test_c7_a_file_cut_short_by_a_crash_is_never_visible(store: MemoryObjectStore) -> None:
    stream = stream_on(store, small(4))
    stream.write(b"abcdef")
    del stream
    assert visible(store) == []


@pytest.mark.parametrize("size", [0, 1])
def test_p1_an_empty_file_is_an_upload_of_one_part(store: MemoryObjectStore, size: int) -> None:
    plan = FaultPlan()
    stream = stream_on(plan.wrap(store))
    stream.write(b"x" * size)
    stream.close()
    assert plan.counts() == {"create_upload": 1, "upload_part": 1}
    assert completed_bytes(store, stream.pending) == b"x" * size


def test_p2_a_pending_file_has_the_etags_in_order_and_its_length(store: MemoryObjectStore) -> None:
    gate = Gate()  # the first part arrives last
    plan = FaultPlan().run_before("upload_part", gate.hold, where=_is_part(1))
    plan.run_after("upload_part", gate.opened.set, where=_is_part(3))
    stream = stream_on(plan.wrap(store), small(4))
    stream.write(b"aaaabbbbcc")
    stream.rows = 7
    stream.close()
    file = stream.pending
    assert file.length == 10
    assert len(file.etags) == 3
    assert file.rows == 7
    assert completed_bytes(store, file) == b"aaaabbbbcc"


def test_durability_before_close_is_refused_not_pretended(store: MemoryObjectStore) -> None:
    stream = stream_on(store)
    with pytest.raises(io.UnsupportedOperation):
        os.fsync(stream)


def _is_part(number: int) -> Predicate:
    return lambda call: bool(call.arguments["number"] == number)


def test_i4_a1_after_abort_nothing_is_left_and_nothing_changed(store: MemoryObjectStore) -> None:
    store.put(BUCKET, KEY, b"before")
    stream = stream_on(store, small(4))
    stream.write(b"abcdef")
    assert stream.abort() is None
    assert open_uploads(store) == []
    assert store.get(BUCKET, KEY, max_bytes=10).body == b"before"


def test_a2_an_error_of_the_cleanup_is_returned_not_raised(store: MemoryObjectStore) -> None:
    error = TransientError("unreachable")
    stream = stream_on(FaultPlan().fail("abort_upload", error).wrap(store))
    stream.seal()
    assert stream.abort() is error
    assert visible(store) == []


def test_a3_after_abort_writes_fail_and_the_rest_does_nothing(store: MemoryObjectStore) -> None:
    plan = FaultPlan()
    stream = stream_on(plan.wrap(store))
    stream.abort()
    plan.forget_calls()
    with pytest.raises(StreamClosedError, match="aborted"):
        stream.write(b"x")
    stream.flush()
    stream.close()
    assert stream.abort() is None
    with pytest.raises(StreamClosedError, match="aborted"):
        _ = stream.pending
    assert plan.count() == 0


def test_i4_a4_abort_stops_a_writer_that_waits_for_room(store: MemoryObjectStore) -> None:
    gate = Gate()
    plan = FaultPlan().run_before("upload_part", gate.hold)
    stream = stream_on(plan.wrap(store), small(4, in_flight=4))
    writing = beside(lambda: stream.write(b"x" * 4000))
    assert gate.entered.wait(30)
    aborting = beside(stream.abort)
    with pytest.raises(StreamClosedError):
        writing.result(30)  # before the part on its way is done
    gate.opened.set()
    aborting.result(30)
    assert stream.aborted
    assert open_uploads(store) == []
    assert plan.count("upload_part") == 1


def test_i4_a4_abort_during_close_fails_it_and_leaves_nothing(
    store: MemoryObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = threading.Event()  # an abort wakes who waits, when nothing more is sent
    monkeypatch.setattr(Transfer, "wake", lambda _: woken.set())
    gate = Gate()
    plan = FaultPlan().run_before("upload_part", gate.hold)
    stream = stream_on(plan.wrap(store), small(4, threads=1, in_flight=8))
    stream.write(b"x" * 8)
    closing = beside(stream.close)
    assert gate.entered.wait(30)
    aborting = beside(stream.abort)
    assert woken.wait(30)
    gate.opened.set()
    with pytest.raises(S3CommitError) as caught:
        closing.result(30)
    aborting.result(30)
    assert caught.value.code == "STREAM_ABORTED"
    assert stream.aborted
    assert plan.count("upload_part") == 1
    assert open_uploads(store) == []


def test_a5_abort_after_close_undoes_nothing(store: MemoryObjectStore) -> None:
    stream = stream_on(store)
    stream.write(b"abc")
    stream.close()
    assert stream.abort() is None
    assert completed_bytes(store, stream.pending) == b"abc"
