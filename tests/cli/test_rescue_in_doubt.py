"""``s3commit rescue`` behind SSE-KMS, where nobody can tell what the dead driver had completed."""

from __future__ import annotations

import pytest

from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, parse_manifest_key
from tests.cli.left_behind import data, dead, runs, snapshot
from tests.cli.support import SALES, Desk
from tests.core.world import BUCKET, World
from tests.fakes.bucket import Version
from tests.golden.s3a.replay import Recorded


@pytest.fixture
def desk() -> Desk:
    """Etags tell nothing of the bytes."""
    return Desk(World(opaque=True))


def the_completed(desk: Desk) -> str:
    """The one file that the driver had completed before it died."""
    (key,) = data(desk.world)
    return key


def settle(desk: Desk, key: str, metadata: dict[str, str]) -> None:
    """What ``aws s3 cp`` onto itself with ``--metadata-directive REPLACE`` does."""
    versions = desk.world.store.bucket(BUCKET).objects
    (version,) = versions[key]
    versions[key] = [
        Version(None, version.body, '"copied"', metadata, version.content_type, opaque=True)
    ]


def mark_of(recorded: Recorded, key: str) -> dict[str, str]:
    (manifest,) = [name for name, body in recorded.manifests.items() if key.encode() in body]
    directory, task, attempt = parse_manifest_key(BUCKET, manifest)
    return {META_JOB: directory.job_id, META_TASK: task, META_ATTEMPT: attempt}


@pytest.mark.parametrize("word", ["--commit", "--abort"])
def test_i2_i5_where_nobody_can_tell_nothing_is_asked_for(desk: Desk, word: str) -> None:
    recorded = dead(desk, "halfway")
    key, before = the_completed(desk), snapshot(desk)
    line = desk.fails("rescue", SALES, word, exit_code=3)
    told = mark_of(recorded, key)
    assert f"{key} (task {told[META_TASK]}, attempt {told[META_ATTEMPT]})" in line
    assert "nobody can tell whether 1 file that is there is its own, completed" in line
    assert "[IDENTITY_UNKNOWN]; nothing was changed" in line
    assert "aborted by another" not in line
    assert desk.run("rescue", SALES).stdout.splitlines()[1].endswith("no: IDENTITY_UNKNOWN")
    assert snapshot(desk) == before


def test_i2_a_job_whose_files_a_person_has_marked_is_finished(desk: Desk) -> None:
    recorded = dead(desk, "halfway")
    settle(desk, the_completed(desk), mark_of(recorded, the_completed(desk)))
    (job,) = desk.json("rescue", SALES)["jobs"]
    assert (job["visibleFiles"], job["problems"]) == (1, [])
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, "--commit")
    assert data(desk.world) == recorded.files


def test_i2_of_a_job_that_is_given_up_the_marked_files_go_too(desk: Desk) -> None:
    recorded = dead(desk, "halfway")
    settle(desk, the_completed(desk), mark_of(recorded, the_completed(desk)))
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, "--abort")
    assert data(desk.world) == {}
    assert desk.world.open_uploads() == []


def test_i5_a_file_that_a_person_calls_anothers_stays(desk: Desk) -> None:
    recorded = dead(desk, "halfway")
    key = the_completed(desk)
    settle(desk, key, {META_JOB: "none"})
    assert "[UPLOAD_GONE]" in desk.fails("rescue", SALES, "--commit", exit_code=3)
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, "--abort")
    assert data(desk.world) == {key: recorded.files[key]}
