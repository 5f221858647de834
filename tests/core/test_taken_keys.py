"""A job that waits for its locks while the job that has its key is sure to be committed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.model.job import Conflict
from s3commit.core.model.states import JobState
from tests.core.test_once import ALREADY, COMMITTED, FIRST, NOTE, SECOND, ask, ended
from tests.core.world import BUCKET, World
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash


def stopped_before(world: World, key: str) -> None:
    """The first job's execution dies before it puts ``key``; it holds its locks."""
    world.plan.crash_before("put", where=lambda call: call.key == key)
    with pytest.raises(Crash):
        world.run(FIRST)


def goes_on(world: World) -> Callable[[], object]:
    """The first job gets another execution while the second one waits."""
    return lambda: run_execution(world.ports, FIRST, execution="execution-2")


def test_i11_a_job_does_not_wait_for_one_that_has_its_key_for_good() -> None:
    world = World()
    ask(world, FIRST)
    ask(world, SECOND)
    stopped_before(world, FIRST.success)
    assert world.record(FIRST).state is JobState.PUBLISHING
    entered = world.run(SECOND)
    assert entered.count("AcquireDestination") == 1
    assert ended(world, SECOND) == ALREADY
    assert world.open_uploads() == []
    world.run(FIRST, "execution-2")
    assert ended(world, FIRST) == COMMITTED
    assert world.ledger._claims == {}


def test_i10_i11_while_old_files_are_removed_it_waits() -> None:
    """Its client would take the table for what it is afterwards."""
    world = World()
    world.store.put(BUCKET, "sales/old.csv", b"old")
    ask(world, FIRST, conflict=Conflict.REPLACE)
    ask(world, SECOND, conflict=Conflict.REPLACE)
    stopped_before(world, FIRST.success)
    entered = run_execution(world.ports, SECOND, pause=goes_on(world))
    assert entered.count("AcquireDestination") == 2
    assert (ended(world, FIRST), ended(world, SECOND)) == (COMMITTED, ALREADY)


def test_i11_one_that_may_still_be_undone_is_waited_for() -> None:
    world = World()
    ask(world, FIRST)
    ask(world, SECOND)
    world.plan.crash_before("complete_upload")
    with pytest.raises(Crash):
        world.run(FIRST)
    assert world.record(FIRST).state is JobState.COMMITTING
    entered = run_execution(world.ports, SECOND, pause=goes_on(world))
    assert entered.count("AcquireDestination") == 2
    assert (ended(world, FIRST), ended(world, SECOND)) == (COMMITTED, ALREADY)


def test_i11_a_note_of_a_job_that_nobody_knows_says_nothing_to_one_who_waits() -> None:
    world = World()
    ask(world, FIRST, key=None, conflict=Conflict.REPLACE)
    ask(world, SECOND)
    world.plan.crash_before("complete_upload")
    with pytest.raises(Crash):
        world.run(FIRST)
    note = {
        "version": 1,
        "key": "orders 2026-11-21",
        "jobId": "00000000-0000-4000-8000-000000000000",
    }
    world.store.put(BUCKET, NOTE, str(note).replace("'", '"').encode())
    entered = run_execution(world.ports, SECOND, pause=goes_on(world))
    assert entered.count("AcquireDestination") == 2
    assert (ended(world, FIRST), ended(world, SECOND)) == (COMMITTED, COMMITTED)
