"""What `show` and `status` say of a job whose execution has failed, and of files in doubt."""

from __future__ import annotations

import pytest

from tests.cli.support import JOB, TABLE, Desk

PAGE_CHANGED = "[PAGE_CHANGED] _s3commit/x/_index-y.json is missing"


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
    desk.dies(JOB, error="NeedsOperatorError", says=PAGE_CHANGED)
    lines = told(desk)
    assert lines["execution error code"] == ["PAGE_CHANGED"]
    assert lines["execution error message"] == [
        "NeedsOperatorError: _s3commit/x/_index-y.json is missing"
    ]
    assert lines["execution error means"][0].startswith(
        "An object that the pipeline keeps for itself"
    )
    assert "end.py" not in str(lines)
    assert lines["next"] == [
        f"its execution is FAILED: s3commit commit {JOB} --table {TABLE} starts another, which"
        " continues",
    ]
    error = desk.json("show", JOB, "--table", TABLE)["executionError"]
    assert (error["code"], error["do"][:7]) == ("PAGE_CHANGED", "Find ou")


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
    found = desk.json("show", JOB, "--table", TABLE)["executionError"]
    assert found["code"] == code
    assert found["message"].startswith(f"{error}: {says.rpartition('] ')[2]}")
    assert "Run the job again" not in found["do"]
    (listed,) = desk.json("status", "--table", TABLE)["jobs"]
    assert (listed["attention"], listed["executionStatus"]) == (True, "FAILED")
    assert listed["executionFailed"] == code


def test_one_that_runs_or_was_forgotten_has_no_error(desk: Desk) -> None:
    desk.job_at("DecideCommit")
    assert desk.json("show", JOB, "--table", TABLE)["executionError"] is None
    desk.dies(JOB, "FORGOTTEN")
    lines = told(desk)
    assert "execution error code" not in lines
    assert "its execution is FORGOTTEN: s3commit commit" in lines["next"][0]
