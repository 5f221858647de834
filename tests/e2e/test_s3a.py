"""What an S3A driver left behind, put into the deployed bucket: `s3commit rescue` ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from s3commit.aws.s3 import S3ObjectStore
from s3commit.cli.app import app
from s3commit.core.formats.layout import is_data
from tests.e2e.conftest import Deployed
from tests.golden.s3a.replay import BUCKET, TABLE, Recorded, read, replay


def moved(recorded: Recorded, bucket: str, table: str) -> Recorded:
    """The same case in another bucket and at another table, as its paths and its bytes say."""

    def body(old: bytes) -> bytes:
        inside = old.replace(f'"{BUCKET}"'.encode(), f'"{bucket}"'.encode())
        return inside.replace(f'"{TABLE}part'.encode(), f'"{table}part'.encode())

    def key(old: str) -> str:
        return table + old[len(TABLE) :]

    return Recorded(
        {key(one): body(text) for one, text in recorded.objects.items()},
        {key(one): part for one, part in recorded.uploads.items()},
        {key(one): text for one, text in recorded.ids.items()},
    )


@pytest.mark.parametrize(("case", "word"), [("plain", "--commit"), ("task_running", "--abort")])
def test_a_dead_drivers_job_is_rescued_beside_the_pipeline(
    environment: Deployed, case: str, word: str
) -> None:
    table = f"s3a/{case}/"
    recorded = moved(read(case), environment.bucket, table)
    store = S3ObjectStore()
    replay(store, recorded, environment.bucket)
    uri = f"s3://{environment.bucket}/{table}"
    (job,) = rescue(uri)
    act = [word] if word == "--commit" else [word, job["shown"]]
    (job,) = rescue(job["directory"], *act, "--older-than", "0s")
    data = {
        listed.key: store.get(environment.bucket, listed.key, max_bytes=10**6).body
        for listed in store.list(environment.bucket, table)
        if is_data(listed.key[len(table) :])
    }
    expected = {table + key[len(TABLE) :]: body for key, body in read(case).files.items()}
    assert data == (expected if word == "--commit" else {})
    assert list(store.list_uploads(environment.bucket, table)) == []


def rescue(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["rescue", *arguments, "--output", "json"])
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["jobs"]
    return found
