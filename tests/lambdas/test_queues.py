"""The functions behind the queues: recorded S3 notifications in, partial batch responses out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import quote_plus

import pytest

from s3commit.core.errors import TransientError
from s3commit.core.states import JobState
from tests.core.world import BUCKET, World, place_of
from tests.lambdas.conftest import Call

PLACE = place_of()


def message(message_id: str, *keys: str) -> dict[str, Any]:
    """An SQS record with an S3 notification, as AWS documents both."""
    records = [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "awsRegion": "eu-central-1",
            "eventTime": "2026-11-21T22:07:22.123Z",
            "eventName": "ObjectCreated:Put",
            "s3": {
                "s3SchemaVersion": "1.0",
                "bucket": {"name": BUCKET, "arn": f"arn:aws:s3:::{BUCKET}"},
                "object": {"key": quote_plus(key, safe="/"), "size": 1, "sequencer": "0055AED6"},
            },
        }
        for key in keys
    ]
    return raw(message_id, json.dumps({"Records": records}))


def raw(message_id: str, body: str) -> dict[str, Any]:
    return {"messageId": message_id, "receiptHandle": "r", "body": body, "eventSource": "aws:sqs"}


def failed(answer: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_a_batch_of_manifests_is_noted_in_the_ledger_once(world: World, call: Call) -> None:
    world.open(PLACE)
    attempts = [world.attempt(PLACE, f"t{number}") for number in range(3)]
    batch = [message(a.task_id, PLACE.prefix + a.manifest) for a in attempts]
    event = {"Records": [*batch, batch[0]]}
    assert failed(call("ingest_pendingsets", event)) == []
    assert failed(call("ingest_pendingsets", event)) == []
    noted = sorted(world.ledger.attempts(PLACE.job_id), key=lambda attempt: attempt.task_id)
    assert [(one.task_id, one.sha256) for one in noted] == [
        (one.task_id, one.sha256) for one in attempts
    ]
    assert world.record(PLACE).state is JobState.OPEN


def test_one_bad_message_does_not_fail_its_neighbours(
    world: World, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = world.attempt(PLACE, "t0")
    garbage = PLACE.manifest("t1", "a0")
    world.store.put(BUCKET, garbage, b"garbage")
    event = {
        "Records": [
            raw("no-json", "{"),
            raw("no-records", "{}"),
            raw("test-event", json.dumps({"Event": "s3:TestEvent", "Bucket": BUCKET})),
            message("refused", garbage),
            message("foreign", "sales/x.pendingset"),
            message("gone", PLACE.manifest("t2", "a0")),
            message("good", PLACE.prefix + attempt.manifest),
        ]
    }
    assert failed(call("ingest_pendingsets", event)) == ["no-json", "no-records"]
    assert [one.task_id for one in world.ledger.attempts(PLACE.job_id)] == ["t0"]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = [line for line in lines if "_aws" in line]
    assert sum(sum(line.get("ManifestsRefused", [])) for line in metrics) == 2


def test_a_manifest_whose_reading_fails_is_redelivered(world: World, call: Call) -> None:
    first, second = world.attempt(PLACE, "t0"), world.attempt(PLACE, "t1")
    world.plan.fail(
        "get", TransientError("503"), where=lambda one: one.key.endswith(first.manifest)
    )
    event = {
        "Records": [
            message("first", PLACE.prefix + first.manifest),
            message("second", PLACE.prefix + second.manifest),
        ]
    }
    assert failed(call("ingest_pendingsets", event)) == ["first"]
    assert failed(call("ingest_pendingsets", event)) == []
    assert len(list(world.ledger.attempts(PLACE.job_id))) == 2


def test_a_ledger_that_fails_fails_the_batch_and_nothing_is_lost(world: World, call: Call) -> None:
    attempt = world.attempt(PLACE, "t0")
    event = {"Records": [message("one", PLACE.prefix + attempt.manifest)]}
    world.plan.fail("record_attempts", TransientError("throttled"))
    with pytest.raises(TransientError):
        call("ingest_pendingsets", event)
    assert failed(call("ingest_pendingsets", event)) == []
    assert len(list(world.ledger.attempts(PLACE.job_id))) == 1


def test_i4_a_late_manifest_is_aborted_by_the_function(world: World, call: Call) -> None:
    world.request(PLACE, world.attempt(PLACE, "t0"))
    world.run(PLACE)
    late = world.attempt(PLACE, "t0", "a1")
    call("ingest_pendingsets", {"Records": [message("one", PLACE.prefix + late.manifest)]})
    assert world.open_uploads() == []


@pytest.mark.parametrize("prefix", ["sales/", "a b+c/ü%41=ß/"])
def test_a_request_starts_the_job_once(
    prefix: str, module: Callable[[str], ModuleType], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(prefix=prefix)
    started: dict[str, str] = {}

    class Starter:
        def start(self, name: str, document: str, *, otherwise: str) -> bool:
            return started.setdefault(name, document) is document

    monkeypatch.setattr(module("dispatch_requests"), "starter", Starter())
    event = {
        "Records": [
            message("one", place.request),
            message("again", place.request),
            message("other", f"{prefix}request.json", "sales/x/request.json"),
            message("nested", place.prefix + "tasks/request.json"),
        ]
    }
    assert failed(call("dispatch_requests", event)) == []
    assert {name: json.loads(document) for name, document in started.items()} == {
        place.job_id: {"jobId": place.job_id, "bucket": BUCKET, "directory": place.prefix}
    }


def test_each_directory_has_a_name_to_fall_back_upon_that_no_other_one_has(
    module: Callable[[str], ModuleType], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    class Starter:
        def start(self, name: str, document: str, *, otherwise: str) -> bool:
            assert name == PLACE.job_id
            names.append(otherwise)
            return True

    monkeypatch.setattr(module("dispatch_requests"), "starter", Starter())
    places = [PLACE, place_of(prefix="evil/"), place_of(prefix="sales/2026/")]
    call("dispatch_requests", {"Records": [message("one", *[one.request for one in places])]})
    assert len(set(names)) == 3
    assert all(re.fullmatch(rf"{PLACE.job_id}-[0-9a-f]{{16}}", name) for name in names)


def test_a_start_that_fails_is_redelivered(
    module: Callable[[str], ModuleType], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Starter:
        def start(self, name: str, document: str, *, otherwise: str) -> bool:
            raise TransientError("throttled")

    monkeypatch.setattr(module("dispatch_requests"), "starter", Starter())
    assert failed(call("dispatch_requests", {"Records": [message("one", PLACE.request)]})) == [
        "one"
    ]
