"""The deployed wiring: the events that it sends, and a dead execution."""

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import s3commit
from examples.recipes import tell_a_channel, wait_for_table
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.request_json import CommitRequest, encode_request
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.record import new_record
from s3commit.core.model.locks import Lock, destination_node
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.writer.job import Job
from tests.cli.support import run
from tests.e2e.conftest import WAIT_SECONDS, Deployed, commit
from tests.fakes.execution import COMPLETING, call
from tests.servers import answering, until

# The outcome event, and the recipes that act on it (docs/events.md)


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


# At three in the morning: a decided job holds its destination, and its execution is dead


def request(job: Job, task: s3commit.Task) -> None:
    counted = task.finish()
    assert counted is not None
    body = encode_request(CommitRequest(job.job_id, (counted,)))
    S3ObjectStore().put(job.directory.bucket, job.directory.request, body, if_absent=True)


def decided_and_dead(deployed: Deployed, job: Job, task: s3commit.Task) -> str:
    """Bring the job past its decision in the hands of an execution that was stopped before it."""
    machines = deployed.client("stepfunctions")
    directory, ledger = job.directory, DynamoLedger(deployed.table)
    node = destination_node(directory.destination)
    # Someone who never ends keeps it waiting, so that it is stopped at a known point.
    someone = replace(
        new_record(job._spec, directory, SystemClock().now()),
        job_id=str(uuid.uuid4()),
        state=JobState.SEALED,
        locks=(node,),
    )
    ledger.open_job(someone)
    request(job, task)
    record = until(lambda: (found := ledger.job(directory.ref)) and found.waits and found)
    machines.stop_execution(executionArn=record.execution)
    ledger.unlock(Lock(node, someone.ref))
    ports = Ports(S3ObjectStore(), ledger, SystemClock())
    ticket = Ticket(job.job_id, directory.bucket, directory.prefix).after(record)
    name = "AcquireDestination"
    while name not in COMPLETING:
        ticket, name = call(ports, name, ticket)
    return str(record.execution)


def test_i6_one_command_goes_on_and_those_who_wait_follow(environment: Deployed) -> None:
    destination = f"s3://{environment.bucket}/e2e/three-in-the-morning/"

    def write(job: Job) -> s3commit.CommitResult:
        task = job.task("0")
        with task.open("part.csv") as file:
            file.write(b"second")
        job.commit_timeout = 2 * WAIT_SECONDS
        return job.commit([task.finish()])

    holder = s3commit.open_job(destination, mode="overwrite")
    task = holder.task("0")
    with task.open("part.csv") as file:
        file.write(b"first")
    dead = decided_and_dead(environment, holder, task)
    waiter = s3commit.open_job(destination, mode="overwrite")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(write, waiter)

        def waits() -> list[dict[str, Any]]:
            jobs = json.loads(run("status", "--output", "json").stdout)["jobs"]
            return [one for one in jobs if one["waitsFor"] == [holder.job_id]]

        (line,) = until(waits)
        assert line["jobId"] == waiter.job_id
        shown = json.loads(run("show", waiter.job_id, "--output", "json").stdout)
        (other,) = shown["locks"]["inTheWay"]
        assert (other["jobId"], other["executionStatus"]) == (holder.job_id, "ABORTED")
        assert other["execution"] == dead
        assert any(f"s3commit commit {holder.job_id}" in line for line in shown["next"])
        told = run("commit", holder.job_id).stdout
        assert "which continues its commit (the last one is ABORTED)" in told
        assert "COMMITTED" in run("show", holder.job_id, "--follow", "--timeout", "2m").stdout
        assert waiting.result().files == 1
    refused = run("commit", holder.job_id, exit_code=3).stderr
    assert f"job {holder.job_id} is COMMITTED already" in refused
    s3 = environment.client("s3")
    listed = s3.list_objects_v2(Bucket=environment.bucket, Prefix="e2e/three-in-the-morning/part")
    assert {one["Size"] for one in listed["Contents"]} == {6}
