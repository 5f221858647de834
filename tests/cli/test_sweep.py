"""``s3commit sweep``: one pass, now, or what it would do."""

import json

import pytest

from s3commit.aws import env
from s3commit.core.model.errors import AccessError
from s3commit.core.sweep.sweep import DAY
from tests.cli.support import JOB, MACHINE, OTHER, SALES, TABLE, Desk
from tests.core.world import job_directory
from tests.fakes.executions import MemoryExecutions


@pytest.fixture
def executions(desk: Desk) -> MemoryExecutions:
    started = MemoryExecutions()
    desk.session.machines = {MACHINE: desk.world.plan.wrap(started)}
    desk.stacks.deploy()
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
    facts = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert facts[0] == "dry run yes"
    assert {"started 1", "aborted 1", "retired 0"} < set(facts)
    assert facts[-2].startswith(f"notes job {JOB} at {SALES}: SEALED, silent for 48 hours")
    assert facts[-1].startswith(f"job {OTHER} at {SALES}: abandoned, no sign")
    assert desk.world.all_keys() == before
    assert executions.started == {}


def test_a_pass_does_it_and_a_program_reads_what(desk: Desk, executions: MemoryExecutions) -> None:
    left_behind(desk)
    told = desk.json("sweep", "--table", TABLE)
    assert (told["started"], told["aborted"], told["dryRun"]) == (1, 1, False)
    assert set(executions.started.values()) == {job_directory(JOB)}
    assert desk.world.store.head("lake", job_directory(OTHER).request) is not None


def test_limits_are_those_of_the_deployment_else(desk: Desk, executions: MemoryExecutions) -> None:
    """Or else a sweep by hand would delete documents that are to be kept."""
    given = {"stuckMinutes": "4320", "abandonedHours": 168, "retentionDays": 90}
    desk.stacks.outputs[env.STORAGE_STACK][env.PARAMETERS_OUTPUT] = json.dumps(given)
    left_behind(desk)
    told = desk.json("sweep")
    assert (told["started"], told["aborted"]) == (0, 0)
    told = desk.json("sweep", "--stuck-after", "1h", "--dry-run")
    assert (told["started"], told["aborted"]) == (1, 0)
    told = desk.json("sweep", "--stuck-after", "1h", "--abandoned-after", "1d")
    assert (told["started"], told["aborted"]) == (1, 1)


def test_what_failed_is_said_and_is_the_exit_code(desk: Desk, executions: MemoryExecutions) -> None:
    left_behind(desk)
    desk.world.plan.fail("start", AccessError("may not start it"))
    result = desk.run("sweep", "--table", TABLE, exit_code=1)
    assert "Error: 1 thing could not be swept, failed: job" in result.stderr
    assert "may not start it; run it again" in result.stderr
    assert "nothing was changed" not in result.stderr  # the other job was aborted
    assert desk.world.store.head("lake", job_directory(OTHER).request) is not None
    assert executions.started == {}


def test_without_a_job_the_deployment_has_to_be_named(
    desk: Desk, executions: MemoryExecutions
) -> None:
    desk.stacks.outputs.clear()
    assert "no stack S3CommitStorage" in desk.fails("sweep", exit_code=1)
    desk.stacks.outputs[env.STORAGE_STACK] = {}  # its creation goes on, or has failed
    assert "no stack S3CommitStorage" in desk.fails("sweep", exit_code=1)
    assert "--state-machine" in desk.fails("sweep", "--table", TABLE, exit_code=2)
    named = ["--table", TABLE, "--state-machine", MACHINE]
    assert "no stack says the limits" in desk.fails("sweep", *named, exit_code=2)
    typed = ["--stuck-after=1h", "--abandoned-after=1d", "--retention=30d"]
    assert desk.json("sweep", *named, *typed)["looked"] == 0
    desk.stacks.deploy()
    for where in ([], ["--table", TABLE]):
        assert desk.json("sweep", *where)["looked"] == 0
    assert executions.started == {}
