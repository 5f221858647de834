"""The outcome event on the deployed wiring, and the recipes that act on it (docs/events.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import s3commit
from examples.recipes import register_partitions, tell_a_channel, wait_for_table
from tests.e2e.conftest import WAIT_SECONDS, Deployed, until
from tests.e2e.test_pipeline import write
from tests.servers import answering

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
    jsonschema.validate(event["detail"], SCHEMA)
    return event


def test_new_partitions_are_registered_once(
    environment: Deployed, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"s3://{environment.bucket}/events/sales/"
    glue = environment.client("glue")
    glue.create_database(DatabaseInput={"Name": "lake"})
    glue.create_table(
        DatabaseName="lake",
        TableInput={
            "Name": "sales",
            "PartitionKeys": [{"Name": "n", "Type": "int"}],
            "StorageDescriptor": {"Location": table, "Columns": [{"Name": "x", "Type": "string"}]},
        },
    )
    monkeypatch.setenv("DATABASE", "lake")
    write(environment, "events/sales", 1)
    event = announced(environment, queue)
    assert (event["source"], event["detail-type"]) == ("s3commit", "s3commit job ended")
    assert [event["detail"][name] for name in ("table", "files")] == [table, 3]

    assert register_partitions.handler(event, None) == 1
    assert register_partitions.handler(event, None) == 0, "the event may come twice"

    found = glue.get_partitions(DatabaseName="lake", TableName="sales")["Partitions"]
    assert [(one["Values"], one["StorageDescriptor"]["Location"]) for one in found] == [
        (["1"], f"{table}n=1/")
    ]

    elsewhere = {**event["detail"], "table": f"s3://{environment.bucket}/events/others/sales/"}
    assert register_partitions.handler({"detail": elsewhere}, None) == 0, "another's of that name"


def test_a_table_is_waited_for(environment: Deployed, queue: str) -> None:
    table = f"s3://{environment.bucket}/events/awaited/"
    assert not wait_for_table.is_committed(queue, table)
    write(environment, "events/another", 0)
    write(environment, "events/awaited", 0)
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
    with (
        pytest.raises(s3commit.JobFailedError),
        s3commit.open_job(destination, conditions={"minFiles": 1}) as job,
    ):
        job.commit([], timeout=WAIT_SECONDS)

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
