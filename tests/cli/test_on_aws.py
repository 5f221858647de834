"""The command as people run it: no fakes in it, S3 and DynamoDB answered by a server."""

from __future__ import annotations

import json
import os

import boto3
import pytest

from s3commit.aws import env
from s3commit.cli.session import Session
from s3commit.core.ports.bundle import Ports
from s3commit.writer.job import Job, open_job
from tests.cli.support import deploy_stack, run, uri_of
from tests.fakes.execution import run_execution


@pytest.fixture
def job(ports: Ports) -> Job:
    """A job with two files written, whose driver has asked for nothing."""
    job = open_job(f"s3://{os.environ[env.TABLE]}/sales/", store=ports.store)
    for name in ("dt=1/a.csv", "dt=2/b.csv"):
        with job.task(name[3], task_count=2) as task, task.open(name) as file:
            file.write(b"hello")
    return job


def test_a_dead_drivers_job_from_first_look_to_its_files(ports: Ports, job: Job) -> None:
    uri, destination = uri_of(job.directory), job.spec.destination.uri
    assert json.loads(run("show", uri, "--output", "json").stdout)["state"] == "OPEN"
    run("commit", uri)
    run_execution(ports, job.directory)
    assert "COMMITTED" in run("show", "--follow", job.job_id).stdout
    (listed,) = json.loads(run("ls", destination, "--output", "json").stdout)["jobs"]
    assert (listed["jobId"], listed["fileCount"], listed["bytes"]) == (job.job_id, 2, 10)
    files = json.loads(run("ls", destination, "--files", job.job_id, "--output", "json").stdout)
    assert len(files["files"]) == 2
    shown = json.loads(run("show", job.job_id, "--output", "json").stdout)
    assert (shown["state"], shown["openUploads"]) == ("COMMITTED", 0)
    status = json.loads(run("status", "--all", "--output", "json").stdout)
    assert status["counts"] == {"COMMITTED": 1}


def test_i4_an_abort_leaves_nothing_open(ports: Ports, job: Job) -> None:
    run("abort", uri_of(job.directory), "--reason", "no use")
    run_execution(ports, job.directory)
    assert "ended ABORTED" in run("show", "--follow", job.job_id, exit_code=3).stderr
    assert list(ports.store.list_uploads(job.directory.bucket, "")) == []


def test_the_table_is_found_by_the_deployments_stack(
    ports: Ports, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = {env.TABLE_OUTPUT: os.environ[env.TABLE]}
    stacks = boto3.client("cloudformation", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    deploy_stack(stacks, f"{env.STORAGE_STACK}-desk", outputs)
    monkeypatch.delenv(env.TABLE)
    listed = run("log", job.spec.destination.uri, "--name", "desk").stdout
    assert f"OPEN   {job.job_id}" in listed
    assert run("status", "--name", "desk").stderr == "no jobs\n"  # nothing was noted yet
    told = run("status", "--name", "other", exit_code=1).stderr
    assert "no stack S3CommitStorage-other in this account and region names the" in told


def test_a_table_that_is_not_there_is_one_line(ports: Ports) -> None:
    told = run("status", "--table", "no-such-table", exit_code=1).stderr
    assert len(told.splitlines()) == 1
    assert "[NO_TABLE]; is the table's name right" in told


def test_a_profile_that_is_not_there_is_one_line(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    for arguments in (("ls", "s3://lake/t/"), ("status",)):
        told = run(*arguments, exit_code=1).stderr
        assert len(told.splitlines()) == 1
        assert "nobody" in told


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [("http://127.0.0.1:4566", False), ("https://amazonaws.com.evil.org", False), ("", True)],
)
def test_only_executions_of_aws_have_its_console(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, found: bool
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SFN", endpoint)
    assert Session().has_console() is found
