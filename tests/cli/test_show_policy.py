"""``s3commit show``: what a job may do to others, what others do to it, how it goes and ends."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from s3commit.cli import render
from s3commit.cli.advice import MEANING, meaning_of
from s3commit.cli.follow import COUNT_EVERY, STARTING
from s3commit.core.documents.job_json import Conditions
from s3commit.core.documents.result_json import RESULT_JSON, JobResult
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.checks import Check, Kind
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import AccessError, TransientError
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.executions import Execution
from s3commit.writer.requests import LONGEST_PAUSE
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk, arn_of
from tests.core.world import BUCKET, job_directory
from tests.fakes.execution import STEPS

CHECKS = (Check("n", Kind.NUMBER, "0", nulls=0),)
DAY: Any = {"conflict": Conflict.REPLACE, "scope": Scope.PARTITION, "partition_by": ("dt",)}


def test_the_policy_is_shown_whole(desk: Desk) -> None:
    directory = desk.requested_job(
        **DAY,
        idempotency_key="sales 2026-11-21",
        conditions=Conditions(min_rows=1, max_rows=9, checks=CHECKS),
    )
    text = desk.text("show", directory.uri)
    assert (
        "mode overwrite of its partitions\npartition by dt\n"
        "idempotency key sales 2026-11-21\n"
        "conditions min rows 1\nconditions max rows 9\n"
        "conditions checks column n, kind number, min 0, nulls 0\n"
    ) in text
    document = desk.json("show", directory.uri)
    checks = [{"column": "n", "kind": "number", "min": "0", "nulls": 0}]
    assert document["conditions"] == {"minRows": 1, "maxRows": 9, "checks": checks}
    assert document["idempotencyKey"] == "sales 2026-11-21"
    assert (document["conflict"], document["scope"]) == ("replace", "partition")


def test_a_job_says_what_it_has_locked(desk: Desk) -> None:
    desk.job_at("AcquireDestination", **DAY, files={f"dt=1/part-{JOB}.csv": b"x"})
    assert "locks nodes lake/sales/dt=1/\n" in desk.text("show", JOB, "--table", TABLE)
    nodes = ["lake/sales/dt=1/"]
    assert desk.shown()["locks"] == {"nodes": nodes, "waitsSeconds": None, "inTheWay": []}
    desk.job_at("VerifyManifests", OTHER)  # an append waits for nobody
    assert desk.shown(OTHER)["locks"] is None


def test_of_many_partitions_text_shows_some_and_json_all(desk: Desk) -> None:
    files = {f"dt={day}/part-{JOB}.csv": b"x" for day in range(60)}
    desk.job_at("AcquireDestination", **DAY, files=files)
    text = desk.text("show", JOB, "--table", TABLE)
    assert text.count("lake/sales/dt=") == render.SHOWN
    assert "and 10 more; --output json has them all" in text
    assert len(desk.shown()["locks"]["nodes"]) == 60


def test_a_job_that_waits_says_since_when_and_for_whom(desk: Desk) -> None:
    holder = desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    desk.world.clock.advance(70)
    text = desk.text("show", JOB, "--table", TABLE)
    assert (
        f"locks in the way job id {OTHER}, state COMMITTING, destination s3://lake/sales/,"
        " nodes lake/sales/, unchanged 1m 10s, execution"
    ) in text
    document = desk.shown()
    assert (document["locks"]["nodes"], document["locks"]["waitsSeconds"]) == ([], 70)
    (other,) = document["locks"]["inTheWay"]
    assert (other["jobId"], other["nodes"]) == (OTHER, ["lake/sales/"])
    assert (other["execution"], other["executionStatus"]) == (arn_of(OTHER), "RUNNING")
    assert document["next"] == [
        "nothing: it waits for these jobs, which precede it",
        f"job {OTHER} is COMMITTING, its execution RUNNING: s3commit show {OTHER} --table {TABLE}",
    ]
    assert desk.shown(OTHER)["locks"]["inTheWay"] == []
    desk.world.run(holder)
    assert desk.shown()["locks"] is None


def test_who_has_its_locks_waits_for_the_jobs_below(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, **DAY, files={f"dt=1/part-{OTHER}.csv": b"x"})
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    locks = desk.shown()["locks"]
    assert locks["nodes"] == ["lake/sales/"]
    (other,) = locks["inTheWay"]
    assert (other["jobId"], other["nodes"]) == (OTHER, ["lake/sales/dt=1/"])


def test_a_decided_holder_whose_execution_died_is_named_with_the_way_out(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    desk.dies(OTHER)
    again = f"s3commit commit {OTHER} --table {TABLE}"
    assert desk.shown()["next"][1] == f"job {OTHER} is COMMITTING, its execution FAILED: {again}"
    (line,) = desk.shown(OTHER)["next"]
    assert line == f"its execution is FAILED: {again} starts another, which continues"


def test_i10_what_is_replaced_is_said_by_what_became_of_it(desk: Desk) -> None:
    desk.committed_job(OTHER)
    directory = desk.job_at("CheckConditions", JOB, conflict=Conflict.REPLACE)
    text = desk.text("show", JOB, "--table", TABLE)
    assert "replaced files 2, bytes 8 B\n" in text
    assert desk.shown()["replaced"] == {"files": 2, "bytes": 8}
    desk.world.run(directory)
    text = desk.text("show", JOB, "--table", TABLE)
    assert "rows 8, replaced 2, decided" in text
    assert desk.shown()["result"]["replaced"] == 2


# An execution that has failed, and files in doubt


PAGE_CHANGED = "[PAGE_CHANGED] _s3commit/x/_index-y.json is missing"


def test_a_failed_execution_says_why_in_a_line_and_what_to_do(desk: Desk) -> None:
    desk.job_at("BeginPublish")
    desk.dies(JOB, error="NeedsOperatorError", says=PAGE_CHANGED)
    text = desk.text("show", JOB, "--table", TABLE)
    assert (
        "\nexecution error code PAGE_CHANGED"
        "\nexecution error message NeedsOperatorError: _s3commit/x/_index-y.json is missing"
        "\nexecution error means An object"
    ) in text
    assert "end.py" not in text
    assert "\nmeans stopped: its execution is FAILED; all files are visible\n" in text
    assert text.partition("\nnext ")[2].splitlines() == [
        "its execution is FAILED, PAGE_CHANGED: first remove the cause, as its error says",
        f"then: s3commit commit {JOB} --table {TABLE} starts another, which continues",
    ]
    error = desk.shown()["executionError"]
    assert (error["code"], error["do"][:7]) == ("PAGE_CHANGED", "Do what")


@pytest.mark.parametrize("state", sorted(set(JobState) - ENDED))
def test_no_job_without_its_execution_reads_as_if_it_went_on(state: JobState) -> None:
    job = Mock(state=state, failure=None, undoes="", request_stands=True)
    said = meaning_of(job, Execution("FAILED"))
    assert said.startswith("stopped: its execution is FAILED; ")
    assert "being" not in said
    assert not said.endswith(MEANING[state])
    job.request_stands = False
    assert meaning_of(job, Execution("RUNNING")) == MEANING[state]


@pytest.mark.parametrize(
    ("error", "says", "code"),
    [
        ("AccessError", "deleting s3://lake/x: Access Denied (AccessDenied)", "ACCESS_DENIED"),
        ("NeedsOperatorError", "[PLAN_NOT_READ] Step Functions could not read it", "PLAN_NOT_READ"),
        ("TransientError", "putting s3://lake/x: Slow Down (SlowDown)", "TRANSIENT"),
        ("KeyError", "'jobId'", "KeyError"),
    ],
)
def test_each_error_is_known_by_its_code(desk: Desk, error: str, says: str, code: str) -> None:
    desk.job_at("DecideCommit")
    desk.dies(JOB, error=error, says=says)
    found = desk.shown()["executionError"]
    assert found["code"] == code
    assert found["message"].startswith(f"{error}: {says.rpartition('] ')[2]}")
    assert "Run the job again" not in found["do"]
    (listed,) = desk.listed()
    assert (listed["attention"], listed["executionStatus"]) == (True, "FAILED")
    assert listed["executionFailed"] == code


def test_one_that_runs_or_was_forgotten_has_no_error(desk: Desk) -> None:
    desk.job_at("DecideCommit")
    assert desk.shown()["executionError"] is None
    desk.dies(JOB, "FORGOTTEN")
    text = desk.text("show", JOB, "--table", TABLE)
    assert "execution error" not in text
    assert "\nnext its execution is FORGOTTEN: s3commit commit" in text


# show --follow: a line a state, and the exit code by the outcome


def test_the_progress_of_an_open_job_is_counted_twice_a_minute(desk: Desk) -> None:
    world, directory = desk.world, job_directory(JOB)
    attempts = [world.attempt(directory, task) for task in "01"]
    world.announce(directory, attempts[0])

    desk.while_it_waits(
        lambda: world.announce(directory, attempts[1]),
        lambda: world.clock.advance(COUNT_EVERY),
        lambda: world.request(directory, *attempts),
        lambda: world.run(directory),
    )
    output = desk.run("show", "--follow", JOB, "--table", TABLE, "--output", "json").stdout
    changes = [json.loads(line) for line in output.splitlines()]
    assert [change["state"] for change in changes] == ["OPEN", "OPEN", "OPEN", "COMMITTED"]
    assert [change["noted"] and change["noted"]["tasks"] for change in changes] == [1, 2, 2, None]
    assert "commit or abort was requested; no execution has started" in changes[2]["means"]


def test_for_whom_a_job_waits_is_a_line_too(desk: Desk) -> None:
    other = desk.job_at("AcquireDestination", OTHER, conflict=Conflict.REPLACE)
    directory = desk.requested_job(JOB, conflict=Conflict.REPLACE)
    desk.executions.statuses[arn_of(JOB)] = "RUNNING"

    def step(job: JobDirectory, *names: str) -> Ticket:
        ticket = Ticket(job.job_id, job.bucket, job.prefix, execution=arn_of(job.job_id))
        for name in names:
            ticket = STEPS[name](desk.world.ports, ticket)
        return ticket

    desk.while_it_waits(
        lambda: step(directory, "SealJob"),
        lambda: step(directory, "SealJob", "VerifyManifests", "AcquireDestination"),
        lambda: None,
        lambda: desk.world.run(other),
        lambda: desk.world.run(directory),
    )
    lines = desk.run("show", "--follow", JOB, "--table", TABLE).stdout.splitlines()
    waits = "commit or abort was requested; no execution has started on it yet"
    assert [line[21:].split(maxsplit=1) for line in lines] == [
        ["OPEN", f"{waits}: 2 tasks done, 2 files, 8 B"],
        ["SEALED", MEANING["SEALED"]],
        ["SEALED", f"waits for {OTHER}"],
        ["SEALED", MEANING["SEALED"]],
        ["COMMITTED", f"{MEANING['COMMITTED']}: 2 files, 8 B, 8 rows"],
    ]


@pytest.mark.parametrize("outcome", [Outcome.ABORTED, Outcome.ROLLED_BACK])
def test_a_job_that_is_not_committed_exits_3_and_says_why(desk: Desk, outcome: Outcome) -> None:
    directory = desk.requested_job()
    result = JobResult(JOB, outcome, None, 0, 0, None, None, "2026-11-21T22:00:01.000Z", "")
    desk.world.store.put(BUCKET, directory.result, RESULT_JSON.encode(result))
    ended = desk.run("show", "--follow", directory.uri, exit_code=3)
    assert ended.stdout.split()[2] == outcome.value
    assert f"ended {outcome}; none of its files are visible: no reason given" in ended.stderr


def test_i11_a_job_whose_key_another_has_added_nothing_and_exits_0(desk: Desk) -> None:
    desk.committed_job(OTHER, idempotency_key="2026-11-21")
    directory = desk.requested_job(JOB, idempotency_key="2026-11-21")
    desk.environment.on_sleep = lambda: desk.world.run(directory)
    lines = desk.run("show", "--follow", JOB, "--table", TABLE).stdout.splitlines()
    assert "  ABORTED       nothing was added: another job has this idempotency key" in lines[-1]
    output = desk.run("show", "--follow", JOB, "--table", TABLE, "--output", "json").stdout
    assert OTHER in json.loads(output)["error"]["message"]


def follow(desk: Desk, job: str = JOB, timeout: str = "30s") -> Any:
    """What `show --follow` prints of a job that has not ended by then."""
    return desk.run("show", "--follow", job, "--table", TABLE, "--timeout", timeout, exit_code=4)


def test_a_job_that_takes_longer_exits_4_and_continues_if_that_is_known(desk: Desk) -> None:
    desk.requested_job(OTHER)
    see = f"see: s3commit show {OTHER} --table {TABLE}"
    assert f"has not ended after 30s: it is OPEN; {see}" in follow(desk, OTHER).stderr
    see = see.replace(OTHER, JOB)
    desk.job_at("BeginPublish")
    assert f"30s: it is PUBLISHING and continues; {see}" in follow(desk).stderr
    desk.executions.refusal = AccessError("denied")
    assert f"30s: it is PUBLISHING; {see}" in follow(desk).stderr


@pytest.mark.parametrize("late", [False, True])
def test_a_job_whose_execution_has_died_is_not_said_to_continue(desk: Desk, late: bool) -> None:
    desk.job_at("BeginPublish")

    def dies() -> None:
        desk.dies(JOB, error="NeedsOperatorError", says=PAGE_CHANGED)

    if late:
        desk.environment.on_sleep = dies
    else:
        dies()
    ended = follow(desk, timeout="1m")
    assert "PUBLISHING    stopped: its execution is FAILED; all files are" in ended.stdout
    assert f"is PUBLISHING and stopped; see: s3commit show {JOB} --table {TABLE}; " in ended.stderr
    assert f"; then: s3commit commit {JOB} --table {TABLE} starts another" in ended.stderr


def test_a_job_that_its_execution_ends_between_two_looks_is_not_stopped(desk: Desk) -> None:
    directory = desk.job_at("BeginPublish")

    def describe(execution: str) -> Execution:
        assert execution == arn_of(JOB)
        desk.world.run(directory)
        return Execution("SUCCEEDED")

    desk.executions.describe = describe  # type: ignore[method-assign]
    shown = desk.run("show", "--follow", JOB, "--table", TABLE).stdout
    assert [line.split()[2] for line in shown.splitlines()] == ["PUBLISHING", "COMMITTED"]
    assert "stopped" not in shown


def test_a_job_that_another_execution_takes_over_is_not_stopped(desk: Desk) -> None:
    """`s3commit commit` starts one and advises to follow it, which may come first."""
    directory = desk.job_at("BeginPublish")
    desk.dies(JOB, error="NeedsOperatorError", says=PAGE_CHANGED)
    late = desk.environment.monotonic() + STARTING - LONGEST_PAUSE

    def takes_over() -> None:
        if desk.environment.monotonic() >= late:
            desk.world.run(directory)

    desk.environment.on_sleep = takes_over
    shown = desk.run("show", "--follow", JOB, "--table", TABLE).stdout
    assert [line.split()[2] for line in shown.splitlines()] == ["PUBLISHING", "COMMITTED"]
    assert "stopped" not in shown


def test_a_look_that_fails_in_passing_is_taken_again(desk: Desk) -> None:
    directory = desk.requested_job()
    desk.world.plan.fail("list", TransientError("503"), times=3)
    desk.while_it_waits(lambda: None, lambda: None, lambda: desk.world.run(directory))
    lines = desk.run("show", "--follow", JOB, "--destination", SALES).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["COMMITTED"]


def test_a_store_that_stays_away_leaves_the_outcome_unknown(desk: Desk) -> None:
    desk.requested_job()
    desk.world.plan.fail("list", TransientError("503"), times=None)
    line = desk.fails("show", "--follow", JOB, "--destination", SALES, exit_code=4)
    assert "has not ended after 15m: it is unseen (503); see: s3commit status" in line


def test_an_interrupt_stops_the_watching_alone(desk: Desk) -> None:
    desk.requested_job()
    desk.environment.on_sleep = Mock(side_effect=KeyboardInterrupt)
    ended = desk.run("show", "--follow", JOB, "--table", TABLE, exit_code=130)
    assert ended.stderr == (
        "Error: interrupted; running jobs continue and requests already made still apply\n"
    )
