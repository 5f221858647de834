"""A manifest, or the plan, that somebody deletes after all files were counted visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.formats.published import decode_commit_manifest
from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.faults import Crash

Strike = Callable[[World, JobDirectory], None]


def written(**spec: Any) -> tuple[World, JobDirectory]:
    world, directory = World(), job_directory()
    world.open(directory, **spec)
    mark = f"-{JOB}"
    tasks = [
        world.attempt(directory, f"t{n}", files={f"{n}a{mark}.csv": b"xx", f"{n}b{mark}.csv": b"y"})
        for n in range(3)
    ]
    world.attempt(directory, "t1", "loser", files={f"1a-loser{mark}.csv": b"xx"})
    world.request(directory, *tasks)
    return world, directory


def lose_manifest(world: World, directory: JobDirectory) -> None:
    world.store.delete(BUCKET, directory.manifest("t1", "a0"))


def change_manifest(world: World, directory: JobDirectory) -> None:
    world.store.put(BUCKET, directory.manifest("t1", "a0"), b"{}")


def lose_manifests(world: World, directory: JobDirectory) -> None:
    for n in range(3):
        world.store.delete(BUCKET, directory.manifest(f"t{n}", "a0"))


def lose_plan(world: World, directory: JobDirectory) -> None:
    (key,) = world.all_keys(directory.plans)
    world.store.delete(BUCKET, key)


def lose_all(world: World, directory: JobDirectory) -> None:
    lose_plan(world, directory)
    lose_manifests(world, directory)


STRIKES: list[Strike] = [lose_manifest, change_manifest, lose_manifests, lose_plan, lose_all]


def after_publishing(world: World, directory: JobDirectory, strike: Strike) -> None:
    """Strike right after COMMITTING has become PUBLISHING."""
    world.plan.run_after(
        "advance",
        lambda: strike(world, directory),
        where=lambda call: call.arguments["target"] is JobState.PUBLISHING,
    )


@pytest.mark.parametrize("strike", STRIKES)
def test_i2_the_job_ends_with_the_list_of_what_is_provably_its_own(strike: Strike) -> None:
    sound, directory = written()
    sound.run(directory)
    world, directory = written()
    world.store.put(BUCKET, "sales/stranger.csv", b"x")
    after_publishing(world, directory, strike)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.open_uploads() == []
    commits = [
        decode_commit_manifest(one.store.get(BUCKET, directory.commits, max_bytes=10**6).body)
        for one in (sound, world)
    ]
    (_, expected), (header, files) = commits
    assert (header.files, header.bytes, header.rows) == (6, 9, 9)
    assert {(one.key, one.length, one.etag) for one in files} == {
        (one.key, one.length, one.etag) for one in expected
    }
    uncounted = {one.key for one in files if one.rows is None}
    if strike in {lose_manifest, change_manifest}:
        assert uncounted == {one.key for one in expected if one.key.startswith("sales/1")}
    assert world.json(directory.success)["jobId"] == JOB


def test_i10_a_job_that_replaces_removes_nothing_before_its_list_is_there() -> None:
    world, directory = written(conflict=Conflict.REPLACE)
    world.store.put(BUCKET, "sales/old.csv", b"old")
    after_publishing(world, directory, lose_manifests)
    there: list[bool] = []
    world.plan.run_before(
        "delete_seen", lambda: there.append(world.store.head(BUCKET, directory.commits) is not None)
    )
    world.run(directory)
    assert there == [True]
    assert len(world.visible()) == 6


def lose_a_file(world: World, directory: JobDirectory) -> None:
    world.store.delete(BUCKET, f"sales/1a-{JOB}.csv")


def show_a_losers_file(world: World, directory: JobDirectory, name: str = "more") -> None:
    metadata = {META_JOB: JOB, META_TASK: "t1", META_ATTEMPT: "a0"}
    key = f"sales/{name}-{JOB}.csv"
    upload_id = world.store.create_upload(BUCKET, key, metadata=metadata, content_type="x")
    etag = world.store.upload_part(BUCKET, key, upload_id, 1, b"x")
    world.store.complete_upload(BUCKET, key, upload_id, [etag], length=1)


def swap_a_file(world: World, directory: JobDirectory) -> None:
    """As many files as before, and a byte less."""
    lose_a_file(world, directory)
    show_a_losers_file(world, directory)


def split_a_file(world: World, directory: JobDirectory) -> None:
    """As many bytes as before, in one file more."""
    swap_a_file(world, directory)
    show_a_losers_file(world, directory, "and-more")


@pytest.mark.parametrize("more", [lose_a_file, show_a_losers_file, swap_a_file, split_a_file])
def test_i12_what_does_not_add_up_ends_the_job_and_is_listed_as_it_is(more: Strike) -> None:
    """Whoever may put objects below the destination can bring that about: it stops nobody."""
    world, directory = written()

    def strike(world: World, directory: JobDirectory) -> None:
        lose_manifest(world, directory)
        more(world, directory)

    after_publishing(world, directory, strike)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.result(directory).files == 6, "as the ledger has counted them"
    body = world.store.get(BUCKET, directory.commits, max_bytes=10**6).body
    header, files = decode_commit_manifest(body)
    assert (header.files, header.bytes) != (6, 9)
    assert {one.key for one in files} <= set(world.visible())
    assert world.ledger._claims == {}


def test_i3_a_losers_file_that_somebody_completed_is_not_listed() -> None:
    world, directory = written()
    loser = next(up for up in world.store.list_uploads(BUCKET, "") if "loser" in up.key)

    def strike(world: World, directory: JobDirectory) -> None:
        lose_manifest(world, directory)
        etag = world.store.upload_part(BUCKET, loser.key, loser.upload_id, 1, b"xx")
        world.store.complete_upload(BUCKET, loser.key, loser.upload_id, [etag], length=2)

    after_publishing(world, directory, strike)
    world.run(directory)
    body = world.store.get(BUCKET, directory.commits, max_bytes=10**6).body
    assert loser.key not in {one.key for one in decode_commit_manifest(body)[1]}
    assert world.result(directory).files == 6


def test_a_manifest_that_goes_after_the_list_is_there_is_not_missed() -> None:
    world, directory = written()
    world.plan.crash_before("put", where=lambda call: call.key == directory.success)
    with pytest.raises(Crash):
        world.run(directory)
    lose_all(world, directory)
    world.run(directory, "execution-2")
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert len(world.json(directory.success)["filenames"]) == 6
