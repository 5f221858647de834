"""ITestCommitOperations, ITestCommitOperationCost and ITestUploadRecovery (docs/ported.md)."""

from __future__ import annotations

import pytest

from s3commit.core.model.errors import JobFailedError, JobRefusedError, TransientError
from s3commit.core.model.job import Outcome
from tests.fakes.faults import Call
from tests.ported.support import OUT, Lake, write
from tests.writer.support import BUCKET

SMALL = bytes(range(97, 129)) * 32  # 1,024 bytes: 64 parts


@pytest.fixture
def lake() -> Lake:
    return Lake()


def lose_an_upload(lake: Lake) -> None:
    """Someone aborts an upload after the decision: what makes a roll back."""
    upload = list(lake.store.list_uploads(BUCKET, OUT))[-1]
    lake.steps.run_after(
        "decide", lambda: lake.store.abort_upload(BUCKET, upload.key, upload.upload_id)
    )


def test_create_abort_empty_file(lake: Lake) -> None:
    job = lake.job()
    counted = write(job, files={"empty.txt": b""})
    assert counted.files == 1
    job.abort("told to")
    lake.serve()
    assert lake.visible() == {}
    assert lake.uploads() == []
    assert lake.scratch(job.directory) == []


def test_commit_empty_file(lake: Lake) -> None:
    job = lake.job()
    job.commit([write(job, files={"empty.txt": b""})])
    assert lake.visible() == {f"out/empty-{job.job_id}.txt": b""}


def test_commit_small_file(lake: Lake) -> None:
    job = lake.job()
    counted = write(job, files={"small.txt": SMALL})
    [file] = lake.manifest(job, counted).files
    assert (file.length, len(file.etags)) == (1024, 64)
    assert lake.visible() == {}
    job.commit([counted])
    assert lake.contents() == [SMALL]


@pytest.mark.parametrize("data", [b"", SMALL], ids=["empty", "small"])
def test_upload_file(data: bytes) -> None:
    """testUploadEmptyFile and testUploadSmallFile: from local disk, as the staging committers do.

    The upload is pending and nothing is seen before the commit; after it, the file is whole.
    """
    lake = Lake(upload="stage")
    job = lake.job()
    with job.task("0") as task:
        with task.open("staged.bin") as file:
            file.write(data)
            assert lake.uploads() == []
        assert len(lake.uploads()) == 1
    assert lake.visible() == {}
    job.commit([task.counted])
    assert lake.contents() == [data]


def test_abort_nonexistent_dir(lake: Lake) -> None:
    """Aborting a job of which nothing is in S3 is a job that ended, and no error."""
    job = lake.job()
    lake.store.delete(BUCKET, job.directory.job)
    job.abort("there is nothing")
    lake.serve()
    assert lake.visible() == {}
    with pytest.raises(JobRefusedError) as failed:
        job.commit([])
    assert failed.value.code == "ABORT_REQUESTED"


def test_base_relative_path(lake: Lake) -> None:
    """A file in a directory of its own ends up in that directory."""
    job = lake.job()
    job.commit([write(job, files={"subdir/child.txt": b"x"})])
    assert list(lake.visible()) == [f"out/subdir/child-{job.job_id}.txt"]


def test_revert_commit(lake: Lake) -> None:
    """What is visible of a job that can't be whole is deleted, and nothing else."""
    lake.put("out/old.txt")
    job = lake.job()
    attempts = [write(job, str(number)) for number in range(3)]
    lose_an_upload(lake)
    with pytest.raises(JobFailedError) as failed:
        job.commit(attempts)
    assert failed.value.code == "UPLOADS_LOST"
    assert lake.steps.count("complete_upload") == 3
    assert lake.contents() == [b"old"]
    assert lake.uploads() == []


def test_revert_commit_brings_back_what_it_covered() -> None:
    """Hadoop's revert deletes the key, and with it the file of before."""
    lake = Lake(versioned=True)
    lake.put("out/a.csv")
    job = lake.job(names="exact", conflict="replace")
    attempts = [write(job, task, {f"{task}.csv": b"new"}) for task in ("a", "b")]
    lose_an_upload(lake)
    with pytest.raises(JobFailedError) as failed:
        job.commit(attempts)
    assert failed.value.code == "UPLOADS_LOST"
    assert lake.visible() == {"out/a.csv": b"old"}


def test_revert_missing_commit(lake: Lake) -> None:
    """A file that was to be deleted and is gone already is no error."""
    job = lake.job()
    attempts = [write(job, str(number)) for number in range(3)]
    lose_an_upload(lake)

    def remove() -> None:
        for key in list(lake.visible()):
            lake.store.delete(BUCKET, key)

    lake.steps.run_before("delete", remove)
    with pytest.raises(JobFailedError):
        job.commit(attempts)
    assert lake.visible() == {}


def test_failures_in_abort_listing(lake: Lake) -> None:
    """A listing that fails is repeated: no upload is forgotten for it."""
    job = lake.job()
    write(job)
    lake.steps.fail("list_uploads", TransientError("503"), times=3)
    job.abort("told to")
    lake.serve()
    assert len(lake.steps.fired) == 3
    assert lake.uploads() == []


def test_bulk_commit_files(lake: Lake) -> None:
    job = lake.job()
    names = [f"part-{number:02d}.txt" for number in range(20)]
    counted = write(job, files={name: name.encode() for name in names})
    assert lake.visible() == {}
    job.commit([counted])
    assert lake.contents() == [name.encode() for name in names]


# Costs


def test_cost_of_creating_magic_file(lake: Lake) -> None:
    """Opening is one request and no look; closing is its last part; the manifest is one more.

    Hadoop: none and one; two at the close of each file.
    """
    job = lake.job()
    task = job.task("0")
    lake.tasks.forget_calls()
    file = task.open("part-0.txt")
    assert lake.tasks.counts() == {"create_upload": 1}
    file.write(b"hello")
    file.close()
    assert lake.tasks.counts() == {"create_upload": 1, "upload_part": 1}
    counted = task.finish()
    assert lake.tasks.counts() == {"create_upload": 1, "upload_part": 1, "put": 1}
    job.commit([counted])
    [key] = lake.visible()
    commit = [call.verb for call in lake.steps.calls if call.key == key]
    assert commit == ["complete_upload"], "no look at the destination, no delete"


def test_cost_of_saving_loading_pending_file(lake: Lake) -> None:
    """A manifest is one PUT; loading it is one GET, without a HEAD or a listing."""
    job = lake.job()
    counted = write(job)

    def of_manifest(call: Call) -> bool:
        return call.key.endswith(counted.manifest)

    assert [call.verb for call in lake.tasks.calls if of_manifest(call)] == ["put"]
    job.commit([counted])
    seen = [call.verb for call in lake.steps.calls if of_manifest(call)]
    assert set(seen) == {"get"}


# Recovery of uploads


def test_put_recovery(lake: Lake) -> None:
    """An answer to the request that was lost does not lose the job."""
    job = lake.job()
    counted = write(job)
    lake.tasks.lose_response("put", times=2)
    assert job.commit([counted]).outcome is Outcome.COMMITTED


def test_magic_write_recovery(lake: Lake) -> None:
    """A part that S3 refused for good fails the file, at the latest at its close (C3).

    The 500s that pass are botocore's to repeat: six times, see s3commit.aws.s3_client.
    """
    job = lake.job()
    lake.tasks.fail("upload_part", TransientError("500"))
    with pytest.raises(TransientError), job.task("0") as task, task.open("part-0.txt") as file:
        file.write(b"x" * 40)
    assert lake.uploads() == []
    job.commit([write(job)])
    assert lake.contents() == [b"of task 0"]


def test_commit_operations(lake: Lake) -> None:
    """Two failures of a completion, and two answers of it that were lost, cost a repetition."""
    job = lake.job()
    attempts = [write(job, str(number)) for number in range(3)]
    lake.steps.fail("complete_upload", TransientError("500"), times=2)
    lake.steps.lose_response("complete_upload", nth=4, times=2)
    assert job.commit(attempts).outcome is Outcome.COMMITTED
    assert len(lake.steps.fired) == 4
    assert len(lake.visible()) == 3
