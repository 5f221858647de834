"""The sweep's function: one call, with the limits that the schedule sends, and a report."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from s3commit.core.model.errors import TransientError
from s3commit.core.ports.bundle import Sweeper
from s3commit.core.sweep.sweep import DAY
from tests.core.world import World, job_directory
from tests.fakes.executions import MemoryExecutions
from tests.lambdas.conftest import Context

LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}


@pytest.fixture
def sweep(
    world: World, module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """Call the function as the schedule does."""

    def call(**limits: int) -> dict[str, Any]:
        loaded = module("sweep")
        monkeypatch.setattr(loaded, "sweeper", Sweeper(world.ports, MemoryExecutions()))
        answer: dict[str, Any] = json.loads(json.dumps(loaded.handler(LIMITS | limits, Context())))
        return answer

    return call


def test_a_sweep_reports_what_it_did_as_answer_log_and_metrics(
    world: World,
    sweep: Callable[..., dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    abandoned = job_directory()
    world.announce(abandoned, world.attempt(abandoned, "t0"))
    world.clock.advance(2 * DAY)
    assert sweep(abandonedHours=72)["aborted"] == 0
    report = sweep()
    assert (report["aborted"], report["failed"], report["broken"]) == (1, 0, False)
    said = [record for record in caplog.records if record.getMessage() == "swept"]
    assert [vars(one)["aborted"] for one in said] == [0, 1]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = {name for line in lines for name in line if name.startswith("Jobs")}
    assert metrics == {"JobsAbandoned"}


def test_a_sweep_that_can_not_read_the_index_fails_after_it_has_done_the_rest(
    world: World, sweep: Callable[..., dict[str, Any]]
) -> None:
    abandoned = job_directory()
    world.announce(abandoned, world.attempt(abandoned, "t0"))
    world.clock.advance(2 * DAY)
    world.plan.fail("jobs_in", TransientError("throttled"))
    with pytest.raises(TransientError, match="could not read"):
        sweep()
    assert world.store.head("lake", abandoned.request) is not None
