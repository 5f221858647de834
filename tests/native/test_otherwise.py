"""Writes that are not ours are committed as they would be without us."""

import json
import sys
from pathlib import Path

import boto3
import pytest

from s3commit.spark.native import find_jar
from tests.native import s3a
from tests.native.applications import APPLICATIONS, CLOUD, NEEDS_CLOUD, ROWS
from tests.native.conftest import VERSION
from tests.servers import ran
from tests.spark.conftest import environment
from tests.spark.tiny import TinyPipeline

SPARKS = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
S3AS = f"{CLOUD}.PathOutputCommitProtocol"


@pytest.mark.parametrize("with_cloud", [False, pytest.param(True, marks=pytest.mark.long)])
def test_another_write_has_its_own_class_beside_us(tiny: TinyPipeline, with_cloud: bool) -> None:
    """In every application, also where our class takes the place of one that it named itself."""
    jars = [*map(str, s3a.jars()), find_jar(), *([str(s3a.cloud())] if with_cloud else [])]
    with environment(tiny):
        boto3.client("s3").create_bucket(Bucket="lake")
        done = ran(
            *(sys.executable, "-m", "tests.native.applications"),
            *(tiny.environment["AWS_ENDPOINT_URL"], ",".join(jars)),
            cwd=Path(__file__).parents[2],
        )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == set(APPLICATIONS) - (set() if with_cloud else {NEEDS_CLOUD})
    assert found["nothing"].pop("rows") == [ROWS, ROWS]
    usual = S3AS if with_cloud and VERSION >= (4, 1) else SPARKS
    assert found["nothing"]["own"] == [usual, usual]
    for name, sides in found.items():
        # Ours has replaced another protocol: the session can't tell which, but S3A's.
        if name != "another protocol":
            assert sides["ours"] == sides["own"], name
        assert sides.get("session", sides["own"]) == sides["own"], name
