"""``s3commit status`` and ``sweep``: what is under way, what needs someone, and one pass now."""

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from s3commit.aws import env
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.sweep.sweep import DAY
from tests.cli.support import JOB, MACHINE, NO_JOBS, OTHER, SALES, TABLE, THIRD, Desk
from tests.core.world import job_directory
from tests.fakes.executions import MemoryExecutions

HOUR = 3600


def test_the_jobs_under_way_come_latest_first(desk: Desk) -> None:
    desk.open_job(JOB)
    desk.world.clock.advance(60)
    desk.open_job(OTHER)
    desk.world.clock.advance(125)
    result = desk.run("status", "--table", TABLE)
    header, first, second = result.stdout.splitlines()
    assert header.split() == ["STATE", "AGE", "JOB", "DESTINATION"]
    assert first.split() == ["OPEN", "2m", "5s", OTHER, "s3://lake/sales/"]
    assert second.split() == ["OPEN", "3m", "5s", JOB, "s3://lake/sales/"]
    assert result.stderr == "2 jobs: 2 OPEN\n"


@pytest.mark.parametrize("how", ["one request", "too many jobs", "no right to scan"])
def test_a_ledger_with_few_jobs_is_read_by_one_request(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The answer is the same without it, also of digits, of one state and of a page."""
    desk.open_job(JOB)
    desk.world.clock.advance(60)
    desk.job_at("SealJob", OTHER)
    desk.job_at("DecideCommit", THIRD)
    asks = (["--all"], ["--state", "SEALED"], ["--all", "--limit", "1"])
    expected = [desk.json("status", "--table", TABLE, *ask)["jobs"] for ask in asks]
    shown = desk.run("show", OTHER[:8], "--table", TABLE).stdout
    asked, jobs_in = list[JobState](), desk.world.ledger.jobs_in

    def counted(state: JobState, **when: Any) -> Iterator[JobRecord]:
        asked.append(state)
        return jobs_in(state, **when)

    monkeypatch.setattr(desk.world.ledger, "jobs_in", counted)
    if how == "too many jobs":
        monkeypatch.setattr("s3commit.cli.job_lists.FEW", 3)
    elif how == "no right to scan":
        refused = Mock(side_effect=AccessError("not allowed"))
        monkeypatch.setattr(desk.world.ledger, "all_jobs", refused)
    assert [desk.json("status", "--table", TABLE, *ask)["jobs"] for ask in asks] == expected
    assert desk.run("show", OTHER[:8], "--table", TABLE).stdout == shown
    assert len(asked) == (0 if how == "one request" else 2 * len(JobState) + 1 + len(JobState))


def test_what_is_silent_for_too_long_comes_first_and_is_marked(desk: Desk) -> None:
    desk.open_job(OTHER)
    desk.world.clock.advance(60)
    directory = desk.open_job(JOB)
    record = desk.world.record(directory)
    desk.world.ledger.advance(record, JobState.SEALED, now=desk.world.clock.now())
    desk.world.clock.advance(2 * HOUR)
    result = desk.run("status", "--table", TABLE)
    assert [line[0] for line in result.stdout.splitlines()[1:]] == ["!", " "]
    assert result.stdout.splitlines()[1].split()[:2] == ["!", "SEALED"]
    assert result.stderr == "2 jobs: 1 SEALED, 1 OPEN; 1 needs attention (!)\n"


def test_an_open_job_has_a_day(desk: Desk) -> None:
    desk.open_job(JOB)
    desk.world.clock.advance(23 * HOUR)
    assert [job["attention"] for job in desk.listed()] == [False]
    desk.world.clock.advance(2 * HOUR)
    assert [job["attention"] for job in desk.listed()] == [True]


def test_an_open_job_whose_request_nobody_took_up_is_marked(desk: Desk) -> None:
    desk.open_job(OTHER)
    desk.requested_job(JOB)
    desk.world.clock.advance(60)
    asked, other = desk.listed()
    assert (asked["jobId"], asked["requestedSeconds"], asked["attention"]) == (JOB, 60, False)
    assert (other["requestedSeconds"], other["attention"]) == (None, False)
    desk.world.clock.advance(300)
    header, first, second = desk.run("status", "--table", TABLE).stdout.splitlines()
    assert header.split() == ["!", "STATE", "AGE", "JOB", "DESTINATION", "REQUESTED"]
    assert (first.split()[0], first.split()[-2:]) == ("!", [SALES, "6m"])
    assert second.split()[2] == OTHER


def test_of_open_jobs_the_oldest_are_looked_at(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3commit.cli.status.LOOKED_AT", 1)
    for job_id in (JOB, OTHER):
        desk.requested_job(job_id)
        desk.world.clock.advance(1)
    jobs = desk.listed()
    assert {one["jobId"]: one["requestedSeconds"] for one in jobs} == {JOB: 2, OTHER: None}


def test_alarms_that_fire_and_dead_letters_are_said_if_the_caller_may_read_them(desk: Desk) -> None:
    desk.stacks.deploy()
    assert desk.run("status").stderr == NO_JOBS
    desk.stacks.alarms, desk.stacks.dead_letters = ["JobsFailed", "EventsLost"], 2
    none, *said = desk.run("status").stderr.splitlines()
    assert none.startswith(
        "no job to show has reached the ledger, but events are held up: see below"
    )
    assert said == [
        "alarms: EventsLost since 2026-11-21 22:00:00Z, JobsFailed since 2026-11-21 22:00:00Z;"
        " see docs/operations.md#runbook",
        "dead letters: 2 in Ingest, 2 in Request; fix the cause, then s3commit redrive",
    ]
    desk.stacks.unwatched = AccessError("not allowed")
    why = "alarms, dead letters cannot be read: not allowed\n"
    assert desk.run("status").stderr == NO_JOBS + why
    assert desk.json("status")["alarms"] is None
    desk.stacks.unwatched = None
    assert desk.json("status", "--table", TABLE)["deadLetters"] == {"Ingest": 2, "Request": 2}
    desk.session.ledgers["another"] = desk.world.ledger
    assert desk.json("status", "--table", "another")["alarms"] is None, "of another deployment"


@pytest.mark.parametrize("what", ["requests", "executions"])
def test_who_may_not_look_at_all_is_told_so_beside_the_jobs(desk: Desk, what: str) -> None:
    desk.requested_job(THIRD)
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    if what == "requests":
        desk.world.plan.fail("list", AccessError("not authorized"))
    else:
        desk.executions.refusal = AccessError("not authorized")
    result = desk.run("status", "--table", TABLE)
    assert len(result.stdout.splitlines()) == 4
    assert f"{what} cannot be read: not authorized" in result.stderr


def test_a_job_that_waits_says_for_how_long_and_for_whom(desk: Desk) -> None:
    desk.job_at("AcquireDestination", OTHER, conflict=Conflict.REPLACE)
    desk.world.clock.advance(1)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    desk.world.clock.advance(30)
    result = desk.run("status", "--table", TABLE)
    header, first, second = (line.split() for line in result.stdout.splitlines())
    assert header[-2:] == ["WAITS", "FOR"]
    assert first[2:] == [JOB, "s3://lake/sales/", "30s", OTHER]
    assert second[:4] == ["SEALED", "31s", OTHER, "s3://lake/sales/"]
    assert result.stderr == "2 jobs: 2 SEALED\n"
    (waiter, holder) = desk.listed()
    assert (holder["waitsFor"], holder["waitsSeconds"]) == ([], None)
    assert (waiter["waitsFor"], waiter["waitsSeconds"]) == ([OTHER], 30)


def test_a_dead_execution_that_keeps_others_waiting_is_marked_at_once(desk: Desk) -> None:
    desk.open_job(THIRD)
    desk.world.clock.advance(1)
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    desk.dies(OTHER)
    result = desk.run("status", "--table", TABLE)
    _, first, second, third = result.stdout.splitlines()
    assert first.split()[:2] == ["!", "COMMITTING"]
    assert second.endswith(f"<1s  {OTHER}")
    assert third.split()[2] == THIRD
    assert "1 needs attention (!)" in result.stderr
    documents = {one["jobId"]: one for one in desk.listed()}
    assert documents[OTHER]["attention"] is True


def test_ended_jobs_are_shown_on_demand_the_latest_first(desk: Desk) -> None:
    desk.committed_job(JOB)
    desk.aborted_job(OTHER)
    assert desk.run("status", "--table", TABLE).stderr == NO_JOBS
    other = desk.run("status", "s3://lake/other/", "--table", TABLE, "--all").stderr
    assert other.startswith("no jobs at s3://lake/other/; s3commit log DESTINATION")
    every = desk.json("status", "--table", TABLE, "--all")
    assert every["counts"] == {"COMMITTED": 1, "ABORTED": 1}
    (aborted,) = desk.listed("--state", "aborted")
    assert (aborted["jobId"], aborted["code"]) == (OTHER, "ABORTED_BY_CLIENT")
    desk.world.clock.advance(60)
    desk.aborted_job(THIRD)
    result = desk.run("status", "--table", TABLE, "--all", "--limit", "1")
    header, first, second = (line.split() for line in result.stdout.splitlines())
    assert header[-2:] == ["WHY", "NOT"]
    assert (first[0], first[2], first[-1]) == ("ABORTED", THIRD, "ABORTED_BY_CLIENT")
    assert second[0] == "COMMITTED"


def test_the_json_has_stable_keys_and_a_limit_that_cuts_is_said(desk: Desk) -> None:
    desk.open_job(JOB)
    desk.world.clock.advance(10)
    document = desk.json("status", "--table", TABLE)
    assert document["table"] == TABLE
    assert document["complete"] is True
    (job,) = document["jobs"]
    assert job["ageSeconds"] == 10
    assert set(job) == {
        *("jobId", "state", "attention", "destination", "createdAt", "updatedAt", "ageSeconds"),
        *("files", "bytes", "rows", "requestedSeconds", "waitsSeconds", "waitsFor"),
        *("execution", "executionStatus", "executionFailed", "code"),
        *("kind", "undoes", "undoneBy", "tookSeconds", "idempotencyKey", "note", "labels"),
    }
    desk.open_job(OTHER)
    result = desk.run("status", "--table", TABLE, "--limit", "1")
    assert len(result.stdout.splitlines()) == 2
    assert "there are more: raise --limit" in result.stderr
    assert desk.json("status", "--table", TABLE, "--limit", "1")["complete"] is False


def test_a_table_is_asked_for_alone_and_what_is_below_it(desk: Desk) -> None:
    desk.open_job(JOB)
    for place, lines in ((SALES, 2), ("s3://lake/sale/", 0), ("s3://other/sales/", 0)):
        assert len(desk.run("status", place, "--table", TABLE).stdout.splitlines()) == lines


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


def test_a_dry_run_says_what_a_pass_then_does(desk: Desk, executions: MemoryExecutions) -> None:
    left_behind(desk)
    before = desk.world.all_keys()
    facts = desk.text("sweep", "--table", TABLE, "--dry-run").splitlines()
    assert facts[0] == "dry run yes"
    assert {"started 1", "aborted 1", "expired 0"} < set(facts)
    assert facts[-2].startswith(
        f"notes would be done: job {JOB} at {SALES}: SEALED, silent for 48 hours"
    )
    assert facts[-1].startswith(f"would be done: job {OTHER} at {SALES}: abandoned, no sign")
    assert desk.world.all_keys() == before
    assert executions.started == {}
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
    assert "Error: the sweep had 1 error: job" in result.stderr
    assert "may not start it [ACCESS_DENIED]; check your identity: aws sts" in result.stderr
    assert "nothing was changed" not in result.stderr  # the other job was aborted
    assert desk.world.store.head("lake", job_directory(OTHER).request) is not None
    assert executions.started == {}


LASTS = [
    (AccessError("no"), "no [ACCESS_DENIED]; check your identity: aws sts get-caller-identity"),
    (NotFoundError("gone", code="NO_TABLE"), "[NO_TABLE]; check the table name"),
    (NotFoundError("gone", code="NO_BUCKET"), "gone [NO_BUCKET]"),
    (InvalidInputError("bad"), "bad [INVALID_INPUT]"),
    (JobRefusedError("bad", code="BAD_JSON"), "bad [BAD_JSON]"),
    (NeedsOperatorError("changed", code="PAGE_CHANGED"), "changed [PAGE_CHANGED]"),
    (TransientError("slow"), "slow [TRANSIENT]; run it again"),
]


@pytest.mark.parametrize(("error", "says"), LASTS, ids=str)
@pytest.mark.parametrize("verb", ["start", "list"])
@pytest.mark.usefixtures("executions")
def test_only_what_passes_is_to_be_run_again(
    desk: Desk, verb: str, error: S3CommitError, says: str
) -> None:
    left_behind(desk)
    desk.world.plan.fail(verb, error, times=None)
    line = desk.run("sweep", "--table", TABLE, exit_code=1).stderr.splitlines()[-1]
    assert says in line
    assert ("again" in line) == isinstance(error, TransientError)


def test_without_a_job_the_stack_has_to_be_named(desk: Desk, executions: MemoryExecutions) -> None:
    desk.stacks.outputs.clear()
    assert "no stack S3CommitStorage" in desk.fails("sweep", exit_code=1)
    desk.stacks.outputs[env.STORAGE_STACK] = {}  # its creation goes on, or has failed
    assert "no stack S3CommitStorage" in desk.fails("sweep", exit_code=1)
    assert "--state-machine" in desk.fails("sweep", "--table", TABLE, exit_code=2)
    named = ["--table", TABLE, "--state-machine", MACHINE]
    assert "no stack has the limits" in desk.fails("sweep", *named, exit_code=2)
    typed = ["--stuck-after=1h", "--abandoned-after=1d", "--retention=30d"]
    assert desk.json("sweep", *named, *typed)["visited"] == 0
    desk.stacks.deploy()
    for where in ([], ["--table", TABLE]):
        assert desk.json("sweep", *where)["visited"] == 0
    assert executions.started == {}


@pytest.mark.parametrize("why", [AccessError, TransientError, InvalidInputError])
def test_a_sweep_says_why_the_stack_can_not_be_read(desk: Desk, why: type[S3CommitError]) -> None:
    """What to type instead is no help without credentials, or without a network."""
    desk.stacks.refusal = why("the reason")
    assert "the reason" in desk.fails("sweep", "--table", TABLE, exit_code=1)
