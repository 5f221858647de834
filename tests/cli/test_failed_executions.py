"""What `show` and `status` say of a job whose execution has failed, and of files in doubt."""

from __future__ import annotations

import json

import pytest

from s3commit.aws.steps import run_step
from s3commit.core.formats.ticket import Ticket, encode_ticket
from s3commit.core.model.errors import NeedsOperatorError
from s3commit.core.model.job import Conflict, Failure
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import Execution
from tests.cli.support import JOB, OTHER, TABLE, Desk, arn_of
from tests.core.world import BUCKET

LIST_CHANGED = "[LIST_CHANGED] sales/replaced.json is not the replace list that was decided"


def told(desk: Desk, job: str = JOB) -> dict[str, list[str]]:
    """What `show` prints, by name."""
    lines: dict[str, list[str]] = {}
    name = ""
    for line in desk.run("show", job, "--table", TABLE).stdout.splitlines():
        first, _, value = line.partition("  ")
        name = first or name
        lines.setdefault(name, []).append(value.strip())
    return lines


def test_a_failed_execution_says_why_in_a_line_and_what_to_do(desk: Desk) -> None:
    desk.job_at("BeginPublish")
    desk.dies(JOB, error="JobRefusedError", says=LIST_CHANGED)
    lines = told(desk)
    assert lines["execution error code"] == ["LIST_CHANGED"]
    assert lines["execution error message"] == [
        "JobRefusedError: sales/replaced.json is not the replace list that was decided"
    ]
    assert lines["execution error means"][0].startswith(
        "All new files are visible and the old files are still there"
    )
    assert "end.py" not in str(lines)
    assert lines["next"] == [
        "Restore `replaced-….json` and `replaced/`, or remove objects that others put there, or"
        " delete the old files yourself",
        f"its execution is FAILED: s3commit commit {JOB} starts another, which continues",
    ]
    error = desk.json("show", JOB, "--table", TABLE)["executionError"]
    assert (error["code"], error["do"][:7]) == ("LIST_CHANGED", "Restore")


@pytest.mark.parametrize(
    ("error", "says", "code"),
    [
        ("AccessError", "deleting s3://lake/x: Access Denied (AccessDenied)", "ACCESS_DENIED"),
        ("NeedsOperatorError", "[LEDGER_SET_BACK] s3://lake says otherwise", "LEDGER_SET_BACK"),
        ("NeedsOperatorError", "[PLAN_NOT_READ] Step Functions could not read it", "PLAN_NOT_READ"),
        ("TransientError", "putting s3://lake/x: Slow Down (SlowDown)", "TRANSIENT"),
        ("JobRefusedError", "[PLAN_CHANGED] the plan is not the one", "PLAN_CHANGED"),
        ("KeyError", "'jobId'", "KeyError"),
    ],
)
def test_each_error_is_known_by_its_code(desk: Desk, error: str, says: str, code: str) -> None:
    desk.job_at("DecideCommit")
    desk.dies(JOB, error=error, says=says)
    found = desk.json("show", JOB, "--table", TABLE)["executionError"]
    assert found["code"] == code
    assert found["message"].startswith(f"{error}: {says.rpartition('] ')[2]}")
    assert "Run the job again" not in found["do"]
    (listed,) = desk.json("status", "--table", TABLE)["jobs"]
    assert (listed["attention"], listed["executionStatus"]) == (True, "FAILED")
    assert listed["executionFailed"] == code


@pytest.mark.parametrize("code", ["LEDGER_SET_BACK", "PLAN_NOT_READ"])
def test_an_error_that_its_class_does_not_tell_carries_its_code(desk: Desk, code: str) -> None:
    directory = desk.requested_job()
    ticket = encode_ticket(Ticket(JOB, directory.bucket, directory.prefix, execution=arn_of(JOB)))

    def stop(ports: Ports, ticket: Ticket) -> Ticket:
        raise NeedsOperatorError("it says why", code=code)

    event = {"step": "Stop", "ticket": ticket, "execution": arn_of(JOB)}
    with pytest.raises(NeedsOperatorError) as caught:
        run_step(desk.world.ports, {"Stop": stop}, event)
    cause = json.dumps({"errorMessage": str(caught.value), "errorType": "NeedsOperatorError"})
    failure = Execution("FAILED", "NeedsOperatorError", cause).failure
    assert failure == Failure(code, "NeedsOperatorError: it says why")


def test_a_job_that_is_refused_too_late_is_not_said_to_be_run_again(desk: Desk) -> None:
    desk.job_at("BeginPublish")
    desk.dies(JOB, error="JobRefusedError", says="[MANIFEST_CHANGED] manifest x has changed")
    assert any("Restore what the message names as it was" in line for line in told(desk)["next"])


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("", "States.Timeout"),
        ("The state took too long", "States.Timeout: The state took too long"),
        ('{"errorMessage": "two\\nlines", "stackTrace": []}', "States.Timeout: two lines"),
        ('{"errorMessage": "a \\"cut\\" one", "stackTr', 'States.Timeout: a "cut" one'),
        ("[1]", "States.Timeout: [1]"),
        ("[Errno 2] no file", "States.Timeout: [Errno 2] no file"),  # not a code of ours
        ("x" * 9999, f"States.Timeout: {'x' * 600}..."),
    ],
)
def test_any_cause_is_one_line(cause: str, message: str) -> None:
    failure = Execution("TIMED_OUT", "States.Timeout", cause).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("States.Timeout", message)


def test_one_that_runs_or_was_forgotten_has_no_error(desk: Desk) -> None:
    desk.job_at("DecideCommit")
    assert desk.json("show", JOB, "--table", TABLE)["executionError"] is None
    desk.dies(JOB, "FORGOTTEN")
    lines = told(desk)
    assert "execution error code" not in lines
    assert "its execution is FORGOTTEN: s3commit commit" in lines["next"][0]


def test_status_marks_a_job_at_once_when_its_execution_has_failed(desk: Desk) -> None:
    desk.job_at("DecideCommit")
    desk.open_job(OTHER)
    assert "EXECUTION FAILED" not in desk.run("status", "--table", TABLE).stdout
    desk.dies(JOB, error="AccessError", says="no")
    header, first, second = desk.run("status", "--table", TABLE).stdout.splitlines()
    assert header.endswith("EXECUTION FAILED")
    assert first.split()[0] == "!"
    assert first.endswith("  ACCESS_DENIED")
    assert OTHER in second


def test_an_execution_that_has_just_succeeded_is_no_alarm(desk: Desk) -> None:
    desk.job_at("DecideCommit")
    desk.dies(JOB, "SUCCEEDED")
    (listed,) = desk.json("status", "--table", TABLE)["jobs"]
    assert (listed["attention"], listed["executionFailed"]) == (False, None)


def test_who_goes_on_with_a_job_is_told_what_stopped_it(desk: Desk) -> None:
    desk.job_at("BeginPublish")
    desk.dies(JOB, error="JobRefusedError", says=LIST_CHANGED)
    result = desk.run("commit", JOB, "--table", TABLE)
    assert "(the one before is FAILED, LIST_CHANGED): arn:" in result.stdout
    assert result.stderr.splitlines()[0] == (
        f"where nothing was mended it fails again: what to mend says s3commit show {JOB}"
    )


def test_a_published_job_whose_replace_list_is_gone_has_not_ended(desk: Desk) -> None:
    desk.committed_job(OTHER)
    directory = desk.job_at("RemoveReplaced", conflict=Conflict.REPLACE)
    desk.world.store.delete(BUCKET, desk.world.all_keys(f"{directory.pipeline_prefix}replaced-")[0])
    line = desk.fails("show", JOB, "--table", TABLE, "--replaced", exit_code=3)
    assert "is not the replace list that was decided [LIST_CHANGED]" in line
    line = desk.fails("abort", JOB, "--table", TABLE, exit_code=3)
    assert "is PUBLISHING: all its files are visible, and there is no way back" in line
