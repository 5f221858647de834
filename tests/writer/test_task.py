"""A task attempt: its files, its manifest, its end."""

import hashlib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK
from s3commit.core.model.errors import (
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.writer.conditional_put import TURNS
from s3commit.writer.job import Job
from s3commit.writer.task import Task
from s3commit.writer.transfer import MIB
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import (
    BUCKET,
    JOB,
    Gate,
    beside,
    completed_bytes,
    fake_id,
    files_of,
    open_uploads,
    visible,
)


def with_a_file(job: Job) -> Task:
    """A task with one closed file."""
    task = job.task("0")
    task.open("a").close()
    return task


def test_a_finished_task_is_a_manifest_of_its_files(job: Job, store: MemoryObjectStore) -> None:
    with job.task("7") as task:
        with task.open("dt=1/a.csv", rows=2) as first:
            first.write(b"abc")
        with task.open("dt=2/b.csv") as second:
            second.write(b"x" * 9 * MIB)
        second.rows = 5  # known after the last byte only
    counted = task.counted
    assert counted is not None
    assert counted.manifest == f"_tasks/7/_{fake_id(1)}.pendingset"
    assert (counted.task_id, counted.attempt_id) == ("7", fake_id(1))
    assert (counted.files, counted.bytes) == (2, 9 * MIB + 3)
    body = store.get(BUCKET, job.directory.prefix + counted.manifest, max_bytes=MIB).body
    assert counted.sha256 == hashlib.sha256(body).hexdigest()
    files = files_of(store, job, counted)
    assert [(file.key, file.rows) for file in files] == [
        (f"t/dt=1/a-{JOB}.csv", 2),
        (f"t/dt=2/b-{JOB}.csv", 5),
    ]
    assert completed_bytes(store, files[1]) == b"x" * 9 * MIB
    assert store.head(BUCKET, files[1].key).metadata == {  # type: ignore[union-attr]
        META_JOB: JOB,
        META_TASK: "7",
        META_ATTEMPT: fake_id(1),
    }


def test_cost_a_task_is_one_put_beside_its_files(job: Job, plan: FaultPlan) -> None:
    with job.task("0") as task:
        for number in range(5):
            with task.open(f"{number}") as file:
                file.write(b"x" * 9 * MIB)
    assert plan.counts() == {"create_upload": 5, "put": 1, "upload_part": 10}


def test_a_task_without_files_costs_nothing_and_counts_as_none(job: Job, plan: FaultPlan) -> None:
    with job.task("0") as task:
        pass
    assert task.counted is None
    assert plan.count() == 0


def test_i3_each_try_has_an_attempt_id_of_its_own(job: Job) -> None:
    first, second = job.task("0"), job.task("0")
    assert first.attempt_id != second.attempt_id
    assert job.task("0", "given").attempt_id == "given"


@pytest.mark.parametrize("task_id", ["", "a/b", "..", "x" * 65, "a b"])
def test_an_id_that_can_not_be_part_of_a_key_is_refused(job: Job, task_id: str) -> None:
    with pytest.raises(InvalidInputError, match="task id"):
        job.task(task_id)
    with pytest.raises(InvalidInputError, match="attempt id"):
        job.task("0", task_id)


def test_a_path_is_opened_once_in_a_task(job: Job, plan: FaultPlan) -> None:
    task = job.task("0")
    task.open("a.csv").close()
    for same in ("a.csv", f"a-{JOB}.csv"):
        with pytest.raises(InvalidInputError, match="opened") as caught:
            task.open(same)
        assert caught.value.code == "DUPLICATE_PATH"
    assert plan.count("create_upload") == 1
    task.abort()


def test_an_open_file_is_not_finished_behind_its_writers_back(job: Job, plan: FaultPlan) -> None:
    task = job.task("0")
    file = task.open("a")
    with pytest.raises(InvalidInputError, match="still open") as caught:
        task.finish()
    assert caught.value.code == "FILE_OPEN"
    assert plan.count("put") == 0
    file.close()
    assert task.finish() is not None


def test_sealed_files_are_closed_by_finish(job: Job, store: MemoryObjectStore) -> None:
    task = job.task("0")
    for number in range(3):
        file = task.open(f"{number}")
        file.write(b"abc")
        file.seal()
    files = files_of(store, job, task.finish())
    assert [completed_bytes(store, file) for file in files] == [b"abc"] * 3


def test_an_aborted_file_is_left_out(job: Job, store: MemoryObjectStore) -> None:
    task = with_a_file(job)
    task.open("b").abort()
    assert [file.key for file in files_of(store, job, task.finish())] == [f"t/a-{JOB}"]
    assert open_uploads(store) == [f"t/a-{JOB}"]


@pytest.mark.parametrize("verb", ["upload_part", "create_upload"])
def test_i2_a_task_with_a_failed_file_is_not_finished(job: Job, plan: FaultPlan, verb: str) -> None:
    plan.lose_response(verb, nth=2)
    task = with_a_file(job)
    with pytest.raises(TransientError):
        task.open("b").close()
    with pytest.raises(InvalidInputError, match=f"t/b-{JOB} failed") as caught:
        task.finish()
    assert caught.value.code == "FILE_FAILED"
    assert plan.count("put") == 0
    assert task.abort() == []


def test_i4_a_block_that_fails_aborts_all_its_uploads(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    with pytest.raises(KeyError), job.task("0") as task:
        task.open("closed").close()
        task.open("open").write(b"x")
        raise KeyError
    assert open_uploads(store) == []
    assert plan.count("put") == 0
    with pytest.raises(S3CommitError, match="has ended"):
        task.open("late")


def test_i4_abort_goes_on_past_an_error_and_returns_it(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    error = TransientError("unreachable")
    plan.fail("abort_upload", error, nth=2)
    task = job.task("0")
    for name in "abc":
        task.open(name).close()
    assert task.abort() == [error]
    assert open_uploads(store) == [f"t/b-{JOB}"]
    assert task.abort() == []


def test_i4_a_manifest_that_can_not_be_put_aborts_the_uploads(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    plan.fail("put", TransientError("unreachable"))
    with pytest.raises(TransientError), job.task("0") as task:
        task.open("a").close()
    assert open_uploads(store) == []
    assert not task.has_files


def test_a_finish_that_failed_may_be_tried_again(job: Job, plan: FaultPlan) -> None:
    plan.lose_response("put")
    task = with_a_file(job)
    with pytest.raises(TransientError):
        task.finish()
    counted = task.finish()
    assert counted is not None
    assert task.finish() == counted
    assert plan.counts() == {"create_upload": 1, "get": 1, "put": 2, "upload_part": 1}


def test_a_lost_answer_to_the_manifests_put_is_told_from_a_stranger(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    own, stranger = job.task("0"), job.task("0", "used-before")
    stranger_key = job.directory.manifest("0", "used-before")
    store.put(BUCKET, stranger_key, b"x" * 10_000)
    stranger.open("b").close()
    with pytest.raises(PreconditionError, match="it was not changed"):
        stranger.finish()
    store.put(BUCKET, job.directory.manifest("0", own.attempt_id), b"small")
    own.open("a").close()
    with pytest.raises(PreconditionError, match="it was not changed"):
        own.finish()
    assert store.get(BUCKET, stranger_key, max_bytes=MIB).body == b"x" * 10_000


def test_a_store_that_contradicts_itself_is_asked_few_times(job: Job, plan: FaultPlan) -> None:
    plan.fail("put", PreconditionError("exists"), times=None)
    plan.fail("get", NotFoundError("does not exist"), times=None)
    task = with_a_file(job)
    with pytest.raises(TransientError, match="contradict each other"):
        task.finish()
    assert plan.count("put") == plan.count("get") == TURNS
    task.abort()


def test_a5_abort_after_finish_leaves_the_attempt(job: Job, store: MemoryObjectStore) -> None:
    task = with_a_file(job)
    task.finish()
    assert task.abort() == []
    assert open_uploads(store) == [f"t/a-{JOB}"]


def test_i4_a_file_whose_start_comes_back_after_the_abort_is_aborted(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    gate = Gate()
    plan.run_after("create_upload", gate.hold)
    task = job.task("0")
    opening = beside(lambda: task.open("a"))
    assert gate.entered.wait(30)
    task.abort()
    gate.opened.set()
    with pytest.raises(S3CommitError) as caught:
        opening.result(30)
    assert caught.value.code == "TASK_ENDED"
    assert open_uploads(store) == []


def test_files_may_be_written_from_many_threads(job: Job, store: MemoryObjectStore) -> None:
    task = job.task("0")

    def write(number: int) -> None:
        with task.open(f"p={number}/f") as file:
            file.write(bytes([number]) * 1000)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(write, range(16)))
    for file in files_of(store, job, task.finish()):
        body = completed_bytes(store, file)
        assert body == body[:1] * 1000


@pytest.mark.parametrize("nth", range(1, 7))
def test_i1_i3_a_crash_at_any_request_leaves_nothing_visible_and_nothing_counted(
    job: Job, store: MemoryObjectStore, plan: FaultPlan, nth: int
) -> None:
    plan.crash_before(nth=nth)
    task = job.task("0")
    try:
        for name in "ab":
            with task.open(name) as file:
                file.write(b"x")
        task.finish()
    except Crash:
        with pytest.raises(InvalidInputError):
            _ = task.counted
    assert bool(plan.fired) == (nth <= 5)
    assert [key for key in visible(store) if "__magic_job-" not in key] == []
    manifests = visible(store, job.directory.tasks)
    assert len(manifests) == (1 if nth > 5 else 0)


def test_a_file_of_its_own_is_added(job: Job, store: MemoryObjectStore, tmp_path: Path) -> None:
    local = tmp_path / "all.zip"
    with zipfile.ZipFile(local, "w") as archive:
        archive.writestr("a.txt", "a" * 100_000)
    with job.task("0") as task:
        file = task.add(local, "dt=1/all.zip", rows=7, content_type="application/zip")
    assert (file.closed, file.pending.rows) == (True, 7)
    (found,) = files_of(store, job, task.counted)
    assert completed_bytes(store, found) == local.read_bytes()


def test_a_file_that_can_not_be_read_leaves_no_upload(
    job: Job, store: MemoryObjectStore, plan: FaultPlan, tmp_path: Path
) -> None:
    task = job.task("0")
    with pytest.raises(FileNotFoundError):
        task.add(tmp_path / "missing", "a")
    assert plan.count("create_upload") == 0
    with pytest.raises(IsADirectoryError):
        task.add(tmp_path, "a")
    task.abort()
    assert open_uploads(store) == []
