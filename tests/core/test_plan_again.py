"""The plan is deleted, or changed, after the decision: request and manifests make it again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import dump
from s3commit.core.job import plan as planned
from s3commit.core.model.errors import NotFoundError, S3CommitError
from s3commit.core.model.job import Outcome
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, World, job_directory

Strike = Callable[[World, JobDirectory], None]


def written() -> tuple[World, JobDirectory]:
    world, directory = World(), job_directory()
    world.open(directory)
    mark = f"-{JOB}"
    world.request(
        directory,
        *(world.attempt(directory, f"t{n}", files={f"{n}{mark}.csv": b"x"}) for n in range(3)),
    )
    return world, directory


def plan_of(world: World, directory: JobDirectory) -> str:
    (key,) = world.all_keys(directory.plans)
    return key


def plan_length(world: World, key: str) -> int:
    facts = world.store.head(BUCKET, key)
    assert facts is not None
    return facts.length


def lose(world: World, directory: JobDirectory) -> None:
    world.store.delete(BUCKET, plan_of(world, directory))


def change(world: World, directory: JobDirectory) -> None:
    world.store.put(BUCKET, plan_of(world, directory), b"[]")


@pytest.mark.parametrize("strike", [lose, change])
@pytest.mark.parametrize("verb", ["decide", "complete_upload"])
def test_i2_a_decided_job_is_completed_by_the_plan_made_again(verb: str, strike: Strike) -> None:
    world, directory = written()
    world.plan.run_after(verb, lambda: strike(world, directory))
    entered = world.run(directory)
    assert "RollBack" not in entered
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert len(world.visible()) == 3
    assert world.open_uploads() == []


def test_i2_with_a_manifest_gone_as_well_nothing_is_guessed() -> None:
    world, directory = written()

    def strike() -> None:
        lose(world, directory)
        world.store.delete(BUCKET, directory.manifest("t1", "a0"))

    world.plan.run_after("decide", strike)
    with pytest.raises(NotFoundError):
        world.run(directory)
    assert world.record(directory).state is JobState.COMMITTING
    assert world.visible() == {}


def test_i2_another_request_makes_another_plan_which_is_not_acted_on() -> None:
    world, directory = written()

    def strike() -> None:
        lose(world, directory)
        body = world.json(directory.request)
        world.store.delete(BUCKET, directory.request)
        world.store.put(BUCKET, directory.request, dump({**body, "attempts": body["attempts"][:2]}))

    world.plan.run_after("decide", strike)
    with pytest.raises(S3CommitError):
        world.run(directory)
    assert world.all_keys(directory.plans) == []
    assert world.visible() == {}


def test_i2_a_plan_that_somebody_has_made_too_long_to_be_read_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, directory = written()

    def swell() -> None:
        key = plan_of(world, directory)
        length = plan_length(world, key)
        monkeypatch.setattr(planned, "MAX_PLAN_BYTES", length)
        world.store.put(BUCKET, key, b" " * (length + 1))

    world.plan.run_after("complete_upload", swell, nth=3)
    assert "RollBack" not in world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
