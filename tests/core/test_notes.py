"""Notes of uploads with exact names: how a task that died is cleaned up after (I4)."""

from __future__ import annotations

import json

import pytest

from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import decode_note
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import CommitRequest, Names, Outcome
from s3commit.writer.paths import encode_note, note_key
from tests.core.world import BUCKET, JOB, NEIGHBOUR, World, job_directory

DIRECTORY = job_directory()


def start(world: World, directory: JobDirectory, name: str) -> None:
    """A task that starts an upload, notes it, and dies."""
    key = directory.destination.prefix + name
    upload_id = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    note(world, directory, encode_note(key, upload_id))


def note(world: World, directory: JobDirectory, body: bytes) -> None:
    number = len(world.all_keys(directory.tasks))
    world.store.put(BUCKET, note_key(directory, "dead", "a0", number), body)


@pytest.fixture
def world() -> World:
    world = World()
    world.open(DIRECTORY, names=Names.EXACT)
    world.store.create_upload(BUCKET, "sales/stranger.csv", metadata={}, content_type="x")
    start(world, DIRECTORY, "lost.csv")
    return world


@pytest.mark.parametrize("named", [True, False], ids=["counted by name", "counted as found"])
def test_i4_what_a_dead_task_has_noted_is_aborted_when_the_job_is_committed(
    world: World, named: bool
) -> None:
    good = world.attempt(DIRECTORY, "t0", files={"good.csv": b"1"})
    body = encode_request(CommitRequest(JOB, (good,) if named else None))
    world.store.put(BUCKET, DIRECTORY.request, body)
    world.run(DIRECTORY)
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED
    assert list(world.visible()) == ["sales/good.csv"]
    assert world.open_uploads() == ["sales/stranger.csv"]
    assert world.all_keys(DIRECTORY.tasks) == []


def test_i4_what_a_dead_task_has_noted_is_aborted_when_the_job_is(world: World) -> None:
    world.request_abort(DIRECTORY)
    world.run(DIRECTORY)
    assert world.open_uploads() == ["sales/stranger.csv"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"version":2,"key":"sales/x","uploadId":"u"}',
        b'{"version":1,"key":"sales/x"}',
        b'{"version":1,"key":7,"uploadId":"u"}',
        b" " * 20_000,
    ],
    ids=lambda body: str(body)[:40],
)
def test_i5_i7_a_broken_note_is_passed_over(world: World, body: bytes) -> None:
    with pytest.raises(InvalidInputError):
        decode_note(body, DIRECTORY)
    note(world, DIRECTORY, body)
    world.request_abort(DIRECTORY)
    world.run(DIRECTORY)
    assert world.open_uploads() == ["sales/stranger.csv"]


@pytest.mark.parametrize(
    "key", [f"sales/part-{NEIGHBOUR}.csv", "elsewhere/x.csv", "sales/../elsewhere/x.csv"]
)
def test_i5_i7_a_note_does_not_reach_another_jobs_uploads(world: World, key: str) -> None:
    """Another job's by its name, or outside of the destination."""
    world.open(job_directory(NEIGHBOUR))
    theirs = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    note(world, DIRECTORY, json.dumps({"version": 1, "key": key, "uploadId": theirs}).encode())
    world.request_abort(DIRECTORY)
    world.run(DIRECTORY)
    assert sorted(world.open_uploads()) == sorted([key, "sales/stranger.csv"])
