"""Files under names of the program's own: what they may cover, and what an undo brings back."""

from __future__ import annotations

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import Conflict, Names, Outcome, Scope
from tests.core.world import BUCKET, OTHER_JOB, World, job_directory

BEFORE, AFTER = b"of before", b"new"


def start(
    world: World, conflict: Conflict, *names: str, job: JobDirectory | None = None
) -> JobDirectory:
    directory = job or job_directory()
    world.open(directory, conflict=conflict, names=Names.EXACT)
    files = dict.fromkeys(names, AFTER)
    world.request(directory, world.attempt(directory, "t0", files=files))
    return directory


def code(world: World, directory: JobDirectory) -> str:
    error = world.result(directory).error
    return error.code if error else ""


def versions(world: World, key: str) -> list[bytes | None]:
    """What lies at a key, the newest last; None is a delete marker."""
    return [version.body for version in world.store._buckets[BUCKET].objects.get(key, [])]


@pytest.mark.parametrize("conflict", Conflict)
@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
def test_exact_names_are_written_where_nothing_is(conflict: Conflict, versioned: bool) -> None:
    world = World(versioned=versioned)
    directory = start(world, conflict, "a.csv", "dt=1/b.csv")
    world.run(directory)
    assert world.visible() == {"sales/a.csv": AFTER, "sales/dt=1/b.csv": AFTER}
    completed = [call for call in world.plan.calls if call.verb == "complete_upload"]
    assert [call.arguments["if_absent"] for call in completed] == [True, True]


@pytest.mark.parametrize(
    ("conflict", "versioned", "expected"),
    [
        (Conflict.APPEND, False, "KEY_EXISTS"),
        (Conflict.APPEND, True, "KEY_EXISTS"),
        (Conflict.FAIL, False, "DESTINATION_NOT_EMPTY"),
        (Conflict.FAIL, True, "DESTINATION_NOT_EMPTY"),
        (Conflict.REPLACE, False, "KEY_EXISTS"),
        (Conflict.REPLACE, True, ""),
    ],
)
def test_i2_a_key_that_exists_is_covered_only_where_it_can_be_brought_back(
    conflict: Conflict, versioned: bool, expected: str
) -> None:
    world = World(versioned=versioned)
    for key in ("sales/a.csv", "sales/old.csv"):
        world.store.put(BUCKET, key, BEFORE)
    directory = start(world, conflict, "a.csv", "b.csv")
    world.run(directory)
    assert code(world, directory) == expected
    if expected:
        assert world.result(directory).outcome is Outcome.ABORTED
        assert world.visible() == {"sales/a.csv": BEFORE, "sales/old.csv": BEFORE}
        assert world.open_uploads() == []
        assert "complete_upload" not in world.plan.counts()
    else:
        assert world.visible() == {"sales/a.csv": AFTER, "sales/b.csv": AFTER}
        assert versions(world, "sales/a.csv") == [BEFORE, AFTER]
        assert versions(world, "sales/old.csv") == [BEFORE, None]
        assert world.result(directory).replaced == 1


def test_i2_each_file_is_looked_at_for_what_it_would_cover() -> None:
    world = World()
    world.store.put(BUCKET, "sales/b.csv", BEFORE)
    directory = start(world, Conflict.REPLACE, "a.csv", "b.csv", "c.csv")
    world.run(directory)
    assert code(world, directory) == "KEY_EXISTS"
    assert world.visible() == {"sales/b.csv": BEFORE}


def test_i2_a_roll_back_brings_back_what_was_covered() -> None:
    world = World(versioned=True)
    for key in ("sales/a.csv", "sales/old.csv"):
        world.store.put(BUCKET, key, BEFORE)
    directory = start(world, Conflict.REPLACE, "a.csv", "b.csv", "c.csv")
    world.lose_after_decision("sales/c.csv", slice(1))
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {"sales/a.csv": BEFORE, "sales/old.csv": BEFORE}
    assert versions(world, "sales/a.csv") == [BEFORE]
    assert world.open_uploads() == []


@pytest.mark.parametrize("body", [AFTER, b"another's"], ids=["the same bytes", "other bytes"])
def test_i2_i5_a_key_that_another_program_took_after_the_decision_is_not_covered(
    body: bytes,
) -> None:
    """S3's refusal is final: the job is undone, and the other's object stays."""
    world = World()
    directory = start(world, Conflict.APPEND, "a.csv", "b.csv")
    world.plan.run_after("decide", lambda: world.store.put(BUCKET, "sales/b.csv", body))
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {"sales/b.csv": body}
    assert world.open_uploads() == []
    error = world.result(directory).error
    assert error is not None
    assert "1 of 2 files" in error.message
    assert "put objects of their names" in error.message


def test_i2_i5_no_job_writes_exact_names_beside_one_that_is_decided() -> None:
    """Without metadata, equal bytes tell nobody whose a file is: a roll back would take it."""
    world = World()
    one, other = start(world, Conflict.APPEND, "a.csv"), job_directory(OTHER_JOB)
    start(world, Conflict.APPEND, "a.csv", "b.csv", job=other)
    world.plan.run_after("decide", lambda: world.run(other))
    world.run(one)
    assert code(world, other) == "DESTINATION_BUSY"
    assert world.result(one).outcome is Outcome.COMMITTED
    assert set(world.visible()) == {"sales/a.csv"}
    facts = world.store.head(BUCKET, "sales/a.csv")
    assert facts is not None
    assert facts.metadata["s3commit-job"] == one.job_id


@pytest.mark.parametrize("scope", Scope)
def test_i10_a_file_that_is_written_anew_is_never_on_the_list(scope: Scope) -> None:
    world, directory = World(versioned=True), job_directory()
    for name in ("dt=1/a.csv", "dt=1/old.csv", "dt=2/old.csv"):
        world.store.put(BUCKET, f"sales/{name}", BEFORE)
    world.open(directory, conflict=Conflict.REPLACE, scope=scope, names=Names.EXACT)
    world.request(directory, world.attempt(directory, "t0", files={"dt=1/a.csv": AFTER}))
    world.run(directory)
    kept = {"sales/dt=2/old.csv": BEFORE} if scope is Scope.PARTITION else {}
    assert world.visible() == {"sales/dt=1/a.csv": AFTER, **kept}


def test_a_job_with_unique_names_may_not_write_exact_ones() -> None:
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0", files={"a.csv": AFTER}))
    world.run(directory)
    assert code(world, directory) == "NAME_NOT_UNIQUE"


def test_i4_the_uploads_of_every_attempt_that_left_a_manifest_are_aborted() -> None:
    world, directory = World(), job_directory()
    world.open(directory, names=Names.EXACT)
    loser = world.attempt(directory, "t0", "a0", files={"a.csv": b"loser"})
    winner = world.attempt(directory, "t0", "a1", files={"a.csv": AFTER})
    foreign = world.store.create_upload(BUCKET, "sales/a.csv", metadata={}, content_type="")
    world.announce(directory, loser)
    world.request(directory, winner)
    world.run(directory)
    assert world.visible() == {"sales/a.csv": AFTER}
    assert [upload.upload_id for upload in world.store.list_uploads(BUCKET, "")] == [foreign]
