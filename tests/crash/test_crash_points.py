"""A crash, or another process, between any two calls of a job, enumerated (I1-I11).

The pipeline dies before a call, with its execution: what lasts is changed by calls alone, so a
crash after one of them is a crash before the next (tests/core/test_job.py runs an ended job
again). A later execution goes on, as a redrive or the sweep would start it. Whatever the point, the
job ends, and every invariant holds on the way. Beside a crash: S3 or the ledger answers 503 and has
done nothing, or has done it and the answer is lost.
"""

from contextlib import suppress

import pytest

from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import S3CommitError, TransientError
from s3commit.core.ports.bundle import Ports
from tests.core.enumerated import every_point
from tests.core.world import World, job_directory
from tests.crash.scenarios import POLICIES, SCENARIOS, Scenario, check_ended, rolling_back
from tests.fakes import execution
from tests.fakes.execution import SUPERSEDED, CompleteUnits
from tests.fakes.faults import Crash, FaultPlan

ALL = [*SCENARIOS, *POLICIES]


def strike(plan: FaultPlan, when: str, point: int) -> None:
    if when == "503 for a while":
        plan.fail(None, TransientError("503 Slow Down"), nth=point, times=5)
    else:
        {"before": plan.crash_before, "answer lost": plan.lose_response}[when](nth=point)


@pytest.mark.parametrize("scenario", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("when", ["before", "answer lost", "503 for a while"])
def test_i1_i2_i4_i5_i6_i9_i10_i11_whatever_the_crash_point_the_job_ends_whole(
    when: str, scenario: Scenario
) -> None:
    def check(point: int) -> FaultPlan:
        plan = FaultPlan()
        strike(plan, when, point)
        world = scenario.begin(World(plan=plan))
        try:
            world.run(job_directory())
        except Crash:
            world.run(job_directory(), "execution-2")
        check_ended(world, scenario)
        return plan

    every_point(check)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_i2_i4_i5_a_roll_back_that_dies_twice_recovers_itself(every: int) -> None:
    """Each pair of crashes: of the execution that goes back, and of the one that goes on with it.

    The first dies before a call from its decision on, the second before any call of its own.
    """
    scenario = next(one for one in SCENARIOS if one.prepare is rolling_back)
    plan = FaultPlan()
    scenario.begin(World(plan=plan)).run(job_directory())
    verbs = [call.verb for call in plan.calls]
    pairs = 0
    for first in range(verbs.index("decide") + 1, len(verbs) + 1, every):
        second = 0
        while True:
            second += 1
            plan = FaultPlan().crash_before(nth=first)
            world = scenario.begin(World(plan=plan))
            with pytest.raises(Crash):
                world.run(job_directory())
            plan.crash_before(nth=second)
            try:
                world.run(job_directory(), "execution-2")
            except Crash:
                pairs += 1
                world.run(job_directory(), "execution-3")
                check_ended(world, scenario)
            else:
                check_ended(world, scenario)
                break
    print(f"{pairs} pairs")
    assert pairs > 500 // every


# Two processes at work on one job: the first stalls before a call. Meanwhile another execution ends
# the job, or a twin of the very step runs to its end (Lambda gave the first try up, and it runs all
# the same). Then the first one wakes: it must do no harm, and the job must come to its end.


# S3 may answer a repeated completion with success. Jobs with a policy meet one of its answers each.
EACH_WAY = [(scenario, repeats) for scenario in SCENARIOS for repeats in (False, True)]
EACH_WAY += [(scenario, bool(number % 2)) for number, scenario in enumerate(POLICIES)]


def ids(value: object) -> str:
    return value.name if isinstance(value, Scenario) else str(value)


SCENARIO = pytest.mark.parametrize(("scenario", "repeats"), EACH_WAY, ids=ids)


@SCENARIO
def test_i1_i2_i4_i5_i6_i9_i10_i11_an_execution_that_was_overtaken_at_any_call_does_no_harm(
    scenario: Scenario, repeats: bool
) -> None:
    def check(point: int) -> FaultPlan:
        world = World(repeats_complete=repeats)

        def second() -> None:
            world.run(job_directory(), "execution-2")
            check_ended(world, scenario)

        world.plan.run_before(None, second, nth=point)
        scenario.begin(world)
        world.run(job_directory(), "execution-1")
        check_ended(world, scenario)
        return world.plan

    every_point(check)


@SCENARIO
@pytest.mark.parametrize("when", ["before", "after"])
def test_i1_i2_i4_i5_i6_i9_i10_i11_a_step_whose_twin_runs_at_any_call_goes_on(
    when: str,
    scenario: Scenario,
    repeats: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine hears of one of the two alone: that one must not give the job up.

    After the last call of a step its own twin runs, before the next call that of the next step.
    """
    attempt = execution._attempt
    under_way: list[tuple[str, Ticket]] = []

    def noting(ports: Ports, name: str, ticket: Ticket, complete: CompleteUnits) -> Ticket:
        under_way.append((name, ticket))
        return attempt(ports, name, ticket, complete)

    monkeypatch.setattr(execution, "_attempt", noting)

    def check(point: int) -> FaultPlan:
        world = World(repeats_complete=repeats)

        def twin() -> None:
            with suppress(S3CommitError):
                attempt(world.ports, *under_way[-1])

        strike = {"before": world.plan.run_before, "after": world.plan.run_after}[when]
        strike(None, twin, nth=point)
        scenario.begin(world)
        entered = world.run(job_directory(), "execution-1")
        assert SUPERSEDED not in entered, (point, entered)
        check_ended(world, scenario)
        return world.plan

    every_point(check)
