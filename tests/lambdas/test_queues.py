"""The functions behind the queues: recorded S3 notifications in, partial batch responses out."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote_plus

import pytest

from s3commit.core.formats.layout import PENDINGSET_SUFFIX
from s3commit.core.model.errors import TransientError
from s3commit.core.model.states import JobState
from stacks.inbox import pattern
from stacks.layers import ROOT
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.executions import MemoryExecutions
from tests.fakes.faults import Crash
from tests.lambdas.conftest import Call, Module, Refusals

DIRECTORY = job_directory()
PRINCIPAL = "AWS:AROAEXAMPLEID:etl-nightly"
Announce = Callable[[str, str], dict[str, Any]]


def message(message_id: str, *keys: str) -> dict[str, Any]:
    """An SQS record with an S3 notification, as AWS documents both."""
    records = [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "awsRegion": "eu-central-1",
            "eventTime": "2026-11-21T22:07:22.123Z",
            "eventName": "ObjectCreated:Put",
            "userIdentity": {"principalId": PRINCIPAL},
            "s3": {
                "s3SchemaVersion": "1.0",
                "bucket": {"name": BUCKET, "arn": f"arn:aws:s3:::{BUCKET}"},
                "object": {"key": quote_plus(key, safe="/"), "size": 1, "sequencer": "0055AED6"},
            },
        }
        for key in keys
    ]
    return raw(message_id, json.dumps({"Records": records}))


def brought(message_id: str, key: str) -> dict[str, Any]:
    """An SQS record with an event that EventBridge brought, as AWS documents it."""
    event = {
        "version": "0",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "resources": [f"arn:aws:s3:::{BUCKET}"],
        "detail": {
            "version": "0",
            "bucket": {"name": BUCKET},
            "object": {"key": key, "size": 1, "sequencer": "0055AED6"},
            "reason": "PutObject",
            "requester": "123456789012",
        },
    }
    return raw(message_id, json.dumps(event))


def raw(message_id: str, body: str) -> dict[str, Any]:
    return {"messageId": message_id, "receiptHandle": "r", "body": body, "eventSource": "aws:sqs"}


def failed(answer: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


@pytest.fixture
def machine(world: World, module: Module, monkeypatch: pytest.MonkeyPatch) -> MemoryExecutions:
    """What the dispatcher starts."""
    executions = MemoryExecutions()
    monkeypatch.setattr(module("dispatch"), "machine", world.plan.wrap(executions))
    return executions


def test_a_batch_of_manifests_is_noted_in_the_ledger_once(world: World, call: Call) -> None:
    attempts = [world.attempt(DIRECTORY, f"t{number}") for number in range(3)]
    batch = [message(a.task_id, DIRECTORY.prefix + a.manifest) for a in attempts]
    event = {"Records": [*batch, batch[0]]}
    assert failed(call("ingest", event)) == []
    assert failed(call("ingest", event)) == []
    noted = sorted(world.ledger.attempts(DIRECTORY.ref), key=lambda attempt: attempt.task_id)
    assert [(one.task_id, one.sha256) for one in noted] == [
        (one.task_id, one.sha256) for one in attempts
    ]
    assert world.record(DIRECTORY).state is JobState.OPEN


def encoded(message_id: str, key: str) -> dict[str, Any]:
    """Whether EventBridge encodes keys is not documented."""
    return brought(message_id, quote_plus(key, safe="/"))


@pytest.mark.parametrize("announce", [message, brought, encoded])
def test_a_manifest_is_noted_whoever_announces_it_and_whatever_its_name(
    world: World, call: Call, announce: Announce
) -> None:
    directory = job_directory(prefix="a b+c/ü=1%2F/")
    key = directory.prefix + world.attempt(directory, "t0").manifest
    assert failed(call("ingest", {"Records": [announce("m0", key)]})) == []
    assert [one.task_id for one in world.ledger.attempts(directory.ref)] == ["t0"]


def test_i12_no_execution_starts_for_a_key_that_is_guessed(
    call: Call, machine: MemoryExecutions
) -> None:
    """Whoever may write below ``a+b/`` would have a job below ``a b/`` aborted."""
    there = job_directory(prefix="a+b/")
    assert failed(call("dispatch", {"Records": [brought("m0", there.request)]})) == []
    assert machine.started == {there.ref: there}


@pytest.mark.parametrize("announce", [message, brought])
def test_i12_another_bucket_is_ignored(world: World, call: Call, announce: Announce) -> None:
    """Whoever owns a bucket of the account may send its events here."""
    attempt = world.attempt(DIRECTORY, "t0")
    record = announce("m0", DIRECTORY.prefix + attempt.manifest)
    record["body"] = record["body"].replace(f'"{BUCKET}"', '"another"')
    assert failed(call("ingest", {"Records": [record]})) == []
    assert world.ledger.job(DIRECTORY.ref) is None


@pytest.mark.parametrize("prefix", ["sales/", "sales-2/"])
def test_i12_what_is_announced_outside_the_prefixes_is_not_read(
    world: World, call: Call, refusals: Refusals, prefix: str
) -> None:
    directory = job_directory(prefix=prefix)
    manifest = directory.prefix + world.attempt(directory, "t0").manifest
    keys = (manifest, directory.job, f"{directory.tasks}x.pendingset")
    event = {"Records": [message(key, key) for key in keys]}
    world.ports = replace(world.ports, prefixes=("sales/",))
    world.plan.forget_calls()
    assert failed(call("ingest", event)) == []
    is_served = prefix == "sales/"
    assert (bool(world.plan.calls), bool(refusals())) == (is_served, is_served)


def test_one_bad_message_fails_no_other(world: World, call: Call, refusals: Refusals) -> None:
    attempt = world.attempt(DIRECTORY, "t0")
    garbage = DIRECTORY.manifest("t1", "a0")
    world.store.put(BUCKET, garbage, b"garbage")
    sizes = ("1e999", "NaN", '"x"', "{}")  # no numbers of bytes
    body = message("", DIRECTORY.prefix + attempt.manifest)["body"]
    event = {
        "Records": [
            raw("no-json", "{"),
            raw("no-records", "{}"),
            *(raw(size, body.replace('"size": 1', f'"size": {size}')) for size in sizes),
            raw("test-event", json.dumps({"Event": "s3:TestEvent", "Bucket": BUCKET})),
            message("refused", garbage),
            message("foreign", "sales/x.pendingset"),
            message("gone", DIRECTORY.manifest("t2", "a0")),
            message("good", DIRECTORY.prefix + attempt.manifest),
        ]
    }
    assert failed(call("ingest", event)) == ["no-json", "no-records", *sizes]
    assert [one.task_id for one in world.ledger.attempts(DIRECTORY.ref)] == ["t0"]
    assert refusals() == [("sales/", "BAD_JSON")]


def of_hadoop() -> list[str]:
    """A manifest in each layout of S3A's committers, for jobs of Spark and of MapReduce."""
    page = (ROOT / "docs" / "guide" / "s3a.md").read_text()
    layouts = re.findall(r"^\| [^|]+ \| `(__magic\S+)` \|", page, re.MULTILINE)
    assert len(layouts) == 3
    numbered = [re.sub(r"N+", "00", layout) for layout in layouts]
    jobs = (DIRECTORY.job_id, "job_1732800000000_0001")
    places = {layout.replace("<job>", job) for layout in numbered for job in jobs}
    return [f"hive/t/{place}task_20261128_0000_m_000007.pendingset" for place in sorted(places)]


@pytest.mark.parametrize("announce", [message, brought])
@pytest.mark.parametrize("key", of_hadoop())
def test_manifests_of_hadoops_own_committers_are_neither_read_nor_logged_nor_counted(
    key: str,
    announce: Announce,
    world: World,
    call: Call,
    refusals: Refusals,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world.plan.fail("get", AssertionError("it is read"))
    assert failed(call("ingest", {"Records": [announce("m0", key)]})) == []
    assert (refusals(), caplog.records) == ([], [])
    (wanted,) = pattern(PENDINGSET_SUFFIX).values()
    assert not fnmatchcase(key, wanted), "EventBridge does not even send it"
    assert fnmatchcase(DIRECTORY.manifest("t0", "a0"), wanted)


def test_a_manifest_of_ours_with_a_wrong_name_is_refused(call: Call, refusals: Refusals) -> None:
    keys = [f"{DIRECTORY.tasks}0/0.pendingset", f"{DIRECTORY.prefix}_x.pendingset"]
    assert failed(call("ingest", {"Records": [message("m0", *keys)]})) == []
    assert refusals() == [("sales/", "BAD_KEY")] * 2


@pytest.mark.parametrize(
    ("prefix", "shown"),
    [
        ("sales/", "sales/"),
        ("tenants/a/", "tenants/a/"),
        ("tenants/a/sales/2026/", "tenants/a/"),
        (f"tenants/{'x' * 90}/", f"tenants/{'x' * 56}"),
        ("tenants/a\u202e\x1b/", "tenants/a\\u202e\\x1b/"),
    ],
)
def test_i12_who_has_documents_refused_is_seen_and_costs_one_metric(
    prefix: str, shown: str, world: World, call: Call, refusals: Refusals
) -> None:
    garbage = f"{prefix}{DIRECTORY.manifest('t1', 'a0').removeprefix('sales/')}"
    world.store.put(BUCKET, garbage, b"garbage")
    assert failed(call("ingest", {"Records": [message("one", garbage)]})) == []
    assert [prefix for prefix, _ in refusals()] == [shown]


@pytest.mark.parametrize("verb", ["get", "record_attempt"])
def test_a_failure_fails_one_message_and_loses_none(verb: str, world: World, call: Call) -> None:
    attempts = [world.attempt(DIRECTORY, f"t{number}") for number in range(2)]
    event = {"Records": [message(a.task_id, DIRECTORY.prefix + a.manifest) for a in attempts]}
    world.plan.fail(verb, TransientError("503"))
    assert failed(call("ingest", event)) == ["t0"]
    assert failed(call("ingest", event)) == []
    assert len(list(world.ledger.attempts(DIRECTORY.ref))) == 2


def test_i12_a_call_that_is_killed_has_noted_what_it_had_judged(world: World, call: Call) -> None:
    """Out of time or memory: nothing of Python is asked any more."""
    attempts = [world.attempt(DIRECTORY, f"t{number}") for number in range(2)]
    world.plan.crash_before("get", where=lambda one: one.key.endswith(attempts[1].manifest))
    event = {"Records": [message(a.task_id, DIRECTORY.prefix + a.manifest) for a in attempts]}
    with pytest.raises(Crash):
        call("ingest", event)
    assert [one.task_id for one in world.ledger.attempts(DIRECTORY.ref)] == ["t0"]


def test_i4_a_late_manifest_starts_an_execution_that_tidies_up(world: World, call: Call) -> None:
    world.commit(DIRECTORY)
    late = world.attempt(DIRECTORY, "t0", "a1")
    call("ingest", {"Records": [message("one", DIRECTORY.prefix + late.manifest)]})
    assert world.open_uploads() == []


@pytest.mark.parametrize(
    ("announce", "removed", "principal"),
    [
        (message, "", PRINCIPAL),
        (message, f'"principalId": "{PRINCIPAL}"', ""),
        (message, f'"userIdentity": {{"principalId": "{PRINCIPAL}"}}, ', ""),
        (brought, "", "123456789012"),
        (brought, ', "requester": "123456789012"', ""),
    ],
)
def test_who_put_a_request_by_s3s_event_is_passed_on(
    announce: Announce, removed: str, principal: str, machine: MemoryExecutions, call: Call
) -> None:
    one = announce("m0", DIRECTORY.request)
    one["body"] = one["body"].replace(removed, "")
    assert failed(call("dispatch", {"Records": [one]})) == []
    assert (machine.requested_by, len(machine.started)) == (principal, 1)


@pytest.mark.parametrize("prefix", ["sales/", "a b+c/ü%41=ß/"])
def test_a_request_starts_the_job_once(prefix: str, machine: MemoryExecutions, call: Call) -> None:
    directory = job_directory(prefix=prefix)
    event = {
        "Records": [
            message("one", directory.request),
            message("again", directory.request),
            message("other", f"{prefix}_request.json", "sales/x/_request.json"),
            message("nested", directory.prefix + "_tasks/_request.json"),
        ]
    }
    assert failed(call("dispatch", event)) == []
    assert machine.started == {directory.ref: directory}


def test_i12_a_request_where_no_job_may_be_is_counted(call: Call, refusals: Refusals) -> None:
    nested = f"sales/__magic_job-{DIRECTORY.job_id}/x/__magic_job-{DIRECTORY.job_id}/_request.json"
    event = {"Records": [message("one", nested), message("two", "app/2026/_request.json")]}
    assert failed(call("dispatch", event)) == []
    assert refusals() == [("sales/", "BAD_PATH")]


def test_i12_an_id_at_several_places_starts_several(machine: MemoryExecutions, call: Call) -> None:
    directories = [DIRECTORY, job_directory(prefix="evil/"), job_directory(prefix="sales/2026/")]
    call("dispatch", {"Records": [message("one", *[one.request for one in directories])]})
    assert list(machine.started.values()) == directories
    for name in machine.started:
        assert re.fullmatch(rf"{DIRECTORY.job_id}-[0-9a-f]{{32}}", name)


def test_a_failed_start_is_redelivered(world: World, machine: MemoryExecutions, call: Call) -> None:
    world.plan.fail("start", TransientError("throttled"))
    assert failed(call("dispatch", {"Records": [message("one", DIRECTORY.request)]})) == ["one"]
