"""The patches of SQS, of its mappings and of EventBridge, and the ticker."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from s3commit.local.triggers import Ticker
from tests.local.conftest import FakeClock, Local, switching_fast
from tests.servers import until


@pytest.fixture(autouse=True)
def warm(local: Local) -> None:
    """A worker that is up: its start may take longer than the short visibility timeout."""
    local.invoke("Batch", {"Records": []})


def records(outcomes: list[Any]) -> list[list[dict[str, Any]]]:
    """The batches that the function printed."""
    found = []
    for outcome in outcomes:
        for line in outcome.logs.splitlines():
            if line.startswith('{"batch"'):
                found.append(json.loads(line)["batch"])
    return found


def test_messages_come_in_batches(local: Local) -> None:
    mark = uuid.uuid4().hex
    entries = [{"Id": str(n), "MessageBody": json.dumps({"m": mark, "n": n})} for n in range(8)]
    local.sqs.send_message_batch(QueueUrl=local.output("QueueUrl"), Entries=entries)
    seen: set[int] = set()

    def all_seen() -> bool:
        for batch in records(local.calls.of(mark)):
            seen.update(json.loads(record["body"])["n"] for record in batch)
        return seen == set(range(8))

    local.calls.wait_until(all_seen)
    batches = records(local.calls.of(mark))
    assert max(len(batch) for batch in batches) > 1
    record = batches[0][0]
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"] == local.output("QueueArn")
    assert record["attributes"]["ApproximateReceiveCount"] == "1"


def test_the_function_runs_in_a_thread_of_the_poller_not_of_the_sender(local: Local) -> None:
    local.send(m="later")
    outcome = local.calls.wait("later")[0]
    assert local.calls.threads[id(outcome)].startswith("poll-")


def test_only_the_reported_message_comes_again_and_becomes_a_dead_letter(local: Local) -> None:
    mark = uuid.uuid4().hex
    local.send(m=mark, fail=True)
    local.send(m=mark, good=True)
    dead = until(lambda: dead_letter(local, mark), "the dead letter")
    assert json.loads(dead["Body"])["fail"]
    counts = [
        (json.loads(r["body"]).get("fail", False), r["attributes"]["ApproximateReceiveCount"])
        for batch in records(local.calls.of(mark))
        for r in batch
    ]
    assert sorted(counts) == [(False, "1"), (True, "1"), (True, "2")]


def dead_letter(local: Local, mark: str) -> Any:
    url = local.output("DeadUrl")
    answer = local.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    for message in answer.get("Messages", []):
        if mark in message["Body"]:
            local.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return message
    return None


def test_no_message_is_lost_when_others_are_deleted(local: Local) -> None:
    url = local.sqs.create_queue(QueueName="stress")["QueueUrl"]
    total, seen = 200, set()
    lock = threading.Lock()

    def send(n: int) -> None:
        local.sqs.send_message(QueueUrl=url, MessageBody=str(n))

    def drain(_: int) -> None:
        while answer := local.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=3).get(
            "Messages"
        ):
            for message in answer:
                with lock:
                    assert message["Body"] not in seen, "one message, two receivers"
                    seen.add(message["Body"])
                local.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    with switching_fast(), ThreadPoolExecutor(8) as pool:
        sends = [pool.submit(send, n) for n in range(total)]
        drains = [pool.submit(drain, n) for n in range(8)]
        for future in [*sends, *drains]:
            future.result()
    drain(0)
    assert len(seen) == total


def test_a_mapping_polls_while_it_is_enabled_and_until_it_is_deleted(local: Local) -> None:
    mark = uuid.uuid4().hex
    url = local.sqs.create_queue(QueueName=mark)["QueueUrl"]
    arn = f"{local.output('QueueArn').rpartition(':')[0]}:{mark}"
    mapping = local.functions.create_event_source_mapping(
        EventSourceArn=arn, FunctionName=local.output("Batch"), Enabled=False
    )["UUID"]

    first, other = uuid.uuid4().hex, uuid.uuid4().hex
    local.sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"m": first}))
    local.send(m=other)
    local.calls.wait(other)
    assert local.calls.of(first) == []
    local.functions.update_event_source_mapping(UUID=mapping, Enabled=True)
    local.calls.wait(first)
    local.functions.delete_event_source_mapping(UUID=mapping)
    assert f"poll-{mark}" not in [thread.name for thread in threading.enumerate()]


def test_dead_letters_are_given_back_as_new_messages(local: Local) -> None:
    mark = uuid.uuid4().hex
    made = local.sqs.create_queue(QueueName=f"dead-{mark}")["QueueUrl"]
    asked = local.sqs.get_queue_attributes(QueueUrl=made, AttributeNames=["QueueArn"])
    arn = asked["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    feeding = local.sqs.create_queue(QueueName=mark, Attributes={"RedrivePolicy": policy})
    local.sqs.send_message(QueueUrl=made, MessageBody=mark)
    local.sqs.start_message_move_task(SourceArn=arn)
    assert "Messages" not in local.sqs.receive_message(QueueUrl=made)
    (message,) = local.sqs.receive_message(
        QueueUrl=feeding["QueueUrl"], AttributeNames=["ApproximateReceiveCount"]
    )["Messages"]
    assert (message["Body"], message["Attributes"]["ApproximateReceiveCount"]) == (mark, "1")


def test_a_function_without_concurrency_is_throttled_and_its_messages_wait(local: Local) -> None:
    mark, name = uuid.uuid4().hex, local.output("Batch")
    local.functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    local.send(m=mark)
    with pytest.raises(local.functions.exceptions.TooManyRequestsException):
        local.invoke("Batch", {"Records": []})
    local.functions.delete_function_concurrency(FunctionName=name)
    (outcome,) = local.calls.wait(mark)
    ((record,),) = [batch for batch in records([outcome]) if mark in str(batch)]
    assert record["attributes"]["ApproximateReceiveCount"] == "1"


def test_an_alarm_has_the_state_of_its_metric_when_it_is_described(local: Local) -> None:
    def state() -> str:
        described = local.runtime.client("cloudwatch").describe_alarms(AlarmNamePrefix="Pipeline/")
        return str(described["MetricAlarms"][0]["StateValue"])

    local.clock.moment += timedelta(minutes=10)
    assert state() == "OK"
    local.invoke("Broken", {})
    assert state() == "ALARM"
    local.clock.moment += timedelta(minutes=1)
    assert state() == "OK"


# EventBridge


def called_by_the_rule(local: Local) -> int:
    """How often the hourly rule has called its function."""
    return sum(b'"from": "rule"' in outcome.payload for _, outcome in local.calls.seen)


def test_a_rule_of_a_schedule_matches_no_event(local: Local) -> None:
    before = called_by_the_rule(local)
    answer = local.runtime.client("events").put_events(
        Entries=[{"Source": "tests", "DetailType": "test", "Detail": "{}"}]
    )
    assert answer["FailedEntryCount"] == 0
    assert called_by_the_rule(local) == before


def test_an_hourly_rule_fires_each_hour(local: Local) -> None:
    """Missed times are not made up for."""
    clock = FakeClock()
    ticker = Ticker(clock.now)  # the runtime's own has a clock that stands still
    before = called_by_the_rule(local)
    for minutes, times in ((0, 0), (59, 0), (2, 1), (0, 1), (600, 2), (0, 2), (60, 3)):
        clock.moment += timedelta(minutes=minutes)
        ticker.look()
        local.calls.wait_until(lambda: called_by_the_rule(local) >= before + times)  # noqa: B023
        assert called_by_the_rule(local) == before + times
