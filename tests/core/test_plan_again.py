"""The plan is deleted, or changed, after the decision: request and manifests make it again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.errors import NotFoundError, S3CommitError
from s3commit.core.jsontext import dump
from s3commit.core.layout import JobDirectory
from s3commit.core.model import Names, Outcome
from s3commit.core.states import JobState
from tests.core.world import BUCKET, JOB, World, place_of

Strike = Callable[[World, JobDirectory], None]


def written(names: Names) -> tuple[World, JobDirectory]:
    world, place = World(), place_of()
    world.open(place, names=names)
    mark = "" if names is Names.EXACT else f"-{JOB}"
    world.request(
        place, *(world.attempt(place, f"t{n}", files={f"{n}{mark}.csv": b"x"}) for n in range(3))
    )
    return world, place


def plan_of(world: World, place: JobDirectory) -> str:
    (key,) = world.all_keys(place.plans)
    return key


def lose(world: World, place: JobDirectory) -> None:
    world.store.delete(BUCKET, plan_of(world, place))


def change(world: World, place: JobDirectory) -> None:
    world.store.put(BUCKET, plan_of(world, place), b"[]")


@pytest.mark.parametrize("names", list(Names))
@pytest.mark.parametrize("strike", [lose, change])
@pytest.mark.parametrize("verb", ["decide", "complete_upload"])
def test_i2_a_decided_job_is_completed_by_the_plan_made_again(
    verb: str, strike: Strike, names: Names
) -> None:
    world, place = written(names)
    world.plan.run_after(verb, lambda: strike(world, place))
    entered = world.run(place)
    assert "RollBack" not in entered
    assert world.result(place).outcome is Outcome.COMMITTED
    assert len(world.visible()) == 3
    assert world.open_uploads() == []


def test_i2_with_a_manifest_gone_as_well_nothing_is_guessed() -> None:
    world, place = written(Names.UNIQUE)

    def strike() -> None:
        lose(world, place)
        world.store.delete(BUCKET, place.manifest("t1", "a0"))

    world.plan.run_after("decide", strike)
    with pytest.raises(NotFoundError):
        world.run(place)
    assert world.record(place).state is JobState.COMMITTING
    assert world.visible() == {}


def test_i2_another_request_makes_another_plan_which_is_not_acted_on() -> None:
    world, place = written(Names.UNIQUE)

    def strike() -> None:
        lose(world, place)
        body = world.json(place.request)
        world.store.delete(BUCKET, place.request)
        world.store.put(BUCKET, place.request, dump({**body, "attempts": body["attempts"][:2]}))

    world.plan.run_after("decide", strike)
    with pytest.raises(S3CommitError):
        world.run(place)
    assert world.all_keys(place.plans) == []
    assert world.visible() == {}
