"""``s3commit fsck`` of a decided job that can't go on: it names the document that is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.fsck import check
from s3commit.core.model.job import Conflict
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk
from tests.core.fsck_world import MemoryLooks
from tests.core.world import BUCKET

FSCK = ("fsck", SALES, "--table", TABLE)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """The command over a job's data that another one is about to replace."""
    desk.session.looks = MemoryLooks(desk.world.store)
    desk.committed_job(OTHER)
    return desk


def delete(desk: Desk, key: str) -> None:
    desk.world.store.delete(BUCKET, key)


def change(desk: Desk, key: str) -> None:
    desk.world.store.put(BUCKET, key, b"{}")


def stuck(desk: Desk, step: str) -> JobDirectory:
    place = desk.job_at(step, conflict=Conflict.REPLACE)
    desk.dies(JOB)
    return place


def named(desk: Desk, *, state: str) -> list[str]:
    """The documents that the finding names."""
    (line,) = desk.run(*FSCK, exit_code=1).stdout.splitlines()
    assert line.startswith(f"NOT_GOING_ON  __magic_job-{JOB}/ ({state}")
    assert line.endswith("  -> start-execution")
    inside = line.partition(f"({state}")[2].rpartition(")")[0]
    return inside.removeprefix(", gone or changed: ").split(", ") if inside else []


def of(desk: Desk, place: JobDirectory, what: str) -> str:
    """The first key in the job's directory that begins so."""
    own = [
        *desk.world.all_keys(place.prefix + what),
        *desk.world.all_keys(place.pipeline_prefix + what),
    ]
    return own[0]


@pytest.mark.parametrize("lose", [delete, change])
@pytest.mark.parametrize("what", ["plan", "tasks/", "replaced-", "replaced/"])
def test_what_a_published_job_lacks_is_named(
    desk: Desk, what: str, lose: Callable[[Desk, str], None]
) -> None:
    place = stuck(desk, "BeginPublish")
    assert named(desk, state="PUBLISHING") == []
    key = of(desk, place, what)
    lose(desk, key)
    assert named(desk, state="PUBLISHING") == [key.removeprefix(place.prefix)]


def test_a_decided_jobs_plan_is_made_again_of_request_and_manifests_so_they_are_named(
    desk: Desk,
) -> None:
    place = stuck(desk, "DecideCommit")
    plan, manifest = of(desk, place, "plan"), of(desk, place, "tasks/")
    delete(desk, plan)
    delete(desk, manifest)
    lost = [key.removeprefix(place.prefix) for key in (plan, manifest)]
    assert named(desk, state="COMMITTING") == lost
    delete(desk, place.request)
    assert named(desk, state="COMMITTING") == [lost[0], "request.json"]


def test_a_job_that_is_listed_needs_its_replace_list_alone(desk: Desk) -> None:
    place = stuck(desk, "RemoveReplaced")
    delete(desk, of(desk, place, "plan"))
    delete(desk, of(desk, place, "tasks/"))
    assert named(desk, state="PUBLISHING") == []
    index = of(desk, place, "replaced-")
    delete(desk, index)
    assert named(desk, state="PUBLISHING") == [index.removeprefix(place.prefix)]


def test_many_are_told_in_short(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SHOWN", 1)
    place = stuck(desk, "DecideCommit")
    manifests = list(desk.world.all_keys(place.tasks))
    for key in manifests:
        delete(desk, key)
    assert named(desk, state="COMMITTING") == [
        f"{manifests[0].removeprefix(place.prefix)} and {len(manifests) - 1} more"
    ]


def test_a_job_at_work_is_not_looked_into(desk: Desk) -> None:
    place = desk.job_at("DecideCommit", conflict=Conflict.REPLACE)
    delete(desk, of(desk, place, "plan"))
    assert desk.run(*FSCK).stdout == ""
