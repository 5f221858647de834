"""``s3commit fsck`` of a decided job that can't go on: it names the document that is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.fsck import check
from s3commit.core.model.job import Conflict
from s3commit.testing.survey import MemorySurvey
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk
from tests.core.world import BUCKET

FSCK = ("fsck", SALES, "--table", TABLE)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """The command over a job's data that another one is about to replace."""
    desk.session.survey = MemorySurvey(desk.world.store)
    desk.committed_job(OTHER)
    return desk


def delete(desk: Desk, key: str) -> None:
    desk.world.store.delete(BUCKET, key)


def change(desk: Desk, key: str) -> None:
    desk.world.store.put(BUCKET, key, b"{}")


def stuck(desk: Desk, step: str) -> JobDirectory:
    directory = desk.job_at(step, conflict=Conflict.REPLACE)
    desk.dies(JOB)
    return directory


def named(desk: Desk, *, state: str) -> list[str]:
    """The documents that the finding names."""
    (line,) = desk.run(*FSCK, exit_code=1).stdout.splitlines()
    assert line.startswith(f"NOT_GOING_ON  __magic_job-{JOB}/ ({state}")
    assert line.endswith("  -> start-execution")
    inside = line.partition(f"({state}")[2].rpartition(")")[0]
    return inside.removeprefix(", gone or changed: ").split(", ") if inside else []


def of(desk: Desk, directory: JobDirectory, what: str) -> str:
    """The first key in the job's directory that begins so."""
    own = [
        *desk.world.all_keys(directory.prefix + what),
        *desk.world.all_keys(directory.pipeline_prefix + what),
    ]
    return own[0]


@pytest.mark.parametrize("lose", [delete, change])
@pytest.mark.parametrize("what", ["plan", "tasks/", "replaced-", "replaced/"])
def test_what_a_published_job_lacks_is_named(
    desk: Desk, what: str, lose: Callable[[Desk, str], None]
) -> None:
    directory = stuck(desk, "BeginPublish")
    assert named(desk, state="PUBLISHING") == []
    key = of(desk, directory, what)
    lose(desk, key)
    assert named(desk, state="PUBLISHING") == [key.removeprefix(directory.prefix)]


def test_a_decided_jobs_plan_is_made_again_of_request_and_manifests_so_they_are_named(
    desk: Desk,
) -> None:
    directory = stuck(desk, "DecideCommit")
    plan, manifest = of(desk, directory, "plan"), of(desk, directory, "tasks/")
    delete(desk, plan)
    delete(desk, manifest)
    lost = [key.removeprefix(directory.prefix) for key in (plan, manifest)]
    assert named(desk, state="COMMITTING") == lost
    delete(desk, directory.request)
    assert named(desk, state="COMMITTING") == [lost[0], "request.json"]


def test_a_job_that_is_listed_needs_its_replace_list_alone(desk: Desk) -> None:
    directory = stuck(desk, "RemoveReplaced")
    delete(desk, of(desk, directory, "plan"))
    delete(desk, of(desk, directory, "tasks/"))
    assert named(desk, state="PUBLISHING") == []
    index = of(desk, directory, "replaced-")
    delete(desk, index)
    assert named(desk, state="PUBLISHING") == [index.removeprefix(directory.prefix)]


def test_many_are_told_in_short(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SHOWN", 1)
    directory = stuck(desk, "DecideCommit")
    manifests = list(desk.world.all_keys(directory.tasks))
    for key in manifests:
        delete(desk, key)
    assert named(desk, state="COMMITTING") == [
        f"{manifests[0].removeprefix(directory.prefix)} and {len(manifests) - 1} more"
    ]


def test_a_job_at_work_is_not_looked_into(desk: Desk) -> None:
    directory = desk.job_at("DecideCommit", conflict=Conflict.REPLACE)
    delete(desk, of(desk, directory, "plan"))
    assert desk.run(*FSCK).stdout == ""
