"""The deployed wiring: the events that it sends, and recipes that act on them (docs/events.md)."""

import json
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import s3commit
from examples.recipes import tell_a_channel, wait_for_table
from tests.e2e.conftest import WAIT_SECONDS, Deployed, commit
from tests.servers import answering, until

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "events.schema.json").read_text())


@pytest.fixture
def queue(environment: Deployed) -> Iterator[str]:
    """A queue that gets the events of the tables of this file."""
    sqs, events = environment.client("sqs"), environment.client("events")
    url = sqs.create_queue(QueueName="outcomes")["QueueUrl"]
    names = ["QueueArn"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]["QueueArn"]
    pattern = {
        "source": ["s3commit"],
        "detail": {"table": [{"prefix": f"s3://{environment.bucket}/events/"}]},
    }
    events.put_rule(Name="outcomes", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="outcomes", Targets=[{"Id": "queue", "Arn": arn}])
    yield url
    events.remove_targets(Rule="outcomes", Ids=["queue"])
    events.delete_rule(Name="outcomes")
    sqs.delete_queue(QueueUrl=url)


def announced(environment: Deployed, queue: str) -> dict[str, Any]:
    """The next event."""
    sqs = environment.client("sqs")
    receive = partial(sqs.receive_message, QueueUrl=queue, MaxNumberOfMessages=1)
    (message,) = until(lambda: receive().get("Messages"))
    event: dict[str, Any] = json.loads(message["Body"])
    assert (event["source"], event["detail-type"]) == ("s3commit", "s3commit job ended")
    jsonschema.validate(event["detail"], SCHEMA)
    return event


def test_the_event_is_as_its_page_says(environment: Deployed, queue: str) -> None:
    commit(environment.bucket, "events/sales", 1, 2, 3)
    event = announced(environment, queue)
    table = f"s3://{environment.bucket}/events/sales/"
    assert [event["detail"][name] for name in ("table", "files")] == [table, 3]


def test_a_table_is_waited_for(environment: Deployed, queue: str) -> None:
    table = f"s3://{environment.bucket}/events/awaited/"
    assert not wait_for_table.is_committed(queue, table)
    commit(environment.bucket, "events/another", 0)
    commit(environment.bucket, "events/awaited", 0)
    until(lambda: wait_for_table.is_committed(queue, table))
    assert not wait_for_table.is_committed(queue, table), "the next run waits for the next commit"


def test_a_channel_is_told_why_a_job_was_not_committed(
    environment: Deployed, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def hear(_: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        said.append(json.loads(body)["text"])
        return 200, b""

    destination = f"s3://{environment.bucket}/events/refused/"
    with pytest.raises(s3commit.JobFailedError), s3commit.open_job(destination, min_files=1) as job:
        job.commit_timeout = WAIT_SECONDS
        job.commit([])

    event = announced(environment, queue)
    again = {"detail": {**event["detail"], "code": "ALREADY_COMMITTED"}}
    with answering(hear) as url:
        monkeypatch.setenv("WEBHOOK", f"{url}/")
        tell_a_channel.handler(again, None)
        assert said == [], "its rows are there"
        tell_a_channel.handler(event, None)

    assert len(said) == 1
    assert said[0].startswith(
        f"ABORTED CONDITION_FAILED: {destination} has none of the job's files."
    )
    assert f"s3commit show {destination}__magic_job-" in said[0]
