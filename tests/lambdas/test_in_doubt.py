"""Where nobody can tell whose a file is: what the state machine is told, and where it stops."""

from __future__ import annotations

import json

import pytest

from s3commit.core.model.errors import IdentityUnknownError, TransientError
from s3commit.core.model.job import Names
from tests.core.world import BUCKET, World
from tests.fakes.memory import MemoryObjectStore
from tests.lambdas.conftest import Call
from tests.lambdas.test_steps import DIRECTORY, complete, decided, step

KEY = "sales/a.csv"


@pytest.fixture
def world() -> World:
    """A bucket behind SSE-KMS."""
    return World(opaque=True)


def prepare(world: World) -> None:
    """A job of a program that sets no metadata, under a name of its own."""
    world.open(DIRECTORY, names=Names.EXACT)
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0", files={"a.csv": b"a"}))
    assert isinstance(world.store, MemoryObjectStore)
    for upload in world.store.bucket(BUCKET).uploads.values():
        upload.metadata.clear()


def test_i2_i5_a_worker_names_the_file_and_begin_publish_stops_by_an_error_of_its_own(
    world: World, call: Call
) -> None:
    """The class is the red state's error in the console, the message its cause."""
    prepare(world)
    ticket = decided(world, call)
    world.plan.lose_response("complete_upload")
    with pytest.raises(TransientError):  # the machine tries the worker again
        complete(world, call, ticket)

    ticket["completed"] = complete(world, call, ticket)

    (said,) = ticket["completed"]
    assert (said["files"], said["lost"]) == (0, 0)
    assert said["in_doubt"] == f"{KEY} (task t0, attempt a0)"
    with pytest.raises(IdentityUnknownError, match=r"a\.csv \(task t0, attempt a0\)"):
        step(call, "end", "BeginPublish", ticket)
    assert world.record(DIRECTORY).state == "COMMITTING"
    assert world.visible() == {KEY: b"a"}


def test_a_worker_without_doubt_says_no_more_than_before(world: World, call: Call) -> None:
    """4,000 of them have to fit into what a state may carry."""
    prepare(world)
    ticket = decided(world, call)
    assert json.dumps(complete(world, call, ticket)) == '[{"unit": 0, "files": 1, "lost": 0}]'
