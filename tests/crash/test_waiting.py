"""Jobs that wait for each other, each moment chosen: who holds, who goes first, who died (I6)."""

from __future__ import annotations

import itertools

import pytest

from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.job import Conflict, Outcome, Scope
from s3commit.core.model.limits import (
    HOLDER_SECONDS,
    LONGEST_WAIT,
    MAX_WAIT_SECONDS,
    WAITER_SECONDS,
)
from s3commit.core.model.record import Stage
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import SUPERSEDED, run_execution
from tests.fakes.faults import Crash, FaultPlan

# Two jobs, each moment chosen.


def asked(world: World, job_id: str, conflict: Conflict) -> JobDirectory:
    directory = job_directory(job_id)
    world.open(directory, conflict=conflict)
    files = {f"part-{job_id}.csv": job_id.encode()}
    world.request(directory, world.attempt(directory, "t", files=files))
    return directory


def outcome(world: World, directory: JobDirectory) -> tuple[Outcome, str]:
    error = world.result(directory).error
    return world.result(directory).outcome, error.code if error else ""


def test_i6_two_jobs_that_replace_different_partitions_run_at_the_same_time() -> None:
    world = World()
    directories = [job_directory(JOB), job_directory(OTHER_JOB)]
    for number, directory in enumerate(directories):
        world.open(directory, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
        name = f"dt={number}/part-{directory.job_id}.csv"
        world.request(directory, world.attempt(directory, "t", files={name: b"new"}))
    inside: list[list[str]] = []
    world.plan.run_after("decide", lambda: inside.append(world.run(directories[1])))
    entered = world.run(directories[0])
    assert inside[0].count("AcquireDestination") == entered.count("AcquireDestination") == 1
    assert [outcome(world, directory)[0] for directory in directories] == [Outcome.COMMITTED] * 2


def test_waiting_has_a_limit_and_the_message_names_the_holder() -> None:
    world = World(plan=FaultPlan().crash_after("decide"))
    holder = asked(world, JOB, Conflict.REPLACE)
    with pytest.raises(Crash):
        world.run(holder)
    waiting = asked(world, OTHER_JOB, Conflict.REPLACE)
    pauses: list[str] = []

    def pause() -> None:
        pauses.append(world.clock.now())
        world.clock.advance(LONGEST_WAIT)

    run_execution(world.ports, waiting, pause=pause)
    assert len(pauses) == MAX_WAIT_SECONDS // LONGEST_WAIT
    assert outcome(world, waiting) == (Outcome.ABORTED, "DESTINATION_BUSY")
    error = world.result(waiting).error
    assert error is not None
    assert JOB in error.message
    assert {ref for ref, _ in world.ledger._claims} == {holder.ref}
    world.run(holder, "execution-2")
    assert outcome(world, holder) == (Outcome.COMMITTED, "")


@pytest.mark.parametrize("verb", ["take_turn", "put"])
def test_i6_a_holder_that_died_before_its_decision_blocks_for_a_limited_time(verb: str) -> None:
    """After 40 minutes it is made unable to be decided, and only then is its lock taken."""
    dies_at = {"take_turn": FaultPlan().crash_after("take_turn", nth=2)}
    plan = dies_at.get(verb) or FaultPlan().crash_before("decide")
    world = World(plan=plan)
    dead = asked(world, JOB, Conflict.REPLACE)
    with pytest.raises(Crash):
        world.run(dead)
    other = asked(world, OTHER_JOB, Conflict.REPLACE)
    waited = []

    def pause() -> None:
        waited.append(world.record(dead).state)
        world.clock.advance(HOLDER_SECONDS / 8)

    run_execution(world.ports, other, pause=pause)
    assert outcome(world, other) == (Outcome.COMMITTED, "")
    assert waited == [JobState.SEALED] * 8
    assert world.record(dead).state is JobState.ABORTING
    world.run(dead, "execution-2")
    assert outcome(world, dead) == (Outcome.ABORTED, "STALLED")
    assert set(world.visible()) == {f"sales/part-{OTHER_JOB}.csv"}


@pytest.mark.parametrize("when", ["CheckConditions", "DecideCommit"])
def test_i6_a_holder_that_slept_too_long_is_refused_by_its_generation(when: str) -> None:
    world = World()
    sleeper, other = asked(world, JOB, Conflict.REPLACE), asked(world, OTHER_JOB, Conflict.REPLACE)

    def sleeps() -> None:
        world.clock.advance(HOLDER_SECONDS + 1)
        world.run(other)
        assert outcome(world, other) == (Outcome.COMMITTED, "")

    if when == "DecideCommit":
        world.plan.run_before("decide", sleeps)
    else:
        world.plan.run_before("list", sleeps, where=lambda call: call.key == "sales/")
    assert world.run(sleeper)[-1] == SUPERSEDED
    assert set(world.visible()) == {f"sales/part-{OTHER_JOB}.csv"}
    world.run(sleeper, "execution-2")
    assert outcome(world, sleeper) == (Outcome.ABORTED, "STALLED")
    assert set(world.visible()) == {f"sales/part-{OTHER_JOB}.csv"}


def test_i6_a_holder_that_ended_and_died_before_it_let_go_blocks_nobody() -> None:
    world = World(plan=FaultPlan().crash_before("drop_claim"))
    first = asked(world, JOB, Conflict.REPLACE)
    with pytest.raises(Crash):
        world.run(first)
    assert world.record(first).state is JobState.COMMITTED
    assert {ref for ref, _ in world.ledger._claims} == {first.ref}
    second = asked(world, OTHER_JOB, Conflict.REPLACE)
    assert world.run(second).count("AcquireDestination") == 1
    assert outcome(world, second) == (Outcome.COMMITTED, "")


def test_i6_a_holder_that_is_decided_is_waited_for_however_long_it_takes() -> None:
    world = World(plan=FaultPlan().crash_before("complete_upload"))
    first, second = asked(world, JOB, Conflict.REPLACE), asked(world, OTHER_JOB, Conflict.REPLACE)
    with pytest.raises(Crash):
        world.run(first)
    world.clock.advance(100 * HOLDER_SECONDS)
    pauses = itertools.count()

    def pause() -> None:
        if next(pauses) == 3:
            world.run(first, "execution-2")

    run_execution(world.ports, second, pause=pause)
    assert outcome(world, first) == outcome(world, second) == (Outcome.COMMITTED, "")
    assert set(world.visible()) == {f"sales/part-{OTHER_JOB}.csv"}


def test_i6_a_waiting_job_that_died_keeps_the_others_waiting_for_a_while() -> None:
    """An append comes after a replace that waits for an append; the replace dies waiting."""
    world = World()
    append, late = asked(world, JOB, Conflict.APPEND), asked(world, OTHER_JOB, Conflict.APPEND)
    replacing = asked(world, "0b6f6f0e-0000-4000-8000-00000000000a", Conflict.REPLACE)
    seen: list[str] = []

    def dies() -> None:
        raise Crash("while it waits")

    def waits() -> None:
        seen.append("waited")
        world.clock.advance(WAITER_SECONDS / 3)

    def meanwhile() -> None:
        with pytest.raises(Crash):
            run_execution(world.ports, replacing, pause=dies)
        run_execution(world.ports, late, pause=waits)

    world.plan.run_after("decide", meanwhile)
    world.run(append)
    assert seen == ["waited"] * 3
    assert outcome(world, append) == outcome(world, late) == (Outcome.COMMITTED, "")
    world.run(replacing, "execution-2")
    assert outcome(world, replacing) == (Outcome.COMMITTED, "")
    assert all(belongs_to_job(key, replacing.job_id) for key in world.visible())


def test_i6_a_try_that_stalled_before_it_queued_gives_away_nothing_that_its_twin_has_taken() -> (
    None
):
    """It saw that it has to wait; then another try of the step got the locks, and goes on."""
    world = World(plan=FaultPlan().crash_after("decide"))
    first, second = job_directory(JOB, "sales/t/"), job_directory(OTHER_JOB, "sales/t/")
    for directory in (first, second):
        world.open(directory, conflict=Conflict.REPLACE)
        world.request(directory, world.attempt(directory, "t"))
    with pytest.raises(Crash):
        world.run(first)
    unwatched = Ports(world.store, world.ledger, world.clock)
    ticket = Ticket(OTHER_JOB, BUCKET, second.prefix, execution="execution-1")
    ticket = verify_manifests(unwatched, seal_job(unwatched, ticket))

    def meanwhile() -> None:
        run_execution(unwatched, first, execution="execution-2")
        assert acquire_destination(unwatched, ticket).acquired

    world.plan.run_before("take_turn", meanwhile, nth=2)
    with pytest.raises(LostRaceError):
        acquire_destination(world.ports, ticket)
    assert world.record(second).turn.stage is Stage.HELD
    assert acquire_destination(world.ports, ticket).acquired
