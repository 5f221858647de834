"""The detail of the outcome event: what each step that ends a job hands to AnnounceOutcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from s3commit.aws import env
from s3commit.core.formats.ticket import execution_input
from s3commit.core.model.job import MAX_KEY_CHARACTERS, Conflict
from tests.core.world import World, job_directory
from tests.lambdas.conftest import Call, Module
from tests.lambdas.test_steps import complete, decided, step

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "events.schema.json").read_text())
DIRECTORY = job_directory()


def event_of(ticket: dict[str, Any]) -> dict[str, Any]:
    event: dict[str, Any] = ticket["event"]
    jsonschema.validate(event, SCHEMA)
    assert list(event) == list(SCHEMA["properties"]) == SCHEMA["required"]
    return event


def ended(world: World, call: Call, last: str) -> dict[str, Any]:
    ticket = decided(world, call)
    ticket["completed"] = complete(world, call, ticket)
    return step(call, "end", last, step(call, "end", "BeginPublish", ticket))


def test_the_event_of_a_commit_says_what_was_committed_and_when(world: World, call: Call) -> None:
    world.store.put("lake", "sales/old.csv", b"old")
    world.ask(DIRECTORY, "t0", "t1", "t2", conflict=Conflict.REPLACE, idempotency_key="2026-11-21")
    ticket = decided(world, call)
    ticket["completed"] = complete(world, call, ticket)
    ticket = step(call, "end", "BeginPublish", ticket)
    ticket = step(call, "end", "RemoveReplaced", ticket)
    ticket = step(call, "end", "PublishSuccess", ticket)
    result, opened = world.result(DIRECTORY), world.store.head("lake", DIRECTORY.job)
    assert opened is not None
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
        "key": "2026-11-21",
        "openedAt": opened.modified,
        "decidedAt": result.decided_at,
        "finishedAt": result.finished_at,
    }
    # No step after it carries it on, and a repetition says the same.
    assert "event" not in step(call, "end", "TidyUp", ticket)
    assert event_of(step(call, "end", "PublishSuccess", ticket)) == ticket["event"]


def test_the_event_of_a_rolled_back_job_counts_nothing(world: World, call: Call) -> None:
    world.lose_after_decision("sales/", slice(1))
    world.request(DIRECTORY, *[world.attempt(DIRECTORY, f"t{number}") for number in range(2)])
    event = event_of(ended(world, call, "RollBack"))
    assert (event["outcome"], event["files"], event["bytes"]) == ("ROLLED_BACK", 0, 0)
    assert (event["rows"], event["key"]) == (None, None)
    assert event["code"] == "UPLOADS_LOST"


def test_an_abort_has_its_code_and_no_time_of_a_decision(world: World, call: Call) -> None:
    world.open(DIRECTORY)
    world.store.put("lake", DIRECTORY.request, b"{")
    ticket = step(call, "decide", "SealJob", execution_input(DIRECTORY))
    event = event_of(step(call, "end", "AbortJob", ticket))
    assert (event["outcome"], event["code"]) == ("ABORTED", "BAD_JSON")
    assert event["decidedAt"] is None


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
    ended(world, call, "PublishSuccess")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    counted = [line for line in lines if env.TABLE_COMMITS in line]
    assert [line[env.DIMENSION_TABLE] for line in counted] == ["sales/"]
    (metric,) = counted[0]["_aws"]["CloudWatchMetrics"]
    assert sorted(metric["Dimensions"][0]) == ["service", env.DIMENSION_TABLE]
