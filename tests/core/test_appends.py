"""Appends and replaces at one destination: what is removed, what stays, who waits (I6, I12)."""

import itertools

import pytest

from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.limits import APPEND_SECONDS
from s3commit.core.model.states import JobState
from tests.core.world import JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution

# The step reads the appends at "top/sales/" and at "top/", and each twice, before it lists.
MOMENT = 4


@pytest.mark.parametrize("moment", ["before", "under way", "decided since", "ended since"])
@pytest.mark.parametrize("prefix", ["sales/", "sales/dt=1/", ""], ids=["at", "below", "above"])
def test_i6_a_replace_removes_appends_that_had_ended_and_leaves_all_others(
    moment: str, prefix: str
) -> None:
    world = World()
    replacing, appending = (
        job_directory(JOB, "top/sales/"),
        job_directory(OTHER_JOB, f"top/{prefix}"),
    )
    name = f"part-{OTHER_JOB}.csv" if prefix else f"sales/part-{OTHER_JOB}.csv"
    world.open(appending)
    world.request(appending, world.attempt(appending, "t", files={name: b"new"}))
    world.ask(replacing, "t", conflict=Conflict.REPLACE)
    if moment in {"under way", "ended since"}:
        world.plan.crash_before("advance", nth=2)
        world.dies(appending)
        assert world.record(appending).state is JobState.COMMITTING
        assert world.visible("top/")

    def append() -> None:
        run_execution(world.unplanned, appending, execution="execution-2")

    if moment == "before":
        append()
    elif moment != "under way":
        world.plan.run_after("appends", append, nth=MOMENT)
    world.run(replacing)
    append()
    for directory in (appending, replacing):
        assert world.result(directory).outcome is Outcome.COMMITTED
    left = any(OTHER_JOB in key for key in world.visible("top/sales/"))
    assert left == (moment != "before")


def test_i6_appends_that_end_while_they_are_read_are_read_again() -> None:
    """Else one that has ended between two requests could come before in one place, after in one."""
    world = World()
    replacing = job_directory(JOB, "top/sales/")
    appending = job_directory(OTHER_JOB, "top/")
    world.ask(appending, "t")
    world.ask(replacing, "t", conflict=Conflict.REPLACE)
    world.plan.run_after(
        "appends", lambda: run_execution(world.unplanned, appending), nth=MOMENT - 1
    )
    world.run(replacing)
    readings = [call for call in world.plan.calls if call.verb == "appends"]
    assert len(readings) == MOMENT + 2


def test_i12_an_append_of_the_same_id_elsewhere_keeps_no_file_from_being_replaced() -> None:
    """Who may write beside a file may know the id in its name, and open a job with it there."""
    world = World()
    old = job_directory(OTHER_JOB, "top/sales/dt=1/")
    beside = job_directory(OTHER_JOB, "top/sales/dt=2/")
    replacing = job_directory(JOB, "top/sales/")
    for directory in (old, beside):
        world.request(directory, world.attempt(directory, "t"))
    world.run(old)
    world.clock.advance(APPEND_SECONDS * 2)
    world.plan.crash_after("decide")
    world.dies(beside)
    world.ask(replacing, "t", conflict=Conflict.REPLACE)
    world.run(replacing)
    run_execution(world.unplanned, beside, execution="execution-2")
    left = {key for key in world.visible("top/sales/") if OTHER_JOB in key}
    assert {key.split("/")[2] for key in left} == {"dt=2"}


def test_i6_a_replace_beside_appends_without_end_is_refused_and_holds_nothing() -> None:
    world, replacing, serial = World(), job_directory(JOB, "top/sales/"), itertools.count()
    world.ask(replacing, "t", conflict=Conflict.REPLACE)

    def append() -> None:
        directory = job_directory(f"0b6f6f0e-0000-4000-8000-{next(serial):012x}", "top/")
        world.request(directory, world.attempt(directory, "t"))
        run_execution(world.unplanned, directory)

    world.plan.run_after("appends", append, times=None)
    world.run(replacing)
    assert world.failure(replacing).code == "DESTINATION_BUSY"
    assert world.ledger.holders == set()
