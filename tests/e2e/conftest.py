"""The whole pipeline, as `s3commit local up` runs the synthesized template, in its own process."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest

import s3commit
from tests.servers import read_line

ROOT = Path(__file__).parents[2]
STOP_SECONDS = 30
WAIT_SECONDS = 60


@dataclass(frozen=True)
class Deployed:
    """What the ready line of `s3commit local up` says, and clients for it."""

    endpoint: str
    bucket: str
    region: str
    table: str
    stateMachine: str  # noqa: N815 - the key of the ready line
    accessKey: str  # noqa: N815
    secretKey: str  # noqa: N815
    pid: int = 0  # of the runtime

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.accessKey,
            "AWS_SECRET_ACCESS_KEY": self.secretKey,
            "S3COMMIT_TABLE": self.table,
        }

    @cache  # noqa: B019 - one a process, as long as its tests
    def client(self, service: str) -> Any:
        made: Any = boto3.client  # of the session that reads the model of each service once
        return made(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.accessKey,
            aws_secret_access_key=self.secretKey,
        )


def commit(bucket: str, table: str, *numbers: int) -> s3commit.CommitResult:
    """A job with a file in each partition ``n=…``."""
    with s3commit.open_job(f"s3://{bucket}/{table}/") as job:
        task = job.task("0")
        for number in numbers:
            with task.open(f"n={number}/part.txt") as file:
                file.write(b"1")
        job.commit_timeout = WAIT_SECONDS
        return job.commit([task.finish()])


def create_table(glue: Any, bucket: str, name: str) -> None:
    """The table of that name in the catalog's database "lake", partitioned as `commit` does."""
    glue.create_database(DatabaseInput={"Name": "lake"})
    storage = {"Location": f"s3://{bucket}/{name}/", "Columns": []}
    keys = [{"Name": "n", "Type": "int"}]
    table = {"Name": name, "PartitionKeys": keys, "StorageDescriptor": storage}
    glue.create_table(DatabaseName="lake", TableInput=table)


@contextmanager
def runtime() -> Iterator[Deployed]:
    """The runtime as a newcomer starts it: a command in the foreground, stopped by Ctrl-C."""
    command = [sys.executable, "-m", "s3commit", "local", "up", "--project", str(ROOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Deployed(**json.loads(read_line(process)), pid=process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(STOP_SECONDS) == 0


@pytest.fixture(scope="session")
def deployed() -> Iterator[Deployed]:
    with runtime() as deployed:
        yield deployed


@pytest.fixture
def environment(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """The process's AWS configuration leads to the runtime, as a user's would to AWS."""
    for name, value in deployed.environment.items():
        monkeypatch.setenv(name, value)
    return deployed
