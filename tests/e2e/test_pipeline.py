"""The deployed wiring under repeated events, and garbage in its queues."""

from __future__ import annotations

import s3commit
from s3commit.core.model.job import JobResult, Outcome
from tests.e2e.conftest import WAIT_SECONDS, Deployed, until


def write(deployed: Deployed, table: str, number: int, files: int = 3) -> JobResult:
    with s3commit.open_job(f"s3://{deployed.bucket}/{table}/") as job:
        counted = []
        for part in range(files):
            task = job.task(f"t{part}")
            with task.open(f"n={number}/part-{part}.txt") as file:
                file.write(f"{number} {part}".encode())
            counted.append(task.finish())
        return job.commit(counted, timeout=WAIT_SECONDS)


def queue(deployed: Deployed, name: str, *, dead: bool = False) -> str:
    urls = deployed.client("sqs").list_queues()["QueueUrls"]
    [url] = [url for url in urls if name in url and ("Dead" in url) is dead]
    return str(url)


def depth(deployed: Deployed, url: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = deployed.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return sum(int(found["Attributes"][name]) for name in names)


def test_the_outcome_is_announced_and_the_execution_reads_well(environment: Deployed) -> None:
    result = write(environment, "e2e/announced", 0)
    machine = environment.client("stepfunctions")
    until(
        lambda: machine.describe_execution(executionArn=result.execution)["status"] == "SUCCEEDED"
    )
    events = machine.get_execution_history(executionArn=result.execution)["events"]
    names = [
        event["stateEnteredEventDetails"]["name"]
        for event in events
        if "stateEnteredEventDetails" in event
    ]
    assert names[:3] == ["SealJob", "WhereToResume", "VerifyManifests"]
    assert names[-5:] == ["AnnounceOutcome", "TidyUp", "AllTidy", "HowItEnded", "JobCommitted"]


def test_a_message_that_is_garbage_ends_in_the_dead_letter_queue(environment: Deployed) -> None:
    sqs = environment.client("sqs")
    inbox, dead = queue(environment, "Ingest"), queue(environment, "Ingest", dead=True)
    timeout = sqs.get_queue_attributes(QueueUrl=inbox, AttributeNames=["VisibilityTimeout"])
    sqs.set_queue_attributes(QueueUrl=inbox, Attributes={"VisibilityTimeout": "1"})
    try:
        sqs.send_message(QueueUrl=inbox, MessageBody="garbage")
        until(lambda: depth(environment, dead) == 1)
        assert write(environment, "e2e/after-garbage", 0).outcome is Outcome.COMMITTED
    finally:
        sqs.set_queue_attributes(QueueUrl=inbox, Attributes=timeout["Attributes"])
        sqs.purge_queue(QueueUrl=dead)
