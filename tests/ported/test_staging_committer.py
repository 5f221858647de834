"""TestStagingCommitter, in our words, on both kinds of uploads (docs/ported.md)."""

from __future__ import annotations

import uuid

import pytest

from s3commit.core.formats.layout import META_JOB
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    TransientError,
)
from s3commit.core.model.job import CountedAttempt
from s3commit.writer.job import Job
from tests.ported.support import Lake, write
from tests.writer.support import BUCKET, JOB

TEXT = b"ten bytes." * 4  # three parts


@pytest.fixture(params=["stream", "stage"])
def lake(request: pytest.FixtureRequest) -> Lake:
    return Lake(upload=request.param)


def test_uuid_propagation(lake: Lake) -> None:
    """The id that the job was given is in the names, the metadata and the manifest."""
    job = lake.job(job_id=JOB)
    counted = write(job)
    assert lake.manifest(job, counted).job_id == JOB
    job.commit([counted])
    [key] = lake.visible()
    facts = lake.store.head(BUCKET, key)
    assert facts is not None
    assert (JOB in key, facts.metadata[META_JOB]) == (True, JOB)


def test_uuid_validation(lake: Lake) -> None:
    with pytest.raises(InvalidInputError) as refused:
        lake.job(job_id="not-a-uuid")
    assert refused.value.code == "BAD_ID"


def test_job_id_is_uuid(lake: Lake) -> None:
    uuid.UUID(lake.job().job_id)


def test_attempt_paths_different_by_task_attempt(lake: Lake) -> None:
    job = lake.job()
    one, other = write(job, attempt_id="a0"), write(job, attempt_id="a1")
    assert one.manifest != other.manifest


def test_commit_path_construction(lake: Lake) -> None:
    job = lake.job()
    counted = write(job, "7", attempt_id="a0")
    assert counted.manifest == "tasks/7/a0.pendingset"
    assert f"{job.directory.prefix}tasks/7/a0.pendingset" in lake.all_keys()


def test_single_task_commit(lake: Lake) -> None:
    job = lake.job()
    counted = write(job, files={"part-0.txt": TEXT})
    [file] = lake.manifest(job, counted).files
    [upload] = lake.store.list_uploads(BUCKET, "")
    assert (file.bucket, file.key) == (BUCKET, f"out/part-0-{job.job_id}.txt")
    assert (file.key, file.upload_id) == (upload.key, upload.upload_id)
    assert (len(file.etags), file.length) == (3, 40)


def test_single_task_empty_file_commit(lake: Lake) -> None:
    job = lake.job()
    counted = write(job, files={"empty.txt": b""})
    [file] = lake.manifest(job, counted).files
    assert (len(file.etags), file.length) == (1, 0)
    assert len(lake.uploads()) == 1


def test_single_task_multi_file_commit(lake: Lake) -> None:
    job = lake.job()
    counted = write(job, files={f"part-{number}.txt": TEXT for number in range(3)})
    files = lake.manifest(job, counted).files
    assert sorted(file.key for file in files) == lake.uploads()
    assert (counted.files, counted.bytes) == (3, 120)


def two_files(job: Job) -> None:
    write(job, files={"part-0.txt": TEXT, "part-1.txt": TEXT})


def test_task_initialize_failure(lake: Lake) -> None:
    """The second upload can't be started: the first one is aborted, and there is no manifest."""
    job = lake.job()
    lake.tasks.fail("create_upload", AccessError("no"), nth=2)
    with pytest.raises(AccessError):
        two_files(job)
    assert lake.uploads() == []
    assert lake.scratch(job.directory) == []


def test_task_single_file_upload_failure(lake: Lake) -> None:
    job = lake.job()
    lake.tasks.fail("upload_part", AccessError("no"), nth=2)
    with pytest.raises(AccessError):
        write(job, files={"part-0.txt": TEXT})
    assert lake.uploads() == []
    assert lake.scratch(job.directory) == []


def test_task_multi_file_upload_failure(lake: Lake) -> None:
    """Part 5 of all, the second one of the second file."""
    job = lake.job()
    lake.tasks.fail("upload_part", AccessError("no"), nth=5)
    with pytest.raises(AccessError):
        two_files(job)
    assert lake.tasks.count("create_upload") == 2
    assert lake.uploads() == []
    assert lake.scratch(job.directory) == []


def test_task_upload_and_abort_failure(lake: Lake) -> None:
    """The upload's error is the one that is told; what could not be aborted the job's end does."""
    job = lake.job()
    lake.tasks.fail("upload_part", AccessError("no upload"), nth=5)
    lake.tasks.fail("abort_upload", TransientError("no abort"), times=None)
    with pytest.raises(AccessError, match="no upload"):
        two_files(job)
    assert len(lake.uploads()) == 2
    job.abort("its task failed")
    lake.serve()
    assert lake.uploads() == []


def test_single_task_abort(lake: Lake) -> None:
    job = lake.job()
    task = job.task("0")
    task.open("part-0.txt").write(TEXT)
    assert task.abort() == []
    assert lake.uploads() == []
    assert lake.scratch(job.directory) == []


def four_tasks(job: Job) -> list[CountedAttempt]:
    return [
        write(job, str(task), {f"part-{task}-{number}.txt": TEXT for number in range(3)})
        for task in range(4)
    ]


def test_job_commit(lake: Lake) -> None:
    job = lake.job()
    attempts = four_tasks(job)
    uploads = lake.uploads()
    job.commit(attempts)
    assert sorted(lake.visible()) == uploads
    assert (lake.steps.count("abort_upload"), lake.steps.count("complete_upload")) == (0, 12)


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
    deleted = [call for call in lake.steps.calls if call.verb == "delete" and "/part-" in call.key]
    assert len(deleted) == 11
    assert lake.scratch(job.directory) == []


def test_job_abort(lake: Lake) -> None:
    job = lake.job()
    four_tasks(job)
    job.abort("killed")
    lake.serve()
    assert lake.uploads() == []
    assert (lake.steps.count("complete_upload"), lake.steps.count("abort_upload")) == (0, 12)
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
