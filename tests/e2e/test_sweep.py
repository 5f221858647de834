"""The sweep as it is deployed: stuck and abandoned jobs, and living ones left alone."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import s3commit
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.ledger_items import job_key
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.job.record import new_record
from s3commit.core.model.locks import Claim, LockMode
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.sweep.sweep import DAY, shifted
from s3commit.writer.job import Job
from tests.cli.support import run
from tests.contract.locking import hold, waits
from tests.e2e.conftest import Deployed
from tests.e2e.test_dead_execution import request, until

LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}


def sweep_function(deployed: Deployed) -> str:
    functions = deployed.client("lambda").list_functions()["Functions"]
    (arn,) = [one["FunctionArn"] for one in functions if one["Handler"] == "sweep.handler"]
    return str(arn)


def swept(deployed: Deployed) -> dict[str, Any]:
    """What the deployed sweep reports."""
    answer = deployed.client("lambda").invoke(
        FunctionName=sweep_function(deployed), Payload=json.dumps(LIMITS)
    )
    report: dict[str, Any] = json.loads(answer["Payload"].read())
    assert report["failed"] == 0, report
    return report


def open_with_task(deployed: Deployed, name: str) -> tuple[Job, s3commit.Task]:
    job = s3commit.open_job(f"s3://{deployed.bucket}/e2e/sweep/{name}/", conflict="replace")
    task = job.task("0")
    with task.open("part.csv") as file:
        file.write(b"data")
    return job, task


def record_of(deployed: Deployed, job: Job) -> JobRecord | None:
    return DynamoLedger(deployed.table).job(job.directory.ref)


def stuck(deployed: Deployed, job: Job, task: s3commit.Task) -> None:
    """Its execution is stopped while it waits for somebody who holds the destination."""
    directory, ledger = job.directory, DynamoLedger(deployed.table)
    node = f"{directory.bucket}/{directory.destination.prefix}"
    someone = str(uuid.uuid4())
    other = replace(new_record(job.spec, directory, SystemClock().now()), job_id=someone)
    ledger.open_job(replace(other, state=JobState.SEALED))
    hold(ledger, other.ref, node)
    request(job, task)
    until(lambda: waits(ledger, job.directory.ref))
    record = record_of(deployed, job)
    assert record is not None
    deployed.client("stepfunctions").stop_execution(executionArn=record.execution)
    ledger.drop_claim(other.ref, Claim(node, LockMode.EXCLUSIVE))
    forget(deployed, other.ref)


def item_key(ref: str) -> dict[str, Any]:
    pk, sk = job_key(ref)
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def forget(deployed: Deployed, ref: str) -> None:
    key = item_key(ref)
    deployed.client("dynamodb").delete_item(TableName=deployed.table, Key=key)


def age(deployed: Deployed, job: Job, seconds: int) -> None:
    """As if the ledger had last heard of the job so long ago."""
    key = item_key(job.directory.ref)
    then = {"S": shifted(SystemClock().now(), -seconds)}
    deployed.client("dynamodb").update_item(
        TableName=deployed.table,
        Key=key,
        UpdateExpression="SET updated_at = :then",
        ExpressionAttributeValues={":then": then},
    )


def outcome(job: Job) -> Callable[[], Any]:
    store = S3ObjectStore()
    return lambda: store.head(job.directory.bucket, job.directory.result)


def test_a_job_whose_execution_was_stopped_is_finished_by_the_deployed_sweep(
    environment: Deployed,
) -> None:
    job, task = open_with_task(environment, "stuck")
    stuck(environment, job, task)
    slow, _ = open_with_task(environment, "slow")  # a living job, beside it
    assert swept(environment)["started"] == 0  # nothing is old enough yet
    age(environment, job, 3600)
    report = swept(environment)
    assert (report["started"], report["aborted"]) == (1, 0)
    until(outcome(job))
    record = record_of(environment, job)
    assert record is not None
    assert record.state is JobState.COMMITTED
    assert record.execution.rsplit(":", 1)[-1].startswith(f"{record.ref}-")
    assert not outcome(slow)()


def test_abandoned_jobs_and_their_uploads_end_by_one_command(environment: Deployed) -> None:
    """With limits of nothing: S3's clock can't be turned back."""
    job, task = open_with_task(environment, "abandoned")
    task.finish()
    until(lambda: record_of(environment, job))
    age(environment, job, 2 * DAY)
    foreign = environment.client("s3").create_multipart_upload(
        Bucket=environment.bucket, Key="e2e/sweep/abandoned/theirs.csv"
    )
    time.sleep(1.1)  # S3's times are whole seconds
    limits = ["--abandoned-after", "1s", "--stuck-after", "1h", "--retention", "1d"]
    told = run("sweep", *limits, "--dry-run").stdout
    assert f"dry run: job {job.job_id} at {job.directory.destination.uri}: abandoned" in told
    run("sweep", *limits)
    until(outcome(job))
    record = until(
        lambda: (found := record_of(environment, job)) and found.state in ENDED and found
    )
    assert record.state is JobState.ABORTED
    assert record.failure is not None
    assert record.failure.code == "ABANDONED"
    listed = environment.client("s3").list_multipart_uploads(
        Bucket=environment.bucket, Prefix="e2e/sweep/abandoned/"
    )
    assert [one["UploadId"] for one in listed["Uploads"]] == [foreign["UploadId"]]


def test_the_schedule_is_deployed(environment: Deployed) -> None:
    rules = environment.client("events").list_rules()["Rules"]
    (rule,) = [one for one in rules if one.get("ScheduleExpression") == "rate(1 hour)"]
    targets = environment.client("events").list_targets_by_rule(Rule=rule["Name"])["Targets"]
    assert [target["Arn"] for target in targets] == [sweep_function(environment)]


@pytest.fixture(autouse=True)
def machine_for_the_command(environment: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3COMMIT_STATE_MACHINE", environment.stateMachine)
