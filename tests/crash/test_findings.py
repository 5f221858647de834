"""Interleavings that once broke a guarantee, one by one; the enumerations can't reach them."""

from __future__ import annotations

from s3commit.core.model.job import Conflict, CountedAttempt, Outcome
from s3commit.core.model.states import JobState
from tests.core.world import OTHER_JOB, World, job_directory


def forget(world: World) -> None:
    """Its item has expired: an ended job has a time to live there."""
    world.ledger._jobs.clear()


def test_i3_i4_i8_a_late_manifest_of_a_job_that_the_ledger_forgot_does_not_open_it_again() -> None:
    world, directory = World(), job_directory()
    world.open(directory)
    gone = CountedAttempt("t0", "a1", directory.manifest_name("t0", "a1"), "0" * 64, 1, 5)
    world.request(directory, gone)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ABORTED
    forget(world)
    late = world.attempt(directory, "t0", "a1")
    world.announce(directory, late)
    assert world.open_uploads() == []
    assert world.record(directory).state is JobState.ABORTED


def test_i2_a_roll_back_behind_kms_removes_files_that_no_etag_proves() -> None:
    """The name is the proof (ADR 4)."""
    world, directory = World(opaque=True), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    world.lose_after_decision("sales/", slice(1, 2))
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


def test_i6_a_late_waker_of_an_ended_job_locks_nothing() -> None:
    world, directory, other = World(), job_directory(), job_directory(OTHER_JOB)
    for one in (directory, other):
        world.open(one, conflict=Conflict.REPLACE)
        world.request(one, world.attempt(one, "t0"))
    world.plan.run_before("lock", lambda: world.run(directory, "execution-2"))
    assert world.run(directory, "execution-1")[-1] == "Superseded"
    assert world.ledger.holders == set()
    assert world.run(other).count("AcquireDestination") == 1
    assert world.result(other).outcome is Outcome.COMMITTED
