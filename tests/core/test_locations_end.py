"""Partitions outside the destination: late attempts, aborts, roll backs and lost ledgers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.model.job import (
    Conflict,
    Names,
    Outcome,
)
from s3commit.core.model.states import JobState
from tests.core.two_places import (
    HERE_FILE,
    LOCATIONS,
    MAIN,
    OLD,
    PREFIX,
    THERE,
    THERE_FILE,
    asked,
    code,
    data,
    here,
    put_old,
    there,
)
from tests.core.world import BUCKET, JOB, OTHER_JOB, REF, World, job_directory
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import MemoryLedger


def test_the_manifests_of_all_places_are_noted_under_the_one_job() -> None:
    world = World()
    world.open(MAIN, locations=LOCATIONS)
    for directory, counted in [(THERE, there(world)), (MAIN, here(world))]:
        assert world.announce(directory, counted) == 0
        assert world.announce(directory, counted) == 0
    assert world.record(MAIN).destination == MAIN.destination
    notes = {(one.location, one.manifest) for one in world.ledger.attempts(REF)}
    name = MAIN.manifest_name("t0", "a0")
    assert notes == {("", MAIN.prefix + name), (PREFIX, THERE.prefix + name)}


@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "forgotten"])
@pytest.mark.parametrize("abort", [False, True], ids=["committed", "aborted"])
def test_i3_i4_a_manifest_that_arrives_late_at_a_location_is_aborted(
    forgotten: bool, abort: bool
) -> None:
    world = World()
    world.open(MAIN, locations=LOCATIONS)
    if abort:
        world.request_abort(MAIN)
    else:
        world.request(MAIN, here(world), there(world))
    world.run(MAIN)
    if forgotten:
        world.ledger = MemoryLedger()
        world.ports = replace(world.ports, ledger=world.ledger)
    before = data(world)
    assert world.announce(THERE, there(world, "late")) == 1
    assert world.open_uploads() == []
    assert data(world) == before
    assert not world.all_keys(THERE.tasks)


def test_i3_all_manifests_of_a_task_are_of_one_attempt() -> None:
    world = World()
    world.open(MAIN, locations=LOCATIONS)
    world.request(MAIN, here(world, "a0"), there(world, "a1"))
    world.run(MAIN)
    assert code(world) == "TWO_ATTEMPTS"
    assert data(world) == {}
    assert world.open_uploads() == []


def test_i3_i4_what_losers_left_at_a_location_is_aborted() -> None:
    world = World()
    asked(world)
    there(world, "loser")
    world.store.create_upload(BUCKET, f"{PREFIX}part-t9-{JOB}.x", metadata={}, content_type="x")
    world.run(MAIN)
    assert data(world) == {HERE_FILE: b"here", THERE_FILE: b"there"}
    assert world.open_uploads() == []
    assert not world.all_keys(THERE.tasks)


@pytest.mark.parametrize("names", Names)
def test_i4_an_aborted_job_leaves_nothing_at_its_locations(names: Names) -> None:
    world = World()
    world.open(MAIN, locations=LOCATIONS, names=names)
    here(world)
    there(world)
    if names is Names.EXACT:
        world.attempt(THERE, "t1", files={"exact.csv": b"x"})
    stranger = world.store.create_upload(BUCKET, "archive/x", metadata={}, content_type="x")
    world.request_abort(MAIN)
    world.run(MAIN)
    assert world.result(MAIN).outcome is Outcome.ABORTED
    assert [one.upload_id for one in world.store.list_uploads(BUCKET, "")] == [stranger]


@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("lost", [HERE_FILE, THERE_FILE])
def test_i2_a_roll_back_reaches_all_places(names: Names, lost: str) -> None:
    world = World()
    asked(world, names=names)
    world.lose_after_decision(lost)
    assert "RollBack" in world.run(MAIN)
    assert world.result(MAIN).outcome is Outcome.ROLLED_BACK
    assert data(world) == {}
    assert world.open_uploads() == []


@pytest.mark.parametrize("loses", [False, True], ids=["commits", "rolls back"])
def test_i2_what_was_decided_goes_on_though_a_location_does_not_agree_any_more(
    loses: bool,
) -> None:
    world = World()
    put_old(world)
    asked(world, conflict=Conflict.REPLACE)

    def forget() -> None:
        world.store.delete(BUCKET, THERE.job)
        if loses:
            world.lose_uploads(HERE_FILE, slice(1))

    world.plan.run_after("decide", forget)
    world.run(MAIN)
    assert data(world) == (OLD if loses else {HERE_FILE: b"here", THERE_FILE: b"there"})
    assert world.open_uploads() == []


def test_i8_a_job_with_locations_ends_whole_whenever_the_ledger_is_lost() -> None:
    for point in range(1, 1000):
        world = World(plan=FaultPlan().crash_after(nth=point))
        put_old(world)
        asked(world, conflict=Conflict.REPLACE)
        try:
            world.run(MAIN)
        except Crash:
            world.ledger = MemoryLedger()
            world.ports = replace(world.ports, ledger=world.ledger)
            world.run(MAIN, "execution-2")
        assert data(world) == {HERE_FILE: b"here", THERE_FILE: b"there"}, point
        assert world.record(MAIN).state is JobState.COMMITTED
        assert world.open_uploads() == []
        if not world.plan.fired:
            assert point > 40, "the enumeration must have reached the whole job"
            return


def test_i5_the_files_of_another_job_at_a_location_are_left_alone() -> None:
    world = World()
    other = job_directory(OTHER_JOB, PREFIX)
    counted = world.attempt(other, "t0")
    asked(world)
    world.run(MAIN)
    assert world.open_uploads() == [f"{PREFIX}part-t0-{OTHER_JOB}.parquet"]
    world.request(other, counted)
    world.run(other)
    assert len(data(world)) == 3
