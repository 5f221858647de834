"""``s3commit rescue`` over a server that answers for S3 and DynamoDB; no event ever fired."""

from __future__ import annotations

import itertools
import os
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from s3commit.aws import env
from s3commit.cli.app import app
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JobDirectory, is_data
from s3commit.core.model.job import Destination
from s3commit.core.ports.bundle import Ports
from s3commit.writer.environment import SystemEnvironment
from tests.fakes.execution import run_execution
from tests.golden.s3a.replay import BUCKET, TABLE, read, replay


class LaterEnvironment(SystemEnvironment):
    """Days after the recording; the pipeline runs while the command waits."""

    def __init__(self, ports: Ports, directory: JobDirectory) -> None:
        self.ports = ports
        self.directory = directory
        self.executions = itertools.count()

    def epoch(self) -> float:
        return datetime(2026, 11, 26, tzinfo=UTC).timestamp()

    def sleep(self, seconds: float) -> None:
        execution = f"execution-{next(self.executions)}"
        assert run_execution(self.ports, self.directory, execution=execution)


@pytest.mark.parametrize("case", ["plain", "partitioned", "halfway", "task_running"])
@pytest.mark.parametrize("word", ["--commit", "--abort"])
def test_i2_i4_a_dead_drivers_job_ends_on_a_server_too(ports: Ports, case: str, word: str) -> None:
    bucket, recorded = os.environ[env.TABLE], read(case)
    for key, body in recorded.objects.items():  # the recording's bucket has another name
        recorded.objects[key] = body.replace(f'"{BUCKET}"'.encode(), f'"{bucket}"'.encode())
    replay(ports.store, recorded, bucket)
    session = Session()
    directory = JobDirectory(Destination(bucket, TABLE), recorded.directory.job_id)
    session.environment = LaterEnvironment(ports, directory)
    arguments = ["rescue", f"s3://{bucket}/{TABLE}", word, *["--partial"] * (word == "--commit")]
    result = CliRunner().invoke(app, arguments, obj=session)
    assert result.exit_code == 0, result.output
    data = {
        listed.key: ports.store.get(bucket, listed.key, max_bytes=10**6).body
        for listed in ports.store.list(bucket, TABLE)
        if is_data(listed.key[len(TABLE) :])
    }
    assert data == (recorded.files if word == "--commit" else {})
    assert list(ports.store.list_uploads(bucket, TABLE)) == []
