"""Two processes at work on one job, the second one wholly at each single call of the first one.

The first stalls before a call. Meanwhile another execution ends the job, or a twin of the
very step runs to its end (Lambda gave the first try up, and it runs all the same). Then the first
one wakes: it must do no harm, and the job must come to its end (I1-I5, I9).
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.bundle import Ports
from tests.core.enumerated import every_point
from tests.core.world import World, job_directory
from tests.crash.scenarios import POLICIES, SCENARIOS, Scenario, check_ended
from tests.fakes import execution
from tests.fakes.execution import SUPERSEDED, CompleteUnits
from tests.fakes.faults import FaultPlan

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
