"""AbstractITCommitProtocol and its sub-suites, in our words (docs/ported.md)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from s3commit.core.formats.layout import META_JOB
from s3commit.core.model.errors import (
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    NotFoundError,
    TransientError,
)
from s3commit.core.model.job import Outcome
from s3commit.writer.environment import SystemEnvironment
from s3commit.writer.job import open_job
from tests.fakes.faults import Crash
from tests.ported.support import OUT, Lake, write
from tests.writer.support import BUCKET


@pytest.fixture(params=["stream", "stage"])
def lake(request: pytest.FixtureRequest) -> Lake:
    return Lake(upload=request.param)


def test_recovery_and_cleanup(lake: Lake) -> None:
    """A driver that starts again: work of a job of another id is neither seen nor touched by it."""
    first = lake.job()
    counted = write(first)
    second = lake.job()
    assert not second.directory.prefix.startswith(first.directory.prefix)
    second.abort("nothing to do")
    lake.serve()
    assert len(lake.uploads()) == 1
    first.abort("its driver is gone")
    lake.serve()
    assert lake.uploads() == []
    assert lake.visible() == {}
    assert lake.marker() is None
    with pytest.raises(JobRefusedError):
        first.commit([counted])


def test_recovery_of_a_task_by_a_driver_that_kept_the_jobs_id(lake: Lake) -> None:
    """Hadoop's recoverTask raises. Here a task's commit is a fact in S3, whoever counts it."""
    first = lake.job()
    counted = write(first)
    assert lake.sent(first).commit([counted]).outcome is Outcome.COMMITTED
    assert lake.contents() == [b"of task 0"]


def test_commit_lifecycle(lake: Lake) -> None:
    job = lake.job()
    counted = write(job)
    assert lake.visible() == {}
    assert len(lake.uploads()) == 1
    job.commit([counted])
    assert lake.contents() == [b"of task 0"]
    assert lake.uploads() == []
    marker = lake.marker()
    assert marker is not None
    assert marker["success"] is True
    assert marker["jobId"] == job.job_id
    assert marker["filenames"] == [f"/{key}" for key in lake.visible()]


def test_committer_with_duplicated_commit(lake: Lake) -> None:
    """A second commit of the job is told the same; a second try of its task comes too late."""
    job = lake.job()
    counted = write(job)
    result = job.commit([counted])
    assert job.commit([counted]) == result
    late = write(job)
    lake.announce(job, late)
    assert lake.uploads() == []
    assert lake.contents() == [b"of task 0"]


def test_two_task_attempts_commit(lake: Lake) -> None:
    """Both attempts of a task commit it; the driver counts the second, and it alone is seen."""
    job = lake.job()
    write(job, files={"part-0.txt": b"first"}, attempt_id="a0")
    second = write(job, files={"part-0.txt": b"second"}, attempt_id="a1")
    job.commit([second])
    assert lake.contents() == [b"second"]
    assert lake.uploads() == []


@pytest.mark.parametrize("verb", ["complete_upload", "decide", "advance", "put"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_committer_with_failure(lake: Lake, verb: str, nth: int) -> None:
    """Inverted: Hadoop's second commitJob must fail; here it commits what the first one began."""
    job = lake.job()
    attempts = [write(job, str(number)) for number in range(4)]
    lake.steps.crash_after(verb, nth=nth)
    crashed = False
    try:
        job.commit(attempts)
    except Crash:
        crashed = True
    assert crashed or not lake.steps.fired
    assert job.commit(attempts).outcome is Outcome.COMMITTED
    assert lake.contents() == [f"of task {number}".encode() for number in range(4)]
    assert lake.marker() is not None
    assert lake.uploads() == []


def test_committer_with_no_outputs(lake: Lake) -> None:
    job = lake.job()
    with job.task("0") as task:
        pass
    assert task.counted is None
    result = job.commit([task.counted])
    assert (result.outcome, result.files) == (Outcome.COMMITTED, 0)
    assert lake.visible() == {}
    assert lake.scratch(job.directory) == []


def test_map_file_output_committer(lake: Lake) -> None:
    """An output that is a directory of two files arrives with both."""
    job = lake.job()
    job.commit([write(job, files={"part-0/data": b"data", "part-0/index": b"index"})])
    assert lake.visible() == {
        f"out/part-0/data-{job.job_id}": b"data",
        f"out/part-0/index-{job.job_id}": b"index",
    }


def test_abort_task_no_work_done(lake: Lake) -> None:
    task = lake.job().task("0")
    assert task.abort() == []
    assert task.abort() == []
    assert lake.uploads() == []


def test_abort_job_no_work_done(lake: Lake) -> None:
    job = lake.job()
    assert job.abort("nothing was done").accepted
    lake.serve()
    assert job.abort("nothing was done").accepted
    assert lake.visible() == {}
    assert lake.marker() is None


def test_commit_job_but_not_task(lake: Lake) -> None:
    """What a task wrote and did not commit is not there, and its uploads are cancelled."""
    job = lake.job()
    file = job.task("0").open("part-0.txt")
    file.write(b"x" * 40)
    file.close()
    assert job.commit([]).files == 0
    assert lake.visible() == {}
    assert lake.uploads() == []


def test_abort_task_then_job(lake: Lake) -> None:
    job = lake.job()
    task = job.task("0")
    file = task.open("part-0.txt")
    file.write(b"x" * 40)
    file.close()
    assert task.abort() == []
    assert lake.uploads() == []
    _abort_twice(lake, job)


def test_abort_job_not_task(lake: Lake) -> None:
    job = lake.job()
    file = job.task("0").open("part-0.txt")
    file.write(b"x" * 40)
    file.close()
    _abort_twice(lake, job)


def test_fail_abort(lake: Lake) -> None:
    """As Spark does after a commit that raised: that abort changes nothing any more."""
    job = lake.job(conflict="fail")
    lake.put("out/old.txt")
    counted = write(job)
    with pytest.raises(JobFailedError) as failed:
        job.commit([counted])
    assert failed.value.code == "DESTINATION_NOT_EMPTY"
    for _ in range(2):
        assert not job.abort("the commit failed").accepted
        lake.serve()
    assert lake.contents() == [b"old"]
    assert lake.marker() is None
    assert lake.uploads() == []


def _abort_twice(lake: Lake, job: object) -> None:
    for _ in range(2):
        assert job.abort("told to").accepted  # type: ignore[attr-defined]
        lake.serve()
        assert lake.visible() == {}
        assert lake.marker() is None
        assert lake.uploads() == []
        assert lake.scratch(job.directory) == []  # type: ignore[attr-defined]


def test_concurrent_commit_task_with_sub_dir(lake: Lake) -> None:
    job = lake.job()
    with ThreadPoolExecutor(4) as pool:
        attempts = list(
            pool.map(
                lambda number: write(
                    job, str(number), {f"sub_dir/part-{number}.txt": f"{number}".encode()}
                ),
                range(8),
            )
        )
    job.commit(attempts)
    assert list(lake.visible()) == [
        f"out/sub_dir/part-{number}-{job.job_id}.txt" for number in range(8)
    ]


def test_output_format_integration(lake: Lake) -> None:
    """The counts of the commit stand in the marker."""
    job = lake.job()
    job.commit([write(job, str(number)) for number in range(3)])
    marker = lake.marker()
    assert marker is not None
    counters = marker["iostatistics"]["counters"]
    assert counters["committer_files_committed"] == 3
    assert counters["committer_bytes_committed"] == 27


def test_am_workflow(lake: Lake) -> None:
    """Whoever knows no more than the job's place has its tasks' work undone."""
    job = lake.job()
    file = job.task("0", "attempt-of-a-dead-worker").open("part-0.txt")
    file.write(b"x" * 40)
    file.close()
    lake.sent(job).abort("the worker is dead")
    lake.serve()
    assert lake.uploads() == []


def test_parallel_jobs_to_adjacent_paths(lake: Lake) -> None:
    """data1 and data10: a listing without its slash would take one for the other."""
    first, second = lake.job("data1/"), lake.job("data10/")
    mine, theirs = write(first), write(second)
    first.commit([mine])
    assert lake.contents("data1/") == [b"of task 0"]
    assert lake.visible("data10/") == {}
    assert len(lake.uploads("data10/")) == 1
    second.commit([theirs])
    assert lake.contents("data10/") == [b"of task 0"]


def test_parallel_jobs_to_same_destination(lake: Lake) -> None:
    """Hadoop asks to turn off the purge of uploads for this; here each job knows its own."""
    first, second = lake.job(), lake.job()
    mine, theirs = write(first), write(second)
    first.commit([mine])
    assert len(lake.uploads()) == 1
    second.commit([theirs])
    assert lake.contents() == [b"of task 0"] * 2
    marker = lake.marker()
    assert marker is not None
    assert marker["jobId"] == second.job_id


def test_self_generated_uuid(lake: Lake) -> None:
    one, other = (
        open_job(f"s3://{BUCKET}/{OUT}", store=lake.store, environment=SystemEnvironment())
        for _ in range(2)
    )
    assert UUID(one.job_id) != UUID(other.job_id)


def test_require_propagated_uuid(lake: Lake) -> None:
    """A task works under the job's id or not at all: there is none of its own to fall back on."""
    job = lake.job()
    task = lake.sent(job).task("0")
    assert task.directory == job.directory
    with pytest.raises(InvalidInputError) as refused:
        lake.job(job_id="job_202611212207_0001")
    assert refused.value.code == "BAD_ID"


def test_committers_paths_have_uuid(lake: Lake) -> None:
    job = lake.job()
    counted = write(job)
    assert all(job.job_id in key for key in lake.all_keys() + lake.uploads())
    job.commit([counted])
    shared = {"out/_SUCCESS"}
    assert all(job.job_id in key for key in lake.all_keys() if key not in shared)
    for key in lake.visible():
        facts = lake.store.head(BUCKET, key)
        assert facts is not None
        assert facts.metadata[META_JOB] == job.job_id


def test_commit_protocol_failure(lake: Lake) -> None:
    """A store that could never commit is refused at setup, before anything is written."""

    class NoQueue:
        def request_queues(self, bucket: str) -> list[str] | None:
            return []

    with pytest.raises(NotFoundError) as refused:
        lake.job(probe=NoQueue())
    assert refused.value.code == "NO_PIPELINE"
    assert lake.all_keys() == []


@pytest.mark.parametrize("ends", ["committed", "aborted", "refused"])
def test_staging_uploads_directory_is_deleted(lake: Lake, ends: str) -> None:
    """Of a job that has ended its three words stay, and nothing that tasks or plans left."""
    job = lake.job(conflict="fail" if ends == "refused" else "append")
    counted = write(job)
    if ends == "committed":
        job.commit([counted])
    elif ends == "aborted":
        job.abort("told to")
        lake.serve()
    else:
        lake.put("out/old.txt")
        with pytest.raises(JobFailedError):
            job.commit([counted])
    assert lake.scratch(job.directory) == []


@pytest.mark.parametrize("where", ["setup job", "setup task", "commit task", "commit job"])
def test_fault_injection(lake: Lake, where: str) -> None:
    """CommitterFaultInjection's places that are requests of the client; the rest is tests/crash."""
    error = TransientError("503")
    if where == "setup job":
        lake.tasks.fail("put", error)
        with pytest.raises(TransientError):
            lake.job()
        assert lake.all_keys() == []
        return
    job = lake.job()
    if where == "setup task":
        lake.tasks.fail("create_upload", error)
    elif where == "commit task":
        lake.tasks.fail("put", error, times=None, where=lambda call: "/tasks/" in call.key)
    else:
        counted = write(job)
        lake.tasks.fail("put", error)
        assert job.commit([counted]).outcome is Outcome.COMMITTED
        return
    with pytest.raises(TransientError):
        write(job)
    assert lake.uploads() == []
    job.abort("a task failed")
    lake.serve()
    assert lake.visible() == {}
