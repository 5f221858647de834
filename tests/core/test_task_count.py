"""Manifests say how many tasks the job has, for a person who commits in the driver's place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.manifest import decode_pendingset, encode_pendingset
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import CommitRequest, CountedAttempt, Outcome
from s3commit.core.model.pending import PendingSet
from tests.core.test_refusals import DIRECTORY
from tests.core.world import BUCKET, JOB, World


def attempt(world: World, task: str, said: int | None) -> CountedAttempt:
    file = world.upload(DIRECTORY, f"part-{task}-{JOB}.csv", b"x", task=task, attempt="a0")
    return world.drop(DIRECTORY, PendingSet(JOB, (file,), task, "a0", said), task, "a0")


def ask(world: World, request: CommitRequest) -> None:
    world.store.put(BUCKET, DIRECTORY.request, encode_request(request))


def written(*said: int | None) -> tuple[World, tuple[CountedAttempt, ...]]:
    world = World()
    world.open(DIRECTORY)
    return world, tuple(attempt(world, f"t{n}", count) for n, count in enumerate(said))


def test_a_driver_that_counts_attempts_has_heard_of_the_others_that_they_have_no_files() -> None:
    world, counted = written(3, 3)
    ask(world, CommitRequest(JOB, counted))
    world.run(DIRECTORY)
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED


def test_the_number_of_tasks_stands_in_the_manifest_if_the_writer_knew_it() -> None:
    for said in (None, 0, 7):
        body = encode_pendingset(PendingSet(JOB, (), "t0", "a0", said))
        assert decode_pendingset(body, DIRECTORY).task_count == said
        assert ("taskCount" in json.loads(body)) == (said is not None)


@pytest.mark.parametrize("said", [-1, "3", 1.5, True, 2**63])
def test_i7_a_number_of_tasks_that_can_not_be_is_refused(said: Any) -> None:
    document = json.loads(encode_pendingset(PendingSet(JOB, ())))
    with pytest.raises(InvalidInputError) as caught:
        decode_pendingset(json.dumps({**document, "taskCount": said}).encode(), DIRECTORY)
    assert caught.value.code == "BAD_FIELD"
