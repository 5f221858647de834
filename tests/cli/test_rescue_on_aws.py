"""``s3commit rescue`` over a server that answers for S3; no event, function or table takes part."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from s3commit.aws import env
from s3commit.cli.app import app
from s3commit.core.formats.layout import is_data
from s3commit.core.ports.bundle import Ports
from tests.golden.s3a.replay import BUCKET, TABLE, read, replay


@pytest.mark.parametrize("case", ["plain", "partitioned", "halfway", "task_running"])
@pytest.mark.parametrize("word", ["--commit", "--abort"])
def test_a_dead_drivers_job_ends_on_a_server_too(ports: Ports, case: str, word: str) -> None:
    bucket, recorded = os.environ[env.TABLE], read(case)
    for key, body in recorded.objects.items():  # the recording's bucket has another name
        recorded.objects[key] = body.replace(f'"{BUCKET}"'.encode(), f'"{bucket}"'.encode())
    replay(ports.store, recorded, bucket)
    uri = f"s3://{bucket}/{TABLE}__magic_job-{recorded.directory.job_id}/"
    shown = CliRunner().invoke(app, ["rescue", uri, "--output", "json"])
    (job,) = json.loads(shown.stdout)["jobs"]
    act = ["--commit", "--partial"] if word == "--commit" else ["--abort", job["shown"]]
    result = CliRunner().invoke(app, ["rescue", uri, *act, "--older-than", "0s"])
    assert result.exit_code == 0, result.output
    data = {
        listed.key: ports.store.get(bucket, listed.key, max_bytes=10**6).body
        for listed in ports.store.list(bucket, TABLE)
        if is_data(listed.key[len(TABLE) :])
    }
    assert data == (recorded.files if word == "--commit" else recorded.visible)
    unfinished = job["unfinished"] if word == "--commit" else 0
    assert len(list(ports.store.list_uploads(bucket, TABLE))) == unfinished
