"""The patches of EventBridge, and the ticker."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

from tests.local.conftest import Local


def put_event(local: Local, source: str, mark: str) -> None:
    answer = local.runtime.client("events").put_events(
        Entries=[{"Source": source, "DetailType": "test", "Detail": json.dumps({"mark": mark})}]
    )
    assert answer["FailedEntryCount"] == 0


def test_an_event_reaches_a_function_a_machine_and_a_queue(local: Local) -> None:
    mark = uuid.uuid4().hex
    put_event(local, "tests", mark)
    event = json.loads(
        next(
            line
            for line in local.calls.wait(mark)[0].logs.splitlines()
            if line.startswith('{"received"')
        )
    )["received"]
    assert event["source"] == "tests"
    assert event["detail"] == {"mark": mark}
    assert event["time"].endswith("Z")
    executions = local.machines.list_executions(stateMachineArn=local.runtime.state_machine_arn)
    inputs = [
        local.machines.describe_execution(executionArn=e["executionArn"])["input"]
        for e in executions["executions"]
    ]
    assert '{"do":"call","from":"rule"}' in [text.replace(" ", "") for text in inputs]
    queued = local.sqs.receive_message(
        QueueUrl=local.output("EventsUrl"), MaxNumberOfMessages=10, WaitTimeSeconds=2
    )["Messages"]
    assert [message for message in queued if mark in message["Body"]]


def test_a_rule_of_a_schedule_matches_no_event(local: Local) -> None:
    before = len(local.calls.of('"tick": "hourly"'))
    mark = uuid.uuid4().hex
    put_event(local, "tests", mark)
    put_event(local, "elsewhere", mark)
    local.calls.wait(mark)
    assert len(local.calls.of('"tick": "hourly"')) == before


def test_a_disabled_rule_matches_no_event(local: Local) -> None:
    events = local.runtime.client("events")
    arn = local.functions.get_function(FunctionName=local.output("Receiver"))["Configuration"]
    target = {"Id": "F", "Arn": arn["FunctionArn"], "Input": '{"off":true}'}
    pattern = json.dumps({"source": ["tests"]})
    events.put_rule(Name="off", EventPattern=pattern, State="DISABLED")
    events.put_targets(Rule="off", Targets=[target])
    mark = uuid.uuid4().hex
    put_event(local, "tests", mark)
    local.calls.wait(mark)
    assert not local.calls.of('"off": true')


def test_the_ticker_fires_an_hourly_rule_each_hour(local: Local) -> None:
    ticker = local.runtime.ticker
    before = len(local.calls.of('"tick": "hourly"'))
    ticker.look()
    local.clock.moment += timedelta(minutes=61)
    fired = ticker.look()
    local.calls.wait('"tick": "hourly"', before + 1)
    assert fired <= 1  # or the ticker's own thread was first
    ticker.look()
    assert len(local.calls.of('"tick": "hourly"')) == before + 1
