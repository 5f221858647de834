"""The functions of the state machine: the ticket goes round, and what the outcome event says."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from s3commit.aws import env
from s3commit.aws.s3_requests import check_deletes
from s3commit.core.documents.job_json import MAX_KEY_CHARACTERS
from s3commit.core.documents.ticket import execution_input
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    S3CommitError,
    TransientError,
)
from s3commit.core.ports.executions import Reason
from tests.core.world import World, job_directory
from tests.lambdas.conftest import Call, Module, Refusals

DIRECTORY = job_directory()


def step(call: Call, function: str, name: str, ticket: dict[str, Any]) -> dict[str, Any]:
    """Invoke as the state machine does; what is not JSON would not survive."""
    event = {"step": name, "execution": "arn", "ticket": ticket}
    answer: dict[str, Any] = json.loads(json.dumps(call(function, json.loads(json.dumps(event)))))
    return answer


def decided(call: Call) -> dict[str, Any]:
    ticket = step(call, "decide", "SealJob", execution_input(DIRECTORY))
    for name in ("VerifyManifests", "AcquireDestination", "CheckConditions", "DecideCommit"):
        ticket = step(call, "decide", name, ticket)
    return ticket


def completed(world: World, call: Call) -> dict[str, Any]:
    """After the Map, which calls for each unit with the pieces of the ticket that it selects."""
    ticket = decided(call)
    pieces = {name: ticket[name] for name in ("jobId", "bucket", "directory", "generation")}
    ticket["completed"] = [
        call("complete", {"unit": unit, "ticket": pieces}) for unit in world.json(ticket["plan"])
    ]
    return step(call, "end", "BeginPublish", ticket)


def test_a_plan_that_the_machine_could_not_read_fails_the_execution(
    world: World, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    """The plan is there and the job still ours: another round would end like this one."""
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0"))
    with pytest.raises(NeedsOperatorError, match="see the cause of CompleteUploads"):
        step(call, "end", "BeginPublish", decided(call))
    assert world.record(DIRECTORY).state == "COMMITTING"
    (said,) = (vars(one) for one in caplog.records if one.levelname == "ERROR")
    assert "see the cause of CompleteUploads" in said["reason"]


def test_i2_a_workers_swallowed_failure_is_no_success(world: World, call: Call) -> None:
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0"))
    ticket = decided(call) | {"completed": [None]}
    with pytest.raises(InvalidInputError):
        step(call, "end", "BeginPublish", ticket)
    assert world.record(DIRECTORY).state == "COMMITTING"


def test_the_line_of_a_job_that_waits_is_what_the_dashboard_looks_for(
    world: World, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    other, ticket = job_directory("11111111-7425-40de-944b-e07fc1f90ae7"), {}
    for directory in (other, DIRECTORY):
        world.ask(directory, conflict=Conflict.REPLACE)
        ticket = execution_input(directory)
        for name in ("SealJob", "VerifyManifests", "AcquireDestination"):
            ticket = step(call, "decide", name, ticket)
    line = vars([one for one in caplog.records if one.getMessage() == env.DONE_MESSAGE][-1])
    assert (line["state"], line[env.PAUSE]) == ("SEALED", ticket["pause"])
    assert ticket["pause"] > 0


def test_a_refusal_travels_through_the_machine_into_the_result(world: World, call: Call) -> None:
    counted = world.attempt(DIRECTORY, "t0")
    world.request(DIRECTORY, counted)
    world.store.delete("lake", DIRECTORY.prefix + counted.manifest)
    ticket = step(call, "decide", "SealJob", execution_input(DIRECTORY))
    with pytest.raises(JobRefusedError) as caught:
        step(call, "decide", "VerifyManifests", ticket)
    # What Step Functions catches: the error's class, and a JSON cause made by Lambda.
    cause = json.dumps({"errorMessage": str(caught.value), "errorType": "JobRefusedError"})
    ticket["refusal"] = {"Error": type(caught.value).__name__, "Cause": cause}
    ticket = step(call, "end", "AbortJob", ticket)
    assert (ticket["outcome"], ticket["code"]) == ("ABORTED", "MANIFEST_MISSING")
    error = world.failure(DIRECTORY)
    assert error.message == f"manifest {counted.manifest} does not exist"


@pytest.mark.parametrize(
    ("request_json", "code", "counted"),
    [
        (b"{", "BAD_JSON", [("sales/", "BAD_JSON")]),
        (b'{"version":1,"jobId":"x","action":"abort"}', "WRONG_JOB", [("sales/", "WRONG_JOB")]),
        (None, "ABORTED_BY_CLIENT", []),
    ],
)
def test_i12_a_job_that_ends_for_a_refused_document_is_counted(
    request_json: bytes | None,
    code: str,
    counted: list[tuple[str, str]],
    world: World,
    call: Call,
    refusals: Refusals,
) -> None:
    world.open(DIRECTORY)
    if request_json is None:
        world.request_abort(DIRECTORY)
    else:
        world.store.put("lake", DIRECTORY.request, request_json)
    begun = execution_input(DIRECTORY, Reason(requested_by="AWS:AROAEXAMPLEID:etl"))
    ticket = step(call, "decide", "SealJob", begun)
    event = event_of(step(call, "end", "AbortJob", ticket))
    assert (event["outcome"], event["code"], event["decidedAt"]) == ("ABORTED", code, None)
    assert event["requestedBy"] == begun["requestedBy"]
    assert refusals() == counted


def test_a_step_that_runs_twice_at_once_is_worth_another_try(world: World, call: Call) -> None:
    world.ask(DIRECTORY, "t0", idempotency_key="a key")
    ticket = step(call, "decide", "SealJob", execution_input(DIRECTORY))
    for name in ("VerifyManifests", "AcquireDestination", "CheckConditions"):
        ticket = step(call, "decide", name, ticket)
    twin = dict(ticket)
    world.plan.run_before("decide", lambda: step(call, "decide", "DecideCommit", twin))
    with pytest.raises(TransientError):
        step(call, "decide", "DecideCommit", ticket)
    assert step(call, "decide", "DecideCommit", ticket)["state"] == "COMMITTING"


@pytest.mark.parametrize(
    "changes", [{"jobId": "another"}, {"directory": "sales/"}, {"bucket": 7}, {"generation": -1}]
)
def test_a_ticket_with_contradictions(world: World, call: Call, changes: dict[str, Any]) -> None:
    with pytest.raises(S3CommitError):
        step(call, "decide", "SealJob", execution_input(DIRECTORY) | changes)
    assert world.ledger.job(DIRECTORY.ref) is None


# What each step that ends a job hands to AnnounceOutcome


SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "events.schema.json").read_text())


def event_of(ticket: dict[str, Any]) -> dict[str, Any]:
    event: dict[str, Any] = ticket["event"]
    jsonschema.validate(event, SCHEMA)
    assert list(event) == list(SCHEMA["properties"]) == SCHEMA["required"]
    return event


def ended(world: World, call: Call, last: str) -> dict[str, Any]:
    ticket = completed(world, call)
    return ticket if ticket["outcome"] else step(call, "end", last, ticket)


def test_the_event_of_a_commit_says_what_was_committed_and_when(world: World, call: Call) -> None:
    world.store.put("lake", "sales/old.csv", b"old")
    said: Any = {
        "note": "ticket 7",
        "labels": ("dag=sales", "run=7"),
        "idempotency_key": "2026-11-21",
    }
    world.ask(DIRECTORY, "t0", "t1", "t2", conflict=Conflict.REPLACE, **said)
    ticket = completed(world, call)
    ticket = step(call, "end", "RemoveReplaced", ticket)
    ticket = step(call, "end", "PublishSuccess", ticket)
    result, opened = world.result(DIRECTORY), world.store.head("lake", DIRECTORY.job)
    requested = world.store.head("lake", DIRECTORY.request)
    assert opened is not None and requested is not None
    assert event_of(ticket) == {
        "version": 1,
        "jobId": DIRECTORY.job_id,
        "outcome": "COMMITTED",
        "code": None,
        "bucket": "lake",
        "directory": DIRECTORY.prefix,
        "table": "s3://lake/sales/",
        "files": 3,
        "bytes": 15,
        "rows": 15,
        "replaced": 1,
        "undoes": None,
        "key": "2026-11-21",
        "note": "ticket 7",
        "labels": ["dag=sales", "run=7"],
        "openedAt": opened.modified,
        "requestedAt": requested.modified,
        "requestedBy": None,
        "decidedAt": result.decided_at,
        "finishedAt": result.finished_at,
    }
    # The step after it carries it on, and a repetition says the same.
    assert event_of(step(call, "end", "TidyUp", ticket)) == ticket["event"]
    assert event_of(step(call, "end", "PublishSuccess", ticket)) == ticket["event"]


def test_the_event_of_a_rolled_back_job_counts_nothing(world: World, call: Call) -> None:
    world.lose_after_decision("sales/", slice(1))
    world.request(DIRECTORY, *[world.attempt(DIRECTORY, f"t{number}") for number in range(2)])
    event = event_of(ended(world, call, "RollBack"))
    assert (event["outcome"], event["files"], event["bytes"]) == ("ROLLED_BACK", 0, 0)
    assert (event["rows"], event["key"]) == (None, None)
    assert event["code"] == "UPLOADS_LOST"


@pytest.mark.parametrize("character", ["\U0001f600", "\x00", '"'])
def test_i12_the_largest_event_fits_an_entry(world: World, call: Call, character: str) -> None:
    """The key is the client's; all else that it names has S3's own limit."""
    directory = job_directory(prefix="s" * 800 + "/")
    world.open(directory, idempotency_key=character * MAX_KEY_CHARACTERS)
    world.request_abort(directory)
    ticket = step(call, "decide", "SealJob", execution_input(directory))
    event = event_of(step(call, "end", "AbortJob", ticket))
    assert len(json.dumps(event).encode()) < 32 * 1024


def test_a_commit_below_a_listed_prefix_is_counted_for_it(
    world: World,
    call: Call,
    module: Module,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module("end"), "watched", ("sales/", "orders/"))
    world.request(DIRECTORY, *[world.attempt(DIRECTORY, f"t{number}") for number in range(2)])
    world.clock.advance(90)
    step(call, "end", "TidyUp", ended(world, call, "PublishSuccess"))  # which counts none again
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [took] = [line for line in lines if env.REQUEST_TO_RESULT in line]
    assert 90 <= took[env.REQUEST_TO_RESULT][0] < 100
    counted = [line for line in lines if env.TABLE_COMMITS in line]
    assert [line[env.DIMENSION_TABLE] for line in counted] == ["sales/"]
    (metric,) = counted[0]["_aws"]["CloudWatchMetrics"]
    assert sorted(metric["Dimensions"][0]) == ["service", env.DIMENSION_TABLE]


def test_i5_who_decides_asks_its_store(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in a process: by what its module makes of the environment."""
    module("decide")
    monkeypatch.delitem(sys.modules, "lambdas.decide")
    check = importlib.import_module("lambdas.decide").ports.check_deletes
    assert check.__wrapped__.func is check_deletes
