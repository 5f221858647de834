"""Abort, the counts, progress and what is durable, of the checklist in test_stream_checklist.py."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from s3commit.core.model.errors import (
    OutcomeUnknownError,
    S3CommitError,
    TransientError,
)
from s3commit.writer.job import open_job
from s3commit.writer.parts import StreamClosedError
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.lake import Lake, lake_on
from tests.writer.support import (
    BUCKET,
    DESTINATION,
    KEY,
    Gate,
    ScriptedEnvironment,
    completed_bytes,
    open_uploads,
    small,
    stream_on,
    visible,
)


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(BUCKET, min_part_bytes=1)


def test_i4_a1_after_abort_nothing_is_left_and_nothing_changed(store: MemoryObjectStore) -> None:
    store.put(BUCKET, KEY, b"before")
    stream = stream_on(store, small(4))
    stream.write(b"abcdef")
    report = stream.abort()
    assert not report.already_closed
    assert report.any_cleanup_exception is None
    assert open_uploads(store) == []
    assert store.get(BUCKET, KEY, max_bytes=10).body == b"before"


def test_a2_an_error_of_the_cleanup_is_returned_not_raised(store: MemoryObjectStore) -> None:
    error = TransientError("unreachable")
    stream = stream_on(FaultPlan().fail("abort_upload", error).wrap(store))
    stream.seal()
    report = stream.abort()
    assert report.any_cleanup_exception is error
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
    assert stream.abort().already_closed
    with pytest.raises(StreamClosedError, match="aborted"):
        _ = stream.pending
    assert plan.count() == 0


def test_i4_a4_abort_during_an_upload_stops_a_writer_that_waits_for_room(
    store: MemoryObjectStore,
) -> None:
    gate = Gate()
    plan = FaultPlan().run_before("upload_part", gate.hold)
    stream = stream_on(plan.wrap(store), small(4, in_flight=4))
    caught: list[BaseException] = []

    def write() -> None:
        try:
            stream.write(b"x" * 4000)
        except OSError as error:
            caught.append(error)

    writer, aborter = threading.Thread(target=write), threading.Thread(target=stream.abort)
    writer.start()
    assert gate.entered.wait(30)
    aborter.start()
    writer.join(30)  # before the part on its way is done
    assert not writer.is_alive()
    gate.opened.set()
    aborter.join(30)
    assert isinstance(caught[0], StreamClosedError)
    assert stream.aborted
    assert open_uploads(store) == []
    assert plan.count("upload_part") == 1


def test_i4_a4_abort_during_close_makes_close_fail_and_leaves_nothing(
    store: MemoryObjectStore,
) -> None:
    gate = Gate()
    plan = FaultPlan().run_before("upload_part", gate.hold)
    stream = stream_on(plan.wrap(store), small(4, threads=1, in_flight=8))
    stream.write(b"x" * 8)
    caught: list[BaseException] = []

    def close() -> None:
        try:
            stream.close()
        except S3CommitError as error:
            caught.append(error)

    closer, aborter = threading.Thread(target=close), threading.Thread(target=stream.abort)
    closer.start()
    assert gate.entered.wait(30)
    aborter.start()
    assert stream._parts.stopped.wait(30)
    gate.opened.set()
    closer.join(30)
    aborter.join(30)
    assert [error.code for error in caught if isinstance(error, S3CommitError)] == [
        "STREAM_ABORTED"
    ]
    assert stream.aborted
    assert plan.count("upload_part") == 1
    assert open_uploads(store) == []


def test_a5_abort_after_close_undoes_nothing(store: MemoryObjectStore) -> None:
    stream = stream_on(store)
    stream.write(b"abc")
    stream.close()
    assert stream.abort().already_closed
    assert completed_bytes(store, stream.pending) == b"abc"


def test_a6_abort_is_offered_because_nothing_shows_before_commit(store: MemoryObjectStore) -> None:
    stream = stream_on(store, small(4))
    stream.write(b"x" * 40)
    stream.close()
    assert visible(store) == []
    assert stream.has_capability("fs.capability.outputstream.abortable")


def test_q1_statistics_are_readable_during_and_after_close(store: MemoryObjectStore) -> None:
    plan = FaultPlan()
    seen: list[int] = []
    stream = stream_on(plan.wrap(store), small(4, threads=1))
    plan.run_before("upload_part", lambda: seen.append(stream.statistics.parts_uploaded), nth=3)
    stream.write(b"x" * 10)
    stream.close()
    assert seen == [2]
    statistics = stream.statistics
    assert statistics.bytes_written == statistics.bytes_uploaded == 10
    assert statistics.parts_submitted == statistics.parts_uploaded == 3
    assert statistics.parts_failed == 0


def test_q1_failures_are_counted(store: MemoryObjectStore) -> None:
    stream = stream_on(FaultPlan().fail("upload_part", TransientError("no")).wrap(store))
    with pytest.raises(TransientError):
        stream.close()
    assert stream.statistics.parts_failed == 1


def test_q1_counts_have_hadoops_names(store: MemoryObjectStore) -> None:
    stream = stream_on(store, small(4))
    stream.write(b"x" * 10)
    stream.close()
    assert stream.statistics.counters == {
        "stream_write_bytes": 10,
        "stream_write_total_data": 10,
        "stream_write_block_uploads": 3,
        "stream_write_exceptions": 0,
    }


def test_h1_progress_shows_from_another_thread_while_close_takes_long(
    store: MemoryObjectStore,
) -> None:
    gate = Gate()
    plan = FaultPlan().run_before("upload_part", gate.hold, nth=3)
    stream = stream_on(plan.wrap(store), small(4, threads=1))
    stream.write(b"x" * 12)
    closing = threading.Thread(target=stream.close)
    closing.start()
    assert gate.entered.wait(30)
    assert (stream.statistics.parts_uploaded, stream.closed) == (2, False)
    gate.opened.set()
    closing.join(30)
    assert (stream.statistics.parts_uploaded, stream.closed) == (3, True)


def test_h1_who_waits_for_a_commit_looks_at_least_every_second() -> None:
    store, environment = MemoryObjectStore(BUCKET), ScriptedEnvironment()
    job = open_job(DESTINATION, store=store, environment=environment)
    with pytest.raises(OutcomeUnknownError):
        job.commit([], timeout=60)  # between two looks an Environment's sleep may give a sign
    assert max(environment.slept) <= 1


@pytest.fixture
def lake(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with lake_on(moto_endpoint, monkeypatch) as lake:
        yield lake


def test_d1_length_and_time_of_a_committed_file_are_those_of_its_commit(lake: Lake) -> None:
    job = open_job(f"s3://{lake.bucket}/t/")
    with job.task("0") as task, task.open("a") as file:
        file.write(b"x" * 5000)
    before = datetime.now(UTC).replace(microsecond=0)  # S3 says whole seconds
    job.commit([task.counted])
    (key,) = lake.visible()
    answer = lake.client.head_object(Bucket=lake.bucket, Key=key)
    assert answer["ContentLength"] == len(lake.body(key)) == 5000
    assert before <= answer["LastModified"] <= datetime.now(UTC)


def test_i3_d2_of_two_that_write_one_path_the_one_that_counts_is_visible(lake: Lake) -> None:
    job = open_job(f"s3://{lake.bucket}/t/")
    counted = []
    for body in (b"first", b"second"):
        with job.task("0") as task, task.open("a") as file:
            file.write(body)
        counted.append(task.counted)
    assert len(set(lake.open_uploads())) == 1  # one key,
    assert len(lake.open_uploads()) == 2  # two uploads
    job.commit(counted[:1])
    (key,) = lake.visible()
    assert lake.body(key) == b"first"
    assert lake.open_uploads() == []


def test_every_id_of_the_checklist_has_a_test() -> None:
    levels = {"w": 5, "f": 1, "c": 7, "p": 4, "s": 3, "k": 3, "a": 6, "d": 2, "q": 1, "h": 1}
    ids = {f"{letter}{number + 1}" for letter, count in levels.items() for number in range(count)}
    sources = [path.read_text() for path in Path(__file__).parent.glob("test_stream_checklist*.py")]
    tests = re.findall(r"^def test_(\w+)", "\n".join(sources), re.MULTILINE)
    named = {part for name in tests for part in name.split("_")}
    assert ids - named == set()
