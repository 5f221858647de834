"""``s3commit commit`` for a driver that died: tasks that never began leave no trace."""

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import PendingSet
from tests.cli.support import JOB, Desk, uri_of
from tests.core.world import BUCKET, job_directory


def job(desk: Desk, *said: int | None) -> JobDirectory:
    """A job with a task for each of ``said``, which is the number of tasks in its manifest."""
    directory = job_directory(JOB)
    desk.world.open(directory)
    for number, count in enumerate(said):
        name = f"part-{number}-{JOB}.csv"
        file = desk.world.upload(directory, name, b"x", task=str(number), attempt="a0")
        pending = PendingSet(JOB, (file,), str(number), "a0", count)
        desk.world.drop(directory, pending, str(number), "a0")
    return directory


def asked(desk: Desk, directory: JobDirectory) -> bool:
    return desk.world.store.head(BUCKET, directory.request) is not None


def test_i2_a_task_that_the_manifests_miss_needs_a_word(desk: Desk) -> None:
    directory = job(desk, 3, 3)
    line = desk.fails("commit", uri_of(directory), exit_code=3)
    assert f"job {JOB}: there are manifests of 2 tasks, not 3" in line
    assert f"To give the job up: s3commit abort {directory.typed} [TASKS_MISSING]" in line
    assert not asked(desk, directory)
    assert desk.json("show", uri_of(directory))["tasks"] == {"done": 2, "of": 3}
    shown = [
        " ".join(line.split()) for line in desk.run("show", uri_of(directory)).stdout.split("\n")
    ]
    assert "tasks done 2, of 3" in shown
    told = desk.run("commit", uri_of(directory), "--partial")
    assert "1 task has no manifest: their files are not committed" in told.stderr
    desk.world.run(directory)
    assert len(desk.world.visible()) == 2


def test_as_many_tasks_as_the_manifests_say_need_none(desk: Desk) -> None:
    directory = job(desk, 2, None)
    document = desk.json("commit", uri_of(directory))
    assert (document["tasks"], document["taskCount"]) == (2, 2)
    assert asked(desk, directory)


def test_i2_where_nobody_says_how_many_tasks_there_are_a_person_must(desk: Desk) -> None:
    directory = job(desk, None, None)
    assert desk.json("show", uri_of(directory))["tasks"] is None
    line = desk.fails("commit", uri_of(directory), exit_code=3)
    assert "manifests of 2 tasks, and nothing says of how many" in line
    assert "--tasks 2" in line
    assert f"s3commit abort {directory.typed}" in line
    for wrong in ("1", "3"):
        line = desk.fails("commit", uri_of(directory), "--tasks", wrong, exit_code=3)
        assert f"manifests of 2 tasks, not {wrong}" in line
    assert not asked(desk, directory)
    desk.run("commit", uri_of(directory), "--tasks", "2")
    assert asked(desk, directory)


def test_the_larger_number_counts(desk: Desk) -> None:
    directory = job(desk, 3, 3)
    assert "not 3" in desk.fails("commit", uri_of(directory), "--tasks", "2", exit_code=3)


@pytest.mark.parametrize("word", [("--tasks", "2"), ("--partial",)])
def test_i2_a_manifest_that_is_deleted_after_the_look_is_missed(
    desk: Desk, word: tuple[str, ...]
) -> None:
    """The request names what was looked at: less is never committed in silence."""
    directory = job(desk, None, None)
    desk.run("commit", uri_of(directory), *word)
    desk.world.store.delete(BUCKET, directory.manifest("1", "a0"))
    desk.world.run(directory)
    assert desk.world.failure(directory).code == "MANIFEST_MISSING"
    assert desk.world.visible() == {}
