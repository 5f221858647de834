"""The sweep by the command, on the deployed wiring."""

from __future__ import annotations

import time

import pytest

import s3commit
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.writer.job import Job
from tests.cli.support import run
from tests.e2e.conftest import Deployed, until


def record_of(deployed: Deployed, job: Job) -> JobRecord | None:
    return DynamoLedger(deployed.table).job(job.directory.ref)


def test_abandoned_jobs_and_their_uploads_end_by_one_command(environment: Deployed) -> None:
    """With limits of nothing: S3's clock can't be turned back."""
    job = s3commit.open_job(f"s3://{environment.bucket}/e2e/sweep/abandoned/", conflict="replace")
    with job.task("0") as task, task.open("part.csv") as file:
        file.write(b"data")
    until(lambda: record_of(environment, job))
    foreign = environment.client("s3").create_multipart_upload(
        Bucket=environment.bucket, Key="e2e/sweep/abandoned/theirs.csv"
    )
    time.sleep(1.1)  # S3's times are whole seconds
    limits = ["--abandoned-after", "1s", "--stuck-after", "1s", "--retention", "1d"]
    told = run("sweep", *limits, "--dry-run").stdout
    assert f"job {job.job_id} at {job.directory.destination.uri}: abandoned" in told
    run("sweep", *limits)
    until(lambda: S3ObjectStore().head(job.directory.bucket, job.directory.result))
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


@pytest.fixture(autouse=True)
def machine_for_the_command(environment: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3COMMIT_STATE_MACHINE", environment.stateMachine)
