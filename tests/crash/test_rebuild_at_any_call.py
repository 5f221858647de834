"""Ledgers that are lost at any call and made again, by rebuilds that die anywhere (I8)."""

from __future__ import annotations

import contextlib
from itertools import count

import pytest

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Outcome
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from tests.core.lost_world import Checked
from tests.core.world import BUCKET, JOB, REF, job_directory
from tests.crash.rebuild_faults import (
    FAULTS,
    disarm,
    each_scenario,
    prepared,
    with_fault,
)
from tests.crash.scenarios import (
    OTHERS_FILE,
    Scenario,
    check_ended,
    keyed_again,
)
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan


def check_after(desk: Checked, scenario: Scenario) -> None:
    """As `check_ended`; but a job may be undone otherwise, or whole since it lost nothing yet."""
    world, directory = desk.world, job_directory()
    outcome = world.result(directory).outcome
    if scenario.outcome is Outcome.COMMITTED:
        check_ended(world, scenario)
        return
    if outcome is Outcome.COMMITTED:
        assert scenario.code == "UPLOADS_LOST", "it was refused for a reason that still holds"
        assert world.json(directory.success)["jobId"] == JOB
        assert world.store.head(BUCKET, directory.commits) is not None
    else:
        assert world.visible() == scenario.visible
        assert world.store.head(BUCKET, directory.commits) is None
    assert desk.report().is_sound, "what is committed is there"
    assert world.open_uploads() == ["sales2/theirs"]
    assert world.ledger._claims == {}
    if scenario.prepare is keyed_again:
        assert set(world.visible()) == {OTHERS_FILE}


@each_scenario
def test_i8_a_ledger_that_is_lost_at_any_call_is_made_again(scenario: Scenario) -> None:
    for point in count(1):
        dying = FaultPlan().crash_after(nth=point)
        desk = prepared(scenario, dying)
        with contextlib.suppress(Crash):
            desk.world.run(job_directory())
        if not [call for call in dying.fired if call.number == point]:
            assert point > 15, "the enumeration must have reached the whole job"
            return
        desk.lose_ledger()
        disarm(desk.world)
        ended = desk.world.store.head(BUCKET, job_directory().result) is not None
        [rebuilt] = [one for one in desk.rebuild() if one.directory == job_directory()]
        assert rebuilt.made
        assert rebuilt.state is not None
        if ended:
            assert rebuilt.state in ENDED
        elif rebuilt.state not in ENDED:  # else the sweep has its result written
            assert (rebuilt.goes_on, rebuilt.started) == (True, True)
            assert rebuilt.state in {JobState.OPEN, JobState.COMMITTING, JobState.PUBLISHING}
        first = desk.world.ledger.job(REF)
        assert first is not None
        # No execution of before holds a number that the ledger will give again.
        assert ended or first.generation > 10**9
        desk.rebuild()
        assert desk.world.ledger.job(REF) == first, "what is there stays as it is"
        desk.world.run(job_directory(), "execution-2")
        check_after(desk, scenario)


@pytest.mark.parametrize("when", FAULTS)
@each_scenario
def test_i8_a_rebuild_that_dies_anywhere_is_gone_on_with(when: str, scenario: Scenario) -> None:
    for point in count(1):
        desk = prepared(scenario, FaultPlan())
        desk.world.plan = FaultPlan().crash_after("decide")
        ports = desk.rebuilder.ports
        with contextlib.suppress(Crash):
            run_execution(ports, job_directory())
        desk.lose_ledger()
        plan = desk.world.plan = with_fault(when, point)
        with contextlib.suppress(Crash, S3CommitError):
            desk.rebuild()
        fired = bool(plan.fired)
        disarm(desk.world)
        desk.rebuild()
        attempts = {one.attempt_id for one in desk.world.ledger.attempts(REF)}
        record = desk.world.ledger.job(REF)
        assert record is not None
        if record.state not in ENDED:
            assert "a0" in attempts
        if not fired:
            assert point > 3
            return


@each_scenario
def test_i2_i6_i8_the_execution_that_ran_when_the_ledger_was_lost_does_no_harm(
    scenario: Scenario,
) -> None:
    """It goes on after others have made the ledger again and gone on with its job."""
    for point in count(1):
        plan = FaultPlan()
        desk = prepared(scenario, plan)
        fired: list[int] = []
        other = Checked(desk.world)

        def lose(fired: list[int] = fired, desk: Checked = desk, other: Checked = other) -> None:
            fired.append(1)
            desk.lose_ledger()
            kept, desk.world.plan = desk.world.plan, FaultPlan()
            other.rebuild()
            # Half of the way of a new one, which then stands still while the old one goes on.
            halfway = FaultPlan().crash_after("decide")
            with contextlib.suppress(Crash):
                run_execution(
                    Ports(desk.world.store, halfway.wrap(desk.world.ledger), desk.world.clock),
                    job_directory(),
                    execution="execution-2",
                )
            desk.world.plan = kept

        plan.run_before(None, lose, nth=point)
        with contextlib.suppress(S3CommitError):  # the old one fails: its job is another's
            desk.world.run(job_directory())
        disarm(desk.world)
        if not fired:
            assert point > 15
            return
        desk.world.run(job_directory(), "execution-3")
        check_after(desk, scenario)
