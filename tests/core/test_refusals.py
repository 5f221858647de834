"""What VerifyManifests refuses."""

from __future__ import annotations

from dataclasses import replace

from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.model.conditions import Conditions
from s3commit.core.model.job import Outcome
from s3commit.core.model.pending import PendingSet
from tests.core.world import BUCKET, JOB, World, job_directory

DIRECTORY = job_directory()


def refused(world: World, *, left: int = 0) -> str:
    """Run the job; its code, when it has ended ABORTED with nothing visible and nothing open."""
    world.run(DIRECTORY)
    result = world.result(DIRECTORY)
    assert result.outcome is Outcome.ABORTED
    assert world.visible() == {}
    assert len(world.open_uploads()) == left
    assert result.error is not None
    return result.error.code


def test_i2_a_key_that_two_tasks_write_is_refused() -> None:
    world = World()
    name = f"part-{JOB}.parquet"
    tasks = [world.attempt(DIRECTORY, task, files={name: task.encode()}) for task in ("t0", "t1")]
    world.request(DIRECTORY, *tasks)
    assert refused(world) == "DUPLICATE_KEY"


def test_i2_a_manifest_that_changed_after_its_task_wrote_it_is_refused() -> None:
    world = World()
    counted = world.attempt(DIRECTORY, "t0")
    other = world.upload(DIRECTORY, f"other-{JOB}.parquet", b"t0 a0", task="t0", attempt="a0")
    body = encode_pendingset(PendingSet(JOB, (other,), "t0", "a0"))
    world.store.put(BUCKET, DIRECTORY.prefix + counted.manifest, body)  # sound, and not the one
    world.request(DIRECTORY, counted)
    assert refused(world) == "MANIFEST_CHANGED"


def test_a_job_whose_job_json_is_deleted_is_not_committed_without_its_conditions() -> None:
    world = World()
    world.open(DIRECTORY, conditions=Conditions(min_rows=1000))
    counted = world.attempt(DIRECTORY, "t0")
    world.announce(DIRECTORY, counted)
    world.store.delete(BUCKET, DIRECTORY.job)
    world.request(DIRECTORY, counted)
    assert refused(world) == "JOB_CHANGED"


def test_a_job_refused_before_its_plan_ends_though_a_file_of_its_name_has_no_metadata() -> None:
    world = World()
    counted = world.attempt(DIRECTORY, "t0")
    stray = f"sales/stray-{JOB}.parquet"
    world.store.put(BUCKET, stray, b"x")
    world.store.delete(BUCKET, DIRECTORY.prefix + counted.manifest)
    world.request(DIRECTORY, counted)
    world.run(DIRECTORY)
    error = world.result(DIRECTORY).error
    assert error is not None
    assert error.code == "MANIFEST_MISSING"
    assert list(world.visible()) == [stray]


def test_i2_counts_that_differ_from_the_manifest_are_refused() -> None:
    world = World()
    world.request(DIRECTORY, replace(world.attempt(DIRECTORY, "t0"), files=2))
    assert refused(world) == "COUNTS_DIFFER"
