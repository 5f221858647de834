"""At three in the morning: a decided job holds its destination, and its execution is dead."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import s3commit
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.record import new_record
from s3commit.core.model.job import CommitRequest, JobResult, Outcome
from s3commit.core.model.locks import Lock, destination_node
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.writer.job import Job
from tests.cli.support import run
from tests.e2e.conftest import WAIT_SECONDS, Deployed, until
from tests.fakes.execution import ROUTES, STEPS


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
        new_record(job.spec, directory, SystemClock().now()),
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
    while name != "CompleteUploads":
        ticket = STEPS[name](ports, ticket)
        name = ROUTES[name](ticket)
    return str(record.execution)


def test_i6_one_command_goes_on_with_the_holder_and_those_who_wait_follow(
    environment: Deployed,
) -> None:
    destination = f"s3://{environment.bucket}/e2e/three-in-the-morning/"

    def write(job: Job) -> JobResult:
        task = job.task("0")
        with task.open("part.csv") as file:
            file.write(b"second")
        return job.commit([task.finish()], timeout=2 * WAIT_SECONDS)

    holder = s3commit.open_job(destination, conflict="replace")
    task = holder.task("0")
    with task.open("part.csv") as file:
        file.write(b"first")
    dead = decided_and_dead(environment, holder, task)
    waiter = s3commit.open_job(destination, conflict="replace")
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
        assert waiting.result().outcome is Outcome.COMMITTED
    refused = run("commit", holder.job_id, exit_code=3).stderr
    assert f"job {holder.job_id} is COMMITTED already" in refused
    s3 = environment.client("s3")
    listed = s3.list_objects_v2(Bucket=environment.bucket, Prefix="e2e/three-in-the-morning/part")
    assert {one["Size"] for one in listed["Contents"]} == {6}
