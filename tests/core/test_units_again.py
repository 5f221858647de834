"""A round of the Map after a unit has failed works on the units that are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from s3commit.core.formats import plan
from s3commit.core.model.errors import TransientError
from s3commit.core.model.job import Outcome
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.faults import Call, Crash

UNITS = 6
KEYS = [f"sales/part-{number}-{JOB}.csv" for number in range(UNITS)]


@pytest.fixture(autouse=True)
def units_of_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "UNIT_FILES", 1)


def written() -> World:
    world, directory = World(), job_directory()
    files = [key.removeprefix("sales/") for key in KEYS]
    attempts = [
        world.attempt(directory, f"t{number}", files={name: b"x"})
        for number, name in enumerate(files)
    ]
    world.request(directory, *attempts)
    return world


def asked(calls: list[Call]) -> list[tuple[str, str]]:
    """What workers asked S3 for files of the job, in order."""
    return [(call.verb, call.key) for call in calls if call.key in KEYS]


def is_completion_of(key: str) -> Callable[[Call], bool]:
    return lambda call: call.verb == "complete_upload" and call.key == key


def test_i2_after_one_failed_unit_the_next_round_asks_s3_for_that_unit_alone() -> None:
    world = written()
    world.plan.fail("complete_upload", TransientError("503"), where=is_completion_of(KEYS[4]))
    entered = world.run(job_directory())
    assert entered.count("CompleteUploads") == 1  # tried again as a whole, as the machine does
    assert asked(world.plan.calls) == [
        *(("complete_upload", key) for key in KEYS[:5]),
        ("complete_upload", KEYS[4]),
        ("complete_upload", KEYS[5]),
    ]
    assert world.result(job_directory()).outcome is Outcome.COMMITTED
    assert list(world.visible()) == KEYS


def test_i2_another_execution_asks_for_the_units_that_are_left() -> None:
    world = written()
    world.plan.crash_before("complete_upload", where=is_completion_of(KEYS[3]))
    with pytest.raises(Crash):
        world.run(job_directory())
    before = len(world.plan.calls)
    world.run(job_directory(), "execution-2")
    assert {key for _, key in asked(world.plan.calls[before:])} == set(KEYS[3:])
    assert list(world.visible()) == KEYS


@pytest.mark.parametrize("verb", ["begin_unit", "end_unit", "unit_ended"])
@pytest.mark.parametrize("nth", [1, 3])
def test_i2_whatever_becomes_of_a_note_all_is_visible(verb: str, nth: int) -> None:
    lose: list[Callable[[World], Any]] = [
        lambda world: world.plan.lose_response(verb, nth=nth),
        lambda world: world.plan.fail(verb, TransientError("500"), nth=nth),
    ]
    for strike in lose:
        world = written()
        world.plan.fail("complete_upload", TransientError("503"), where=is_completion_of(KEYS[4]))
        strike(world)
        world.run(job_directory())
        assert world.result(job_directory()).outcome is Outcome.COMMITTED
        assert list(world.visible()) == KEYS


def test_i2_a_unit_of_which_a_file_is_lost_is_never_noted_as_complete() -> None:
    """Its result is lost with the round that another unit fails; the next round finds it again."""
    world = written()
    (victim,) = world.store.list_uploads(BUCKET, KEYS[1])
    world.plan.run_after(
        "decide", lambda: world.store.abort_upload(BUCKET, victim.key, victim.upload_id)
    )
    world.plan.fail("complete_upload", TransientError("503"), where=is_completion_of(KEYS[4]))
    world.run(job_directory())
    assert world.result(job_directory()).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


def test_i8_where_the_record_was_made_again_no_note_is_believed() -> None:
    world = written()
    world.plan.crash_before("complete_upload", where=is_completion_of(KEYS[3]))
    with pytest.raises(Crash):
        world.run(job_directory())
    world.ledger._jobs.clear()  # and the notes of its units stay
    world.store.delete(BUCKET, KEYS[0])
    world.clock.advance(60)
    world.run(job_directory(), "execution-2")
    assert world.record(job_directory()).state is JobState.ROLLED_BACK
    assert world.visible() == {}
