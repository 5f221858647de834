"""Staged files in a task, beside streamed ones."""

from __future__ import annotations

from typing import cast

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.job import Job, open_job
from s3commit.writer.sizes import Upload, UploadSettings
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import (
    BUCKET,
    DESTINATION,
    JOB,
    ScriptedEnvironment,
    completed_bytes,
    files_of,
    visible,
)


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(BUCKET, min_part_bytes=1)


# --- in a task


def test_files_of_both_kinds_stand_in_one_manifest(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    with job.task("0") as task:
        with task.open("a.zip", upload="stage", rows=3) as staged:
            staged.write(b"staged")
            staged.seek(0)
            staged.write(b"S")
        with task.open("b.csv") as streamed:
            streamed.write(b"streamed")
    assert plan.counts() == {"create_upload": 2, "put": 1, "upload_part": 2}
    assert task.counted is not None
    files = files_of(store, job, task.counted)
    assert [(file.key, file.rows) for file in files] == [
        (f"t/a-{JOB}.zip", 3),
        (f"t/b-{JOB}.csv", None),
    ]
    assert [completed_bytes(store, file) for file in files] == [b"Staged", b"streamed"]


@pytest.mark.parametrize("word", [Upload.STAGE, "stage"])
def test_the_jobs_settings_choose_unless_the_opener_does(
    store: MemoryObjectStore, word: Upload
) -> None:
    job = open_job(DESTINATION, store=store, settings=UploadSettings(upload=word))
    with job.task("0") as task, task.open("a") as chosen, task.open("b", upload="stream") as other:
        pass
    assert (chosen.seekable(), other.seekable()) == (True, False)


def test_another_way_of_uploading_is_refused(job: Job, plan: FaultPlan) -> None:
    with pytest.raises(InvalidInputError, match="neither 'stream' nor 'stage'"):
        job.task("0").open("a", upload="later")
    assert plan.count() == 0
    with pytest.raises(InvalidInputError, match="neither 'stream' nor 'stage'"):
        UploadSettings(upload=cast("Upload", "later"))


def test_sealed_staged_files_are_closed_by_finish(job: Job, store: MemoryObjectStore) -> None:
    task = job.task("0")
    for number in range(3):
        file = task.open(f"{number}", upload="stage")
        file.write(b"abc")
        file.seal()
    counted = task.finish()
    assert counted is not None
    assert [completed_bytes(store, file) for file in files_of(store, job, counted)] == [b"abc"] * 3


@pytest.mark.parametrize("nth", range(1, 7))
def test_i1_i3_a_crash_at_any_request_leaves_nothing_visible_and_nothing_counted(
    store: MemoryObjectStore, nth: int
) -> None:
    plan = FaultPlan().crash_before(nth=nth)
    job = open_job(DESTINATION, store=store, job_id=JOB, environment=ScriptedEnvironment())
    job.connect(plan.wrap(store))
    task = job.task("0")
    try:
        for name in "ab":
            with task.open(name, upload="stage") as file:
                file.write(b"x")
        task.finish()
    except Crash:
        assert task.counted is None
    assert bool(plan.fired) == (nth <= 5)
    assert [key for key in visible(store) if "__magic_job-" not in key] == []
    assert len(visible(store, job.directory.tasks)) == (1 if nth > 5 else 0)
