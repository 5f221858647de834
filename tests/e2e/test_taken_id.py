"""A job's id under which somebody else asks, elsewhere: through events, dispatcher and machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

import s3commit
from s3commit.core.formats.documents import decode_result, encode_job, encode_request
from s3commit.core.formats.layout import JobDirectory, parse_destination
from s3commit.core.formats.ticket import execution_input
from s3commit.core.model.job import CommitRequest, JobResult, JobSpec, Outcome
from tests.e2e.conftest import Deployed

WAIT_SECONDS = 60
MISTAKES = 6


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


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
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


def test_i2_i4_a_job_with_many_executions_by_mistake_ends_once(environment: Deployed) -> None:
    machine, s3 = environment.client("stepfunctions"), environment.client("s3")
    with s3commit.open_job(f"s3://{environment.bucket}/e2e/mistake/") as job:
        attempts = []
        for number in range(4):
            with job.task(str(number)) as task:
                with task.open(f"part-{number}.txt") as file:
                    file.write(b"x")
                attempts.append(task.finish())
        with ThreadPoolExecutor(MISTAKES + 1) as pool:
            committed = pool.submit(job.commit, attempts, timeout=WAIT_SECONDS)
            request = {"Bucket": environment.bucket, "Prefix": job.directory.request}
            wait_until(lambda: "Contents" in s3.list_objects_v2(**request))
            for number in range(MISTAKES):
                pool.submit(
                    machine.start_execution,
                    stateMachineArn=environment.stateMachine,
                    name=f"{job.directory.ref}-mistake-{number}",
                    input=json.dumps(execution_input(job.directory)),
                ).result()
    assert committed.result().outcome is Outcome.COMMITTED
    assert committed.result().files == 4
    started = {one["name"] for one in executions(environment, job.job_id)}
    assert len(started) == MISTAKES + 1
    wait_until(
        lambda: {one["status"] for one in executions(environment, job.job_id)} == {"SUCCEEDED"}
    )
    where = {"Bucket": environment.bucket, "Prefix": "e2e/mistake/part-"}
    assert len(s3.list_objects_v2(**where)["Contents"]) == 4
    assert "Uploads" not in s3.list_multipart_uploads(**where)


def test_i12_inside_a_job_of_the_id_another_one_is_refused(environment: Deployed) -> None:
    with s3commit.open_job(f"s3://{environment.bucket}/e2e/first/") as job:
        task = job.task("0")
        with task.open("dt=1/part-0.txt") as file:
            file.write(b"x")
        inside = elsewhere(environment, job.job_id, "e2e/first/dt=1")
        s3 = environment.client("s3")
        spec = encode_job(JobSpec(job.job_id, inside.destination))
        s3.put_object(Bucket=inside.bucket, Key=inside.job, Body=spec)
        ask(environment, inside)
        refused = result_of(environment, inside)
        assert refused.error is not None
        assert refused.error.code == "JOB_ID_TAKEN"
        result = job.commit([task.finish()], timeout=WAIT_SECONDS)
    assert result.outcome is Outcome.COMMITTED
    assert result_of(environment, job.directory) == result


def queue_is_heard(deployed: Deployed) -> None:
    """Wait for a job that asks later: requests are dispatched by then."""
    with s3commit.open_job(f"s3://{deployed.bucket}/e2e/later/") as job:
        job.commit([], timeout=WAIT_SECONDS)
