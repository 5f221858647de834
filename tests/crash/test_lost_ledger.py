"""The ledger is lost after any call of a job, and with it its locks and its decision (I8).

The job continues from what is in S3 alone: all of it or none (I2), and no old file is gone unless
the job is committed (I10). tests/crash/test_empty_ledger.py has how the ledger heals itself.
"""

from collections.abc import Callable

import pytest

from s3commit.core.formats.layout import owner_of
from s3commit.core.model.job import Conflict, Outcome, Scope
from s3commit.core.model.states import JobState
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.crash.scenarios import BEFORE, POLICIES, SCENARIOS, Scenario, check_ended, fill, lose
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan

COMMITTED = [
    *(one for one in [*SCENARIOS, *POLICIES] if one.outcome is Outcome.COMMITTED),
]


def at_every_call(check: Callable[[World], None], prepare: Callable[[World], object]) -> None:
    """``check`` a world in which the job of ``prepare`` died, with the ledger, after each call."""

    def check_after(point: int) -> FaultPlan:
        plan = FaultPlan().crash_after(nth=point)
        world = World(plan=plan)
        prepare(world)
        try:
            world.run(job_directory())
        except Crash:
            lose(world)
            check(world)
        return plan

    every_point(check_after)


@pytest.mark.parametrize("scenario", COMMITTED, ids=lambda one: one.name)
def test_i2_i4_i8_i10_i11_a_job_that_would_be_committed_is(scenario: Scenario) -> None:
    def check(world: World) -> None:
        world.run(job_directory(), "execution-2")
        check_ended(world, scenario)

    at_every_call(check, scenario.begin)


@pytest.mark.parametrize("scope", Scope)
def test_i2_i10_a_job_that_is_refused_when_it_is_brought_back_has_removed_nothing(
    scope: Scope,
) -> None:
    """An upload that was not completed yet expires meanwhile: old files or new, never neither."""

    def prepare(world: World) -> None:
        fill(world)
        directory = job_directory()
        world.open(directory, conflict=Conflict.REPLACE, scope=scope)
        files = {f"dt={number}/part-{JOB}.csv": b"new" for number in (1, 2)}
        world.request(directory, world.attempt(directory, "t", files=files))

    def check(world: World) -> None:
        for upload in list(world.store.list_uploads(BUCKET, "sales/"))[-1:]:
            world.store.abort_upload(BUCKET, upload.key, upload.upload_id)
        world.run(job_directory(), "execution-2")
        own = {key for key in world.visible() if owner_of(key) == JOB}
        if world.result(job_directory()).outcome is Outcome.COMMITTED:
            assert len(own) == 2
        else:
            assert world.visible() == BEFORE
        assert world.open_uploads("sales/") == []

    at_every_call(check, prepare)


# What S3 leaves open: a completion that takes effect after its upload was aborted.


def test_i2_a_completion_that_takes_effect_late_is_found_by_the_last_look() -> None:
    world, directory = World(), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])
    key = f"sales/part-t0-{JOB}.parquet"

    def takes_effect() -> None:
        late = world.store.create_upload(BUCKET, key, metadata={}, content_type="")
        etag = world.store.upload_part(BUCKET, key, late, 1, b"t0 a0")
        world.store.complete_upload(BUCKET, key, late, [etag], length=5)

    world.lose_after_decision("sales/")
    # RollBack has looked for the file and found nothing; it looks once more.
    world.plan.run_after("head", takes_effect, where=lambda call: call.key == key)
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


def test_i3_i8_a_job_that_has_ended_stays_so_whatever_becomes_of_its_job_json() -> None:
    """The ledger forgets ended jobs; who may write their documents opens none of them again."""
    world, directory = World(), job_directory()
    world.commit(directory)
    world.ledger._jobs.clear()
    world.store.put(BUCKET, directory.job, b"{}")
    world.run(directory, "execution-2")
    assert world.record(directory).state is JobState.COMMITTED
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_i8_a_job_whose_marker_was_seen_is_never_undone_even_if_ledger_and_files_are_lost() -> None:
    """A reader may act on the marker at once, as one does that makes one file of many."""
    world, directory = World(), job_directory()
    world.plan.crash_after("put", where=lambda call: call.key == directory.success)
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])
    world.dies(directory)
    assert world.store.head(BUCKET, directory.success) is not None
    key = f"sales/part-t0-{directory.job_id}.parquet"
    world.store.delete(BUCKET, key)
    world.ledger.lose()
    world.heal()
    run_execution(world.unplanned, directory, execution="execution-2")
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert set(world.visible()) == {key.replace("t0", "t1")}
