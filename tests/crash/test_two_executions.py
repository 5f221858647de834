"""Two processes at work on one job, the second one wholly at each single call of the first one.

The first stalls before a call. Meanwhile another execution ends the job, or a twin of the
very step runs to its end (Lambda gave the first try up, and it runs all the same). Then the first
one wakes: it must do no harm, and the job must come to its end (I1-I5, I9).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pytest

from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.bundle import Ports
from tests.core.world import BUCKET, World, job_directory
from tests.crash.scenarios import POLICIES, SCENARIOS, Scenario, check_ended
from tests.fakes import execution
from tests.fakes.execution import SUPERSEDED, CompleteUnits
from tests.fakes.memory import MemoryObjectStore


@dataclass
class TwoFaced(World):
    """A world whose store may answer a repeated completion with success."""

    repeats_complete: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.store = MemoryObjectStore(
            BUCKET,
            versioned=self.versioned,
            clock=self.clock,
            repeats_complete=self.repeats_complete,
        )
        self.ports = Ports(self.plan.wrap(self.store), self.plan.wrap(self.ledger), self.clock)


def reached(world: World, point: int) -> bool:
    return any(call.number == point for call in world.plan.fired)


# Those with a policy of their own on one kind of bucket and with one answer of S3 each.
EVERY_WAY = [
    (scenario, versioned, repeats)
    for scenario in SCENARIOS
    for versioned in scenario.versioned
    for repeats in (False, True)
]
ONE_WAY = [
    (scenario, scenario.versioned[-1], bool(number % 2)) for number, scenario in enumerate(POLICIES)
]


def ids(value: object) -> str:
    return value.name if isinstance(value, Scenario) else str(value)


SCENARIO = pytest.mark.parametrize(
    ("scenario", "versioned", "repeats"), EVERY_WAY + ONE_WAY, ids=ids
)
UNVERSIONED = pytest.mark.parametrize(
    ("scenario", "versioned", "repeats"),
    [way for way in EVERY_WAY if not way[1]] + ONE_WAY,
    ids=ids,
)


@SCENARIO
def test_i1_i2_i4_i5_i6_i9_i10_i11_an_execution_that_was_overtaken_at_any_call_does_no_harm(
    scenario: Scenario, versioned: bool, repeats: bool
) -> None:
    point = 0
    while True:
        point += 1
        world = TwoFaced(versioned=versioned, repeats_complete=repeats)

        def second(world: World = world) -> None:
            world.run(job_directory(), "execution-2")
            check_ended(world, scenario)

        world.plan.run_before(None, second, nth=point)
        world.store.create_upload(BUCKET, "sales2/theirs", metadata={}, content_type="x")
        scenario.prepare(world)
        world.run(job_directory(), "execution-1")
        check_ended(world, scenario)
        if not reached(world, point):
            assert point > 15, "the enumeration must have reached the whole job"
            return


@UNVERSIONED
@pytest.mark.parametrize("when", ["before", "after"])
def test_i1_i2_i4_i5_i6_i9_i10_i11_a_step_whose_twin_runs_at_any_call_goes_on(
    when: str,
    scenario: Scenario,
    versioned: bool,
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
    point = 0
    while True:
        point += 1
        world = TwoFaced(versioned=versioned, repeats_complete=repeats)

        def twin(world: World = world) -> None:
            with suppress(S3CommitError):
                attempt(world.ports, *under_way[-1])

        strike = {"before": world.plan.run_before, "after": world.plan.run_after}[when]
        strike(None, twin, nth=point)
        world.store.create_upload(BUCKET, "sales2/theirs", metadata={}, content_type="x")
        scenario.prepare(world)
        entered = world.run(job_directory(), "execution-1")
        assert SUPERSEDED not in entered, (point, entered)
        check_ended(world, scenario)
        if not reached(world, point):
            assert point > 15, "the enumeration must have reached the whole job"
            return
