"""Slips of a program: none loses rows, or a job, in silence."""

from typing import Any

import pytest

from s3commit.core.documents.request_json import CommitRequest
from s3commit.core.model.errors import InvalidInputError, OutcomeUnknownError
from s3commit.core.model.outcome import Outcome
from s3commit.writer.job import Job
from s3commit.writer.task import Task
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.ending import end, standing
from tests.writer.support import BUCKET, JOB, ScriptedEnvironment, open_uploads


def written(
    job: Job, task_id: str, attempt_id: str | None = None, *, open_file: bool = False
) -> Task:
    task = job.task(task_id, attempt_id)
    file = task.open("part-0")
    file.write(b"x")
    if not open_file:
        file.close()
    return task


def refused(job: Job, attempts: Any, code: str, plan: FaultPlan) -> str:
    puts = plan.count("put")
    with pytest.raises(InvalidInputError) as caught:
        job.commit(attempts)
    assert caught.value.code == code
    assert plan.count("put") == puts
    assert "No commit was requested" in caught.value.message
    return caught.value.message


def test_what_an_open_task_has_counted_is_not_none(job: Job) -> None:
    task = written(job, "0")
    with pytest.raises(InvalidInputError, match=r"task 0 is not finished.*with block") as caught:
        _ = task.counted
    assert caught.value.code == "TASK_OPEN"
    assert task.finish() == task.counted


def test_an_aborted_task_has_counted_nothing_that_could_be_committed(job: Job) -> None:
    task = written(job, "0", "a1")
    task.abort()
    with pytest.raises(InvalidInputError, match=r"attempt a1, was aborted") as caught:
        _ = task.counted
    assert caught.value.code == "TASK_ABORTED"


@pytest.mark.parametrize("state", ["finished", "closed", "open"])
def test_a_task_with_files_is_not_left_out(job: Job, plan: FaultPlan, state: str) -> None:
    first, second = written(job, "0"), written(job, "1", open_file=state == "open")
    counted = [first.finish()]
    if state == "finished":
        second.finish()
    assert "task 1 of job" in refused(job, counted, "LEFT_OUT", plan)
    assert "task" in refused(job, [], "LEFT_OUT", plan)
    assert "task" in refused(job, [None, None], "LEFT_OUT", plan)


def test_it_is_left_out_if_that_is_meant(job: Job, store: MemoryObjectStore) -> None:
    first, _ = written(job, "0"), written(job, "1").finish()
    counted = first.finish()
    end(store, job, Outcome.COMMITTED)
    job.commit([counted], leave_out=True)
    request = standing(store, job)
    assert isinstance(request, CommitRequest)
    assert request.attempts == (counted,)


def test_another_try_of_the_task_stands_for_it(job: Job, store: MemoryObjectStore) -> None:
    """And no task without files, aborted, or of another process is missed."""
    written(job, "0", "first").finish()
    again = written(job, "0", "second").finish()
    written(job, "1").abort()
    job.task("2").finish()
    with pytest.raises(KeyError), job.task("4").open("dropped"):
        raise KeyError
    job.task("3")  # travels to a process that writes its files
    end(store, job, Outcome.COMMITTED)
    assert job.commit([again, None]).job_id == JOB


@pytest.mark.parametrize("given", ["task", "texts", "one", "number"])
def test_what_is_no_attempt_is_refused_in_one_line(job: Job, plan: FaultPlan, given: str) -> None:
    task = written(job, "0")
    counted = task.finish()
    wrong = {"task": [task], "texts": ["0"], "one": counted, "number": 1}[given]
    assert "a list with the result of each task.finish()" in refused(job, wrong, "BAD_OPTION", plan)


def test_who_stops_the_wait_is_told_that_the_commit_goes_on(
    job: Job,
    store: MemoryObjectStore,
    environment: ScriptedEnvironment,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    environment.on_sleep = stop
    with pytest.raises(KeyboardInterrupt) as caught, job:
        job.commit([written(job, "0").finish()])
    (note,) = caught.value.__notes__
    assert f"job {JOB}: if its commit was requested, it continues" in note
    assert note.endswith(f"see: s3commit show {job.directory.typed}")
    assert note in capsys.readouterr().err
    assert isinstance(standing(store, job), CommitRequest)
    assert len(open_uploads(store)) == 1


def test_who_stops_the_tasks_hears_that_nothing_is_seen(store: MemoryObjectStore, job: Job) -> None:
    with pytest.raises(KeyboardInterrupt) as caught, job:
        raise KeyboardInterrupt
    (note,) = caught.value.__notes__
    assert note == f"the abort of job {JOB} was requested: none of its files will be visible"


def test_an_error_of_ours_says_itself_what_is_true(job: Job, store: MemoryObjectStore) -> None:
    end(store, job, Outcome.COMMITTED)
    store.put(BUCKET, job.directory.result, b"{}")
    with pytest.raises(OutcomeUnknownError) as caught, job:
        job.commit([])
    assert not hasattr(caught.value, "__notes__")
