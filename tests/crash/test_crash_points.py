"""A crash, or another process, between any two calls of a job, enumerated (I1-I11).

The pipeline dies before a call, with its execution: what lasts is changed by calls alone, so a
crash after one of them is a crash before the next (tests/core/test_job.py runs an ended job
again). A later execution goes on, as a redrive or the sweep would start it. Whatever the point, the
job ends, and every invariant holds on the way. Beside a crash: S3 or the ledger answers 503 and has
done nothing, or has done it and the answer is lost. Or the ledger is lost after any call, and the
job goes on by what is in S3 alone (I8; tests/crash/test_empty_ledger.py has how the ledger heals).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from s3commit.core.formats.layout import owner_of
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import S3CommitError, TransientError
from s3commit.core.model.outcome import Outcome
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.crash.scenarios import (
    BEFORE,
    POLICIES,
    SCENARIOS,
    Scenario,
    check_ended,
    fill,
    lose,
    rolling_back,
)
from tests.fakes import execution
from tests.fakes.execution import SUPERSEDED, run_execution
from tests.fakes.faults import Crash, FaultPlan

ALL = [*SCENARIOS, *POLICIES]


@pytest.mark.parametrize("scenario", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("when", ["before", "before, alone", "answer lost", "503 for a while"])
def test_i1_i2_i4_i5_i6_i9_i10_i11_whatever_the_crash_point_the_job_ends_whole(
    when: str, scenario: Scenario
) -> None:
    """``alone``: each step is a call of its own, which notes what the others keep to themselves."""
    alone = when.endswith("alone")

    def check(point: int) -> FaultPlan:
        plan = FaultPlan()
        if when == "503 for a while":
            plan.fail(None, TransientError("503 Slow Down"), nth=point, times=5)
        else:
            (plan.lose_response if when == "answer lost" else plan.crash_before)(nth=point)
        world = scenario.begin(World(plan=plan))
        try:
            run_execution(world.ports, job_directory(), alone=alone)
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
    when: str, scenario: Scenario, repeats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine hears of one of the two alone: that one must not give the job up.

    After the last call of a step its own twin runs, before the next call that of the next step.
    """
    attempt = execution.attempt
    under_way: list[tuple[Any, dict[str, Any]]] = []

    def noting(*call: Any, **how: Any) -> Iterator[str]:
        under_way.append((call[1:], how))
        return attempt(*call, **how)

    monkeypatch.setattr(execution, "attempt", noting)

    def check(point: int) -> FaultPlan:
        world = World(repeats_complete=repeats)

        def twin() -> None:
            with suppress(S3CommitError):
                call, how = under_way[-1]
                list(attempt(world.ports, *call, **how))

        strike = {"before": world.plan.run_before, "after": world.plan.run_after}[when]
        strike(None, twin, nth=point)
        scenario.begin(world)
        entered = world.run(job_directory(), "execution-1")
        assert SUPERSEDED not in entered, (point, entered)
        check_ended(world, scenario)
        return world.plan

    every_point(check)


COMMITTED = [one for one in ALL if one.outcome is Outcome.COMMITTED]


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
def test_i2_i10_a_job_that_is_brought_back_and_refused_has_removed_nothing(scope: Scope) -> None:
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
