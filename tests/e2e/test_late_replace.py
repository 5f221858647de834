"""An overwrite loses its execution, its correction is committed, and then somebody resumes it."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

import pytest

import s3commit
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.core.job.record import new_record
from s3commit.core.model.job import Outcome
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.locks import Lock, destination_node
from s3commit.core.model.states import JobState
from s3commit.writer.job import Job
from tests.cli.support import run
from tests.e2e.conftest import Deployed, until
from tests.e2e.test_pipeline import request


def written(destination: str, text: bytes) -> tuple[Job, s3commit.Task]:
    job = s3commit.open_job(destination, conflict="replace")
    task = job.task("0")
    with task.open("part.csv") as file:
        file.write(text)
    return job, task


def lost(deployed: Deployed, job: Job, task: s3commit.Task) -> None:
    """Requested, verified, and stopped where it waits for somebody who is gone then."""
    directory, ledger = job.directory, DynamoLedger(deployed.table)
    node = destination_node(directory.destination)
    someone = new_record(job.spec, directory, SystemClock().now())
    names = {"job_id": str(uuid.uuid4()), "state": JobState.SEALED, "locks": (node,)}
    ref = ledger.open_job(replace(someone, **names)).ref  # type: ignore[arg-type]
    request(job, task)
    record = until(lambda: (found := ledger.job(directory.ref)) and found.waits and found)
    deployed.client("stepfunctions").stop_execution(executionArn=record.execution)
    ledger.unlock(Lock(node, ref))
    time.sleep(S3_CLOCKS + 2)  # so that the next request has its place behind this one


@pytest.mark.parametrize("way", ["commit", "sweep", "abort"])
def test_i6_the_correction_stands_whoever_resumes_what_it_corrects(
    environment: Deployed, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3COMMIT_STATE_MACHINE", environment.stateMachine)
    destination = f"s3://{environment.bucket}/e2e/late-{way}/"
    old, its_task = written(destination, b"old")
    lost(environment, old, its_task)
    new, task = written(destination, b"corrected")
    if way == "abort":
        run("abort", old.job_id, "--reason", "wrong")
    assert new.commit([task.finish()], timeout=120).outcome is Outcome.COMMITTED
    if way == "commit":
        assert "which continues its commit" in run("commit", old.job_id).stdout
    if way == "sweep":
        limits = ("--stuck-after", "1s", "--abandoned-after", "1d", "--retention", "30d")
        assert "execution starts" in run("sweep", *limits).stdout

    shown = run("show", old.job_id, "--follow", "--timeout", "2m", exit_code=3)

    code = "ABORTED_BY_OPERATOR" if way == "abort" else "OVERTAKEN"
    assert code in shown.stdout + shown.stderr
    s3 = environment.client("s3")
    listed = s3.list_objects_v2(Bucket=environment.bucket, Prefix=f"e2e/late-{way}/part")
    assert [one["Size"] for one in listed["Contents"]] == [len(b"corrected")]
