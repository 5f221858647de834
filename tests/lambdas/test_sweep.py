"""The functions of the sweep: one call of a step each, and the report at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from s3commit.core.ports.bundle import Sweeper
from s3commit.core.sweep.sweep import DAY
from s3commit.core.sweep.turns import CALLS_A_PASS
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.executions import MemoryExecutions
from tests.lambdas.conftest import Context

LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "orphanedDays": 7, "retentionDays": 30}
FUNCTIONS = {
    "LookAtOpenJobs": "sweep_jobs",
    "GoOnWithStuckJobs": "sweep_jobs",
    "AbortOrphanedUploads": "sweep_uploads",
    "TidyJobDirectories": "sweep_directories",
    "ReportSweep": "sweep_jobs",
}

Step = Callable[..., dict[str, Any]]


@pytest.fixture
def step(
    world: World, module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Step:
    """Call a step with what the one before left, as the state machine does."""
    sweeper = Sweeper(world.ports, MemoryExecutions())

    def call(name: str, before: dict[str, Any], execution: str = "sweep-1") -> dict[str, Any]:
        loaded = module(FUNCTIONS[name])
        monkeypatch.setattr(loaded, "sweeper", sweeper)
        event = {
            "step": name,
            "execution": execution,
            "sweep": before,
            "bucket": BUCKET,
            "limits": LIMITS,
        }
        answer = loaded.handler(json.loads(json.dumps(event)), Context())
        again: dict[str, Any] = json.loads(json.dumps(answer))
        return again

    return call


def test_a_sweep_goes_through_the_functions_to_its_report(
    world: World,
    step: Step,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    abandoned, ended = job_directory(OTHER_JOB), job_directory()
    world.announce(abandoned, world.attempt(abandoned, "t0"))
    world.request(ended, world.attempt(ended, "t0"))
    world.run(ended)
    world.upload(ended, f"zombie-{JOB}.x", b"12345", task="t9", attempt="a0")
    world.clock.advance(2 * DAY)
    ticket: dict[str, Any] = {"startedBy": "schedule"}
    for name in FUNCTIONS:
        ticket = step(name, ticket)
        assert not ticket.get("more")
    assert ticket["broken"] is False
    report = ticket["report"]
    assert (report["asked"], report["uploads"], report["freedBytes"]) == (1, 1, 5)
    (said,) = [record for record in caplog.records if record.getMessage() == "swept"]
    assert vars(said)["asked"] == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = {name for line in lines for name in line if name in {"JobsAbandoned", "BytesFreed"}}
    assert metrics == {"JobsAbandoned", "BytesFreed"}


def test_a_step_after_one_that_failed_begins_at_its_own_beginning(step: Step) -> None:
    failed = {
        "step": "LookAtOpenJobs",
        "cursor": "OPEN 2026-11-21T22:00:00.000Z",
        "more": True,
        "report": {"asked": 2},
        "error": {"Error": "AccessError", "Cause": "may not"},
    }
    ticket = step("GoOnWithStuckJobs", failed)
    assert (ticket["broken"], ticket["more"], ticket["report"]["asked"]) == (True, False, 2)
    assert step("ReportSweep", step("AbortOrphanedUploads", ticket))["broken"] is True


def test_no_step_of_a_second_sweep_does_anything(world: World, step: Step) -> None:
    abandoned = job_directory()
    world.announce(abandoned, world.attempt(abandoned, "t0"))
    world.clock.advance(2 * DAY)
    first = step("GoOnWithStuckJobs", {})
    assert step("LookAtOpenJobs", {}, "sweep-2")["report"]["asked"] == 0
    step("ReportSweep", {}, "sweep-2")  # it gives back what it has, and that is nothing
    assert step("LookAtOpenJobs", {}, "sweep-2")["report"]["asked"] == 0
    step("ReportSweep", first)
    assert step("LookAtOpenJobs", {}, "sweep-2")["report"]["asked"] == 1


def test_the_next_sweep_goes_on_where_this_one_stopped(
    world: World, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass has so many calls for each step; behind them comes the next step."""
    monkeypatch.setattr("s3commit.core.sweep.sweep.CALL_REQUESTS", 2)
    directories = [job_directory(f"0b6f6f0e-0000-4000-8000-0000000001{n:02d}") for n in range(20)]
    for directory in directories:
        world.announce(directory, world.attempt(directory, "t0"))
    world.clock.advance(2 * DAY)
    asked = []
    for sweep in range(5):
        ticket: dict[str, Any] = {}
        for _ in range(CALLS_A_PASS + 1):
            ticket = step("LookAtOpenJobs", ticket, f"sweep-{sweep}")
            if not ticket["more"]:
                break
        asked.append(ticket["report"]["asked"])
        step("ReportSweep", ticket, f"sweep-{sweep}")
    assert asked == [6, 6, 6, 2, 0]
