"""A job's id under which somebody else asks, elsewhere: through events, dispatcher and machine."""

from __future__ import annotations

from typing import Any

import s3commit
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.documents import decode_result, encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import CommitRequest, Destination, JobResult, Outcome
from tests.e2e.conftest import WAIT_SECONDS, Deployed, until


def ask(deployed: Deployed, directory: JobDirectory) -> None:
    body = encode_request(CommitRequest(directory.job_id, ()))
    deployed.client("s3").put_object(Bucket=directory.bucket, Key=directory.request, Body=body)


def result_of(deployed: Deployed, directory: JobDirectory) -> JobResult:
    bucket, key = directory.bucket, directory.result
    until(lambda: S3ObjectStore().head(bucket, key))
    return decode_result(S3ObjectStore().get(bucket, key, max_bytes=10**6).body, directory)


def executions(deployed: Deployed, job_id: str) -> list[dict[str, Any]]:
    machine = deployed.client("stepfunctions")
    found = machine.list_executions(stateMachineArn=deployed.stateMachine)["executions"]
    return [one for one in found if one["name"].startswith(job_id)]


def test_i12_a_job_whose_id_somebody_uses_elsewhere_goes_its_way(environment: Deployed) -> None:
    with s3commit.open_job(f"s3://{environment.bucket}/e2e/taken/") as job:
        task = job.task("0")
        with task.open("part-0.txt") as file:
            file.write(b"x")
        evil = JobDirectory(Destination(environment.bucket, "e2e/evil/"), job.job_id)
        ask(environment, evil)  # before the manifest, whose event would be the first to come
        assert result_of(environment, evil).outcome is Outcome.ABORTED  # it has no _job.json
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
