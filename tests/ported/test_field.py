"""The field's tests that no test of ours states as well, in our words: docs/ported.md has them all.

They are written as programs: a job is opened, its tasks write, and the state machine runs while the
driver waits for the result.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.formats.layout import META_JOB
from s3commit.core.model.errors import (
    AccessError,
    JobFailedError,
    JobRefusedError,
    TransientError,
)
from s3commit.core.model.job import CountedAttempt, Outcome
from s3commit.writer.job import Job
from tests.fakes.faults import Crash
from tests.ported.support import Lake, write
from tests.writer.support import BUCKET

TEXT = b"ten bytes." * 4  # three parts
HOURS = [f"dateint={date}/hour={hour}" for date in (20161115, 20161116) for hour in (13, 14)]
FILES = {f"{hour}/part.parquet": hour.encode() for hour in HOURS}


@pytest.fixture
def lake() -> Lake:
    return Lake()


def four_tasks(job: Job) -> list[CountedAttempt]:
    return [
        write(job, str(task), {f"part-{task}-{number}.txt": TEXT for number in range(3)})
        for task in range(4)
    ]


def old_at(lake: Lake, *directories: str) -> None:
    for directory in directories:
        lake.put(f"out/{directory}/old.parquet", f"{directory} before".encode())


# AbstractITCommitProtocol


def test_recovery_and_cleanup(lake: Lake) -> None:
    """A driver that starts again neither sees nor touches the work of its first job."""
    first = lake.job()
    counted = write(first)
    second = lake.job()
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


def test_a_task_is_counted_by_a_driver_that_kept_the_jobs_id(lake: Lake) -> None:
    """Hadoop's recoverTask raises. Here a task's commit is a fact in S3, whoever counts it."""
    first = lake.job()
    counted = write(first)
    assert lake.sent(first).commit([counted]).outcome is Outcome.COMMITTED
    assert lake.contents() == [b"of task 0"]


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


def _nothing(_job: Job) -> None:
    """No task has begun."""


def _written(job: Job) -> None:
    """A task has written and is gone; nobody knows its attempt."""
    job.task("0").open("part-0.txt").write(TEXT)


def _aborted(job: Job) -> None:
    task = job.task("0")
    task.open("part-0.txt").write(TEXT)
    assert task.abort() == []
    assert task.abort() == []


@pytest.mark.parametrize("work", [_nothing, _written, _aborted, write])
def test_abort_job(lake: Lake, work: Callable[[Job], object]) -> None:
    """testAbortTaskNoWorkDone to testAbortJobNotTask, and testAMWorkflow: twice each."""
    job = lake.job()
    work(job)
    for _ in range(2):
        assert lake.sent(job).abort("no more").accepted
        lake.serve()
        assert lake.visible() == {}
        assert lake.marker() is None
        assert lake.uploads() == []
        assert lake.scratch(job.directory) == []


def test_commit_job_but_not_task(lake: Lake) -> None:
    """What a task wrote and did not finish is not there, and its uploads are aborted."""
    job = lake.job()
    _written(job)
    assert job.commit([]).files == 0
    assert lake.visible() == {}
    assert lake.uploads() == []


def test_fail_abort(lake: Lake) -> None:
    """Spark aborts after a commit that raised: that abort changes nothing any more."""
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


@pytest.mark.parametrize("places", [("data1/", "data10/"), ("out/", "out/")])
def test_parallel_jobs(lake: Lake, places: tuple[str, str]) -> None:
    """To adjacent paths (a listing without its slash would mix them up), and to the same one.

    Hadoop asks to turn off the purge of uploads for that; here each job knows its own.
    """
    first, second = map(lake.job, places)
    mine, theirs = write(first), write(second)
    first.commit([mine])
    assert lake.contents(places[0]) == [b"of task 0"]
    assert len(lake.uploads(places[1])) == 1
    second.commit([theirs])
    assert len(lake.contents(places[1])) == (2 if places[0] == places[1] else 1)
    marker = lake.marker(places[1])
    assert marker is not None
    assert marker["jobId"] == second.job_id


def test_committers_paths_have_uuid(lake: Lake) -> None:
    job = lake.job()
    counted = write(job)
    assert all(job.job_id in key for key in lake.all_keys() + lake.uploads())
    job.commit([counted])
    assert all(job.job_id in key for key in lake.all_keys() if key != "out/_SUCCESS")
    for key in lake.visible():
        facts = lake.store.head(BUCKET, key)
        assert facts is not None
        assert facts.metadata[META_JOB] == job.job_id


# ITestCommitOperations


def test_failures_in_abort_listing(lake: Lake) -> None:
    """A listing that fails is repeated: no upload is forgotten for it."""
    job = lake.job()
    write(job)
    lake.steps.fail("list_uploads", TransientError("503"), times=3)
    job.abort("no more")
    lake.serve()
    assert len(lake.steps.fired) == 3
    assert lake.uploads() == []


def test_commit_operations(lake: Lake) -> None:
    """Two failures of a completion, and two answers of it that were lost, cost a repetition."""
    job = lake.job()
    attempts = [write(job, str(number)) for number in range(3)]
    lake.steps.fail("complete_upload", TransientError("500"), times=2)
    lake.steps.lose_response("complete_upload", nth=4, times=2)
    assert job.commit(attempts).outcome is Outcome.COMMITTED
    assert len(lake.steps.fired) == 4
    assert len(lake.visible()) == 3


def test_revert_missing_commit(lake: Lake) -> None:
    """A roll back finds the file that it is to delete gone already, which is no error."""
    job = lake.job()
    attempts = [write(job, str(number)) for number in range(3)]
    lost = list(lake.store.list_uploads(BUCKET, "out/"))[-1]
    lake.steps.run_after(
        "decide", lambda: lake.store.abort_upload(BUCKET, lost.key, lost.upload_id)
    )

    def remove() -> None:
        for key in list(lake.visible()):
            lake.store.delete(BUCKET, key)

    lake.steps.run_before("delete", remove)
    with pytest.raises(JobFailedError):
        job.commit(attempts)
    assert lake.visible() == {}


# TestStagingCommitter


@pytest.mark.parametrize(
    ("verb", "nth"), [("create_upload", 2), ("upload_part", 2), ("upload_part", 5)]
)
def test_task_upload_failure(lake: Lake, verb: str, nth: int) -> None:
    """The second upload, a part of the first file, a part of the second: nothing is left."""
    job = lake.job()
    lake.tasks.fail(verb, AccessError("no"), nth=nth)
    with pytest.raises(AccessError):
        write(job, files={"part-0.txt": TEXT, "part-1.txt": TEXT})
    assert lake.uploads() == []
    assert lake.scratch(job.directory) == []


def test_task_upload_and_abort_failure(lake: Lake) -> None:
    """The upload's error is the one that is raised; the job's end aborts what is left."""
    job = lake.job()
    lake.tasks.fail("upload_part", AccessError("no upload"), nth=5)
    lake.tasks.fail("abort_upload", TransientError("no abort"), times=None)
    with pytest.raises(AccessError, match="no upload"):
        write(job, files={"part-0.txt": TEXT, "part-1.txt": TEXT})
    assert len(lake.uploads()) == 2
    job.abort("its task failed")
    lake.serve()
    assert lake.uploads() == []


def test_job_commit_failure(lake: Lake) -> None:
    """Hadoop's fifth completion fails: four are deleted and the rest aborted.

    A completion that fails for a while is repeated here. One that never can succeed, since its
    upload is gone, has the same outcome: all that was completed is deleted, and nothing is open.
    """
    job = lake.job()
    attempts = four_tasks(job)
    lost = list(lake.store.list_uploads(BUCKET, ""))[4]
    lake.steps.run_before(
        "complete_upload", lambda: lake.store.abort_upload(BUCKET, lost.key, lost.upload_id), nth=5
    )
    with pytest.raises(JobFailedError) as failed:
        job.commit(attempts)
    assert failed.value.code == "UPLOADS_LOST"
    assert lake.visible() == {}
    assert lake.uploads() == []
    assert lake.scratch(job.directory) == []


def test_job_abort_failure(lake: Lake) -> None:
    """An abort that fails is repeated until no upload is left (Netflix's suite has it, too)."""
    job = lake.job()
    attempts = four_tasks(job)
    lake.steps.fail("abort_upload", TransientError("503"), nth=5)
    job.abort("killed")
    lake.serve()
    assert lake.uploads() == []
    with pytest.raises(JobRefusedError):
        job.commit(attempts)


# The directory and partitioned staging suites


@pytest.mark.parametrize("conflict", ["append", "replace"])
def test_conflict_if_dest_is_file(lake: Lake, conflict: str) -> None:
    """Hadoop fails. To S3 an object named as the directory is another key, and stays."""
    lake.put("out", b"a file named out")
    job = lake.job(conflict=conflict)
    job.commit([write(job, files=FILES)])
    assert lake.contents() == sorted(FILES.values())
    assert lake.store.get(BUCKET, "out", max_bytes=100).body == b"a file named out"


@pytest.mark.parametrize("conflict", ["append", "fail", "replace"])
def test_partitioned_task_commit(lake: Lake, conflict: str) -> None:
    """A task's commit looks at nothing: what it found would not hold until the job commits."""
    old_at(lake, HOURS[0])
    job = lake.job(conflict=conflict, scope="partition")
    lake.tasks.forget_calls()
    write(job, files=FILES)
    assert set(lake.tasks.counts()) == {"create_upload", "upload_part", "put"}
    assert len(lake.uploads()) == 4
    assert lake.contents() == [f"{HOURS[0]} before".encode()]


@pytest.mark.parametrize(
    ("there", "stays"),
    [
        ([], []),
        (["dateint=20161115", "dateint=20161115/hour=12"], [0, 1]),
        (["dateint=20161115/hour=12", "dateint=20161115/hour=13"], [0]),
        (["dateint=20161116/hour=130", "dateint=20161116/hour=1"], [0, 1]),
    ],
    ids=str,
)
def test_replace(lake: Lake, there: list[str], stays: list[int]) -> None:
    """Of what is there, the partitions that the job writes are replaced, and no others."""
    old_at(lake, *there)
    job = lake.job(conflict="replace", scope="partition")
    job.commit([write(job, files=FILES)])
    kept = [f"{there[index]} before".encode() for index in stays]
    assert lake.contents() == sorted([*FILES.values(), *kept])


def test_replace_with_delete_failure(lake: Lake) -> None:
    """Hadoop deletes first, so a failure aborts the job, and the old data is gone with it.

    Here the new data is visible before anything is deleted (I10): the deletion is repeated, by
    another execution if need be, and the job is committed.
    """
    old_at(lake, HOURS[3])
    job = lake.job(conflict="replace", scope="partition")
    counted = write(job, files=FILES)
    lake.steps.fail("delete_seen", TransientError("503"), times=3)
    lake.steps.crash_before("delete_seen", nth=4)
    with pytest.raises(Crash):
        job.commit([counted])
    assert len(lake.visible()) == 5, "all that is new, and what is to go"
    assert job.commit([counted]).replaced == 1
    assert lake.contents() == sorted(FILES.values())
