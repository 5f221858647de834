"""The plan is deleted, or changed, after the decision: request and manifests make it again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import dump
from s3commit.core.job import plan as planned
from s3commit.core.model.errors import JobRefusedError, NotFoundError, S3CommitError
from s3commit.core.model.job import Names, Outcome
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, World, job_directory

Strike = Callable[[World, JobDirectory], None]


def written(names: Names) -> tuple[World, JobDirectory]:
    world, directory = World(), job_directory()
    world.open(directory, names=names)
    mark = "" if names is Names.EXACT else f"-{JOB}"
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


@pytest.mark.parametrize("names", list(Names))
@pytest.mark.parametrize("strike", [lose, change])
@pytest.mark.parametrize("verb", ["decide", "complete_upload"])
def test_i2_a_decided_job_is_completed_by_the_plan_made_again(
    verb: str, strike: Strike, names: Names
) -> None:
    world, directory = written(names)
    world.plan.run_after(verb, lambda: strike(world, directory))
    entered = world.run(directory)
    assert "RollBack" not in entered
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert len(world.visible()) == 3
    assert world.open_uploads() == []


def test_i2_with_a_manifest_gone_as_well_nothing_is_guessed() -> None:
    world, directory = written(Names.UNIQUE)

    def strike() -> None:
        lose(world, directory)
        world.store.delete(BUCKET, directory.manifest("t1", "a0"))

    world.plan.run_after("decide", strike)
    with pytest.raises(NotFoundError):
        world.run(directory)
    assert world.record(directory).state is JobState.COMMITTING
    assert world.visible() == {}


def test_i2_another_request_makes_another_plan_which_is_not_acted_on() -> None:
    world, directory = written(Names.UNIQUE)

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


@pytest.mark.parametrize("strike", [lose, change])
def test_i2_a_job_of_exact_names_is_rolled_back_by_the_plan_made_again(strike: Strike) -> None:
    """Without its plan nothing tells which files are the job's, and each execution would fail."""
    world, directory = written(Names.EXACT)
    world.lose_after_decision("sales/2.csv")
    world.plan.run_after(
        "advance",
        lambda: strike(world, directory),
        where=lambda call: call.arguments["target"] is JobState.ROLLING_BACK,
    )
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


def test_i5_a_roll_back_goes_by_no_plan_but_the_one_that_was_decided() -> None:
    """Another one could name a file of the same bytes that is another job's."""
    world, directory = written(Names.EXACT)

    def strike() -> None:
        change(world, directory)
        world.store.delete(BUCKET, directory.manifest("t0", "a0"))

    world.lose_after_decision("sales/2.csv")
    world.plan.run_after(
        "advance",
        strike,
        where=lambda call: call.arguments["target"] is JobState.ROLLING_BACK,
    )
    with pytest.raises(JobRefusedError) as refused:
        world.run(directory)
    assert refused.value.code == "PLAN_CHANGED"
    assert world.record(directory).state is JobState.ROLLING_BACK
    assert set(world.visible()) == {"sales/0.csv", "sales/1.csv"}


def test_i2_a_plan_that_somebody_has_made_too_long_to_be_read_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, directory = written(Names.UNIQUE)

    def swell() -> None:
        key = plan_of(world, directory)
        length = plan_length(world, key)
        monkeypatch.setattr(planned, "MAX_PLAN_BYTES", length)
        world.store.put(BUCKET, key, b" " * (length + 1))

    world.plan.run_after("complete_upload", swell, nth=3)
    assert "RollBack" not in world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
