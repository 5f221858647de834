"""The figures of an acceptance run, from answers that AWS gives and no emulator does."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acceptance import judged, measures
from acceptance.places import Aws, BrokenError
from acceptance.run import CHECKS, Run
from s3commit.aws import env
from stacks.access import ACCESS
from stacks.layers import ROOT
from tests.servers import ran

T0 = datetime(2026, 11, 27, tzinfo=UTC)
REPORT = "REPORT RequestId: x Duration: 5 ms\tInit Duration: {} ms"


class Service:
    """Answers calls by name; pages by their number."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def __getattr__(self, name: str) -> Any:
        return self.answers[name]

    def get_paginator(self, name: str) -> "Service":
        return Service(paginate=self.answers[name])


def refuse(**_: Any) -> None:
    raise BrokenError("no machine is made here")


class Account(Run):
    """A run whose account answers what a test says."""

    def __init__(self, **services: Service) -> None:
        self.clients = {
            "stepfunctions": Service(describe_state_machine=refuse),
            **services,
        }.__getitem__
        self.arn = "arn:aws:states:eu-central-1:123456789012:stateMachine:CommitJob-X"
        self.bucket, self.table = "lake", "ledger"
        self.place = Aws("accept-3f9a1c")


def figure(run: Run, name: str) -> measures.Measure:
    return next(one for one in measures.measured(run, "arn:aws:iam::1:role/m") if one.name == name)


def test_a_cold_start_is_the_sum_of_the_inits_of_a_jobs_functions() -> None:
    said: dict[str, list[float]] = {
        "dispatch": [100, 300, 200],
        "decide": [400],
        "complete": [10, 30],
        "end": [0.5],
    }

    def lines(*, logGroupName: str, filterPattern: str) -> list[dict[str, Any]]:  # noqa: N803
        assert filterPattern == '"Init Duration"'
        each = [{"message": REPORT.format(ms)} for ms in said[logGroupName.rpartition("/")[2]]]
        return [{"events": each[:1]}, {"events": each[1:]}, {"events": []}]

    run = Account(logs=Service(filter_log_events=lines))
    run.functions = {
        name: {"FunctionName": name, "LoggingConfig": {"LogGroup": f"of/{name}"}}
        for name in (*said, "sweep")
    }
    assert figure(run, "COLD").seconds == pytest.approx(0.2 + 0.4 + 0.02 + 0.0005)


def test_a_cold_start_of_which_a_log_is_missing_is_no_figure() -> None:
    run = Account(logs=Service(filter_log_events=lambda **_: [{"events": []}]))
    run.functions = {name: {"FunctionName": name} for name in measures.COLD}
    found = figure(run, "COLD")
    assert found.seconds is None
    assert "no log of dispatch" in found.how


def event(number: int, kind: str, seconds: float, before: int | None = None) -> dict[str, Any]:
    previous = number - 1 if before is None else before
    at = T0 + timedelta(seconds=seconds)
    return {"id": number, "type": kind, "timestamp": at, "previousEventId": previous}


def test_a_transition_is_what_remains_without_tasks_waits_and_map_runs() -> None:
    history = [
        event(1, "ExecutionStarted", 0),
        event(2, "TaskStateEntered", 0.1),
        event(3, "TaskScheduled", 0.1),
        event(4, "TaskStarted", 0.1),
        event(5, "TaskSucceeded", 2.1),
        event(6, "TaskStateExited", 2.1),
        event(7, "ParallelStateEntered", 2.2),
        event(8, "TaskStateEntered", 2.2, before=7),
        event(9, "WaitStateEntered", 2.2, before=7),
        event(10, "TaskStarted", 2.2, before=8),
        event(11, "WaitStateExited", 2.3, before=9),
        event(12, "TaskSucceeded", 2.3, before=10),
        event(13, "MapStateEntered", 2.3),
        event(14, "MapRunStarted", 2.3),
        event(15, "MapRunSucceeded", 12.3),
        event(16, "ExecutionSucceeded", 12.4),
    ]
    run = Account()
    run.executions = ["x"]
    run.history = lambda _: history  # type: ignore[method-assign, assignment]
    # Two waits at the same time are both taken off: the figure is a lower bound there.
    expected = (12.4 - 2 - 0.1 - 0.1 - 10) / 5
    assert figure(run, "TRANSITION").seconds == pytest.approx(expected, abs=1e-4)


def test_rights_are_simulated_for_all_that_the_table_of_rights_has() -> None:
    asked: set[tuple[str, str, str]] = set()
    wrong: set[tuple[str, str, str]] = set()

    def simulated(**given: Any) -> dict[str, Any]:
        name, (arn,) = given["PolicySourceArn"].rpartition("/")[2], given["ResourceArns"]
        table = f"arn:aws:dynamodb:eu-central-1:123456789012:table/{run.table}"
        may = judged.expected(ACCESS[name], "arn:aws:s3:::lake", table)[arn]
        asked.update((name, action, arn) for action in given["ActionNames"])
        answers = {True: "allowed", False: "implicitDeny"}
        said = {one: may[one] != ((name, one, arn) in wrong) for one in given["ActionNames"]}
        found = [{"EvalActionName": one, "EvalDecision": answers[said[one]]} for one in said]
        return {"EvaluationResults": found}

    run = Account(iam=Service(simulate_principal_policy=simulated))
    run.functions = {name: {"Role": f"arn:aws:iam::1:role/x/{name}"} for name in ACCESS}
    said = CHECKS["rights-of-the-functions"].run(run)
    assert said.startswith(f"{len(asked)} simulated calls")
    for name, access in ACCESS.items():
        on_table = {action for who, action, arn in asked if who == name and ":table/" in arn}
        assert {f"dynamodb:{right}" for right in (*access.ledger, *access.index)} <= on_table
        on_bucket = {action for who, action, arn in asked if who == name and arn.endswith("lake")}
        assert {f"s3:{right}" for right in access.bucket} <= on_bucket
    for one in sorted(asked)[:: len(asked) // 40]:
        wrong.clear()
        wrong.add(one)
        with pytest.raises(BrokenError, match=f"{one[0]} may {one[1]}"):
            CHECKS["rights-of-the-functions"].run(run)


def test_the_index_is_the_ledgers() -> None:
    assert any(f"/index/{env.BY_STATE}" in arn for arn in judged.expected(ACCESS["end"], "b", "t"))


TESTS = """
import pytest
def test_passes(): pass
def test_fails(): assert 1 == 2
@pytest.mark.skip
def test_skipped(): pass
@pytest.fixture
def broken(): raise KeyError
def test_broken(broken): pass
"""


def test_the_suites_function_says_which_tests_did_not_pass(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    program = (
        "import json; from acceptance.suite import handler; print(json.dumps(handler({!r}, None)))"
    )
    arguments = {"arguments": [str(tmp_path / "test_some.py"), f"--rootdir={tmp_path}"]}
    done = ran(sys.executable, "-c", program.format(arguments), cwd=ROOT)
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["passed"] == ["test_passes"]
    assert {*said["failed"]} == {"test_broken", "test_fails", "test_skipped"}
    assert said["failed"]["test_fails"].endswith("AssertionError")
    assert said["code"] == 1


def test_functions_are_found_though_cloudformation_cuts_their_names() -> None:
    """A name has 64 characters at most: of the stack's, less is left than a run's name needs."""
    name = "accept-3f9a1c"
    mine, other = (
        f"arn:aws:iam::1:role/S3CommitPipeline-{one}/R" for one in (name, "accept-000000")
    )

    def listed() -> list[dict[str, Any]]:
        cut = "S3CommitPipeline-accept-3f9-DecideFunction0123456789-AbCdEfGhIjKl"
        pages = {"decide": mine, "end": other, "suite": "arn:…:role/s"}
        return [
            {"Functions": [{"FunctionName": cut, "Handler": f"{module}.handler", "Role": role}]}
            for module, role in pages.items()
        ]

    run = Account(**{"lambda": Service(list_functions=listed)})
    assert [*run.functions] == ["decide"]
