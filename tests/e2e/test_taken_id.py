"""A job's id under which somebody else asks, elsewhere: through events, dispatcher and machine."""

from __future__ import annotations

import time
from typing import Any

from botocore.exceptions import ClientError

import s3commit
from s3commit.core.formats.documents import decode_result, encode_request
from s3commit.core.formats.layout import JobDirectory, parse_destination
from s3commit.core.model.job import CommitRequest, JobResult, Outcome
from tests.e2e.conftest import Deployed

WAIT_SECONDS = 60


def elsewhere(deployed: Deployed, job_id: str, table: str) -> JobDirectory:
    """The job directory of the same id at another destination."""
    return JobDirectory(parse_destination(f"s3://{deployed.bucket}/{table}/"), job_id)


def ask(deployed: Deployed, directory: JobDirectory) -> None:
    body = encode_request(CommitRequest(directory.job_id, ()))
    deployed.client("s3").put_object(Bucket=directory.bucket, Key=directory.request, Body=body)


def result_of(deployed: Deployed, directory: JobDirectory) -> JobResult:
    s3, end = deployed.client("s3"), time.monotonic() + WAIT_SECONDS
    while True:
        try:
            body = s3.get_object(Bucket=directory.bucket, Key=directory.result)["Body"].read()
            return decode_result(body, directory)
        except ClientError:
            assert time.monotonic() < end, "no result came"
            time.sleep(0.1)


def executions(deployed: Deployed, job_id: str) -> list[dict[str, Any]]:
    machine = deployed.client("stepfunctions")
    found = machine.list_executions(stateMachineArn=deployed.stateMachine)["executions"]
    return [one for one in found if one["name"].startswith(job_id)]


def test_i12_a_job_whose_id_somebody_uses_elsewhere_goes_its_way(environment: Deployed) -> None:
    with s3commit.open_job(f"s3://{environment.bucket}/e2e/taken/") as job:
        task = job.task("0")
        with task.open("part-0.txt") as file:
            file.write(b"x")
        evil = elsewhere(environment, job.job_id, "e2e/evil")
        ask(environment, evil)  # before the manifest, whose event would be the first to come
        assert result_of(environment, evil).outcome is Outcome.ABORTED  # it has no job.json
        result = job.commit([task.finish()], timeout=WAIT_SECONDS)
    assert result.outcome is Outcome.COMMITTED
    assert len(executions(environment, job.job_id)) == 2
    ask(environment, job.directory)  # S3 announces the same request again
    queue_is_heard(environment)
    assert len(executions(environment, job.job_id)) == 2


def queue_is_heard(deployed: Deployed) -> None:
    """Wait for a job that asks later: requests are dispatched by then."""
    with s3commit.open_job(f"s3://{deployed.bucket}/e2e/later/") as job:
        job.commit([], timeout=WAIT_SECONDS)
