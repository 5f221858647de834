"""``s3commit sweep``: one pass, now, or what it would do."""

from __future__ import annotations

import pytest

from s3commit.cli.session import Session
from s3commit.core.model.errors import AccessError
from s3commit.core.ports.bundle import Sweeper
from s3commit.core.sweep.sweep import DAY
from tests.cli.support import JOB, MACHINE, OTHER, TABLE, Desk
from tests.core.world import job_directory
from tests.fakes.executions import MemoryExecutions


@pytest.fixture
def executions(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> MemoryExecutions:
    started = MemoryExecutions()

    def sweeper(_session: Session, table: str, machine: str) -> Sweeper:
        assert (table, machine) == (TABLE, MACHINE)
        return Sweeper(desk.world.ports, desk.world.plan.wrap(started))

    monkeypatch.setattr(Session, "sweeper", sweeper)
    return started


def left_behind(desk: Desk) -> None:
    """A job whose execution died, and one that was never asked for."""
    desk.job_at("SealJob")
    desk.open_job(OTHER)
    desk.world.clock.advance(2 * DAY)


def test_a_dry_run_says_what_would_be_done(desk: Desk, executions: MemoryExecutions) -> None:
    left_behind(desk)
    before = desk.world.all_keys()
    result = desk.run("sweep", "--table", TABLE, "--dry-run")
    stuck, abandoned = result.stdout.splitlines()
    assert stuck.startswith(f"dry run: job {JOB} at s3://lake/sales/: SEALED, silent for 48 hours")
    assert abandoned.startswith(f"dry run: job {OTHER} at s3://lake/sales/: abandoned, no sign")
    assert "would be done: 1 execution started, 1 job aborted, 0 jobs retired" in result.stderr
    assert desk.world.all_keys() == before
    assert executions.started == {}


def test_a_pass_does_it_and_a_program_reads_what(desk: Desk, executions: MemoryExecutions) -> None:
    left_behind(desk)
    told = desk.json("sweep", "--table", TABLE)
    assert (told["started"], told["aborted"], told["dryRun"]) == (1, 1, False)
    assert set(executions.started.values()) == {job_directory(JOB)}
    assert desk.world.store.head("lake", job_directory(OTHER).request) is not None


def test_limits_are_the_callers(desk: Desk, executions: MemoryExecutions) -> None:
    left_behind(desk)
    limits = ["--stuck-after", "3d", "--abandoned-after", "1w"]
    told = desk.json("sweep", "--table", TABLE, *limits)
    assert (told["started"], told["aborted"]) == (0, 0)
    assert executions.started == {}


def test_what_failed_is_said_and_is_the_exit_code(desk: Desk, executions: MemoryExecutions) -> None:
    left_behind(desk)
    desk.world.plan.fail("start", AccessError("may not start it"))
    result = desk.run("sweep", "--table", TABLE, exit_code=1)
    assert "error: 1 thing could not be swept, failed: job" in result.stderr
    assert "may not start it; run it again" in result.stderr
    assert executions.started == {}


def test_without_a_job_the_deployment_has_to_be_named(
    desk: Desk, executions: MemoryExecutions
) -> None:
    assert "name its table" in desk.fails("sweep", exit_code=2)
    assert "--state-machine" in desk.fails("sweep", "--table", TABLE, exit_code=2)
    named = ["--state-machine", MACHINE]
    assert desk.json("sweep", "--table", TABLE, *named)["looked"] == 0
    assert executions.started == {}
