"""The suite on buckets and a table that are given: it cleans up, and touches nothing else."""

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import boto3
import pytest

from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.contract.given import make_bucket
from tests.servers import ran

FILES = ["objects.py", "locks.py", "executions.py", "races.py"]
# One of those that use the table, and one of those that use the bucket with versions.
FEW = [
    "objects.py",
    "locks.py::test_i6_all_nodes_are_locked_or_none",
    "deletes.py::test_with_versions_what_was_seen_is_hidden_and_what_changed_stays",
    "executions.py",
]
ROOT = Path(__file__).parents[2]


class Account:
    """Two buckets, one of them versioned, and a table."""

    def __init__(self, moto: str, s3: str) -> None:
        self.environment = {**os.environ, "AWS_ENDPOINT_URL": moto, "AWS_ENDPOINT_URL_S3": s3}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", s3)
            self.s3: Any = make_client()
        self.store = S3ObjectStore(self.s3)
        name = f"given-{uuid.uuid4().hex}"
        self.bucket, self.versioned = make_bucket(self.s3, name), make_bucket(self.s3, f"{name}-v")
        self.s3.put_bucket_versioning(
            Bucket=self.versioned, VersioningConfiguration={"Status": "Enabled"}
        )
        self.table = name
        create_table(self.table, moto)
        self.dynamodb = boto3.client("dynamodb", endpoint_url=moto, region_name=REGION)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        return ran(*command, cwd=ROOT, env=self.environment)

    @property
    def options(self) -> list[str]:
        named = {
            "bucket": self.bucket,
            "versioned-bucket": self.versioned,
            "table": self.table,
            "machine-role": "arn:aws:iam::123456789012:role/machines",
        }
        return [f"--{name}={value}" for name, value in named.items()]


@pytest.mark.parametrize("server", ["moto", pytest.param("weed", marks=pytest.mark.long)])
def test_the_suite_runs_where_it_is_told_and_leaves_nothing(
    server: str, moto_endpoint: str, request: pytest.FixtureRequest
) -> None:
    account = Account(moto_endpoint, request.getfixturevalue(f"{server}_endpoint"))
    account.store.put(account.bucket, "sales/x.parquet", b"foreign")

    files = [f"tests/contract/test_{name}" for name in (FEW if server == "moto" else FILES)]
    done = account.run(*files, *account.options, f"--differences={server}")

    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout and "skipped" not in done.stdout
    for bucket, left in ((account.bucket, ["sales/x.parquet"]), (account.versioned, [])):
        assert [one.key for one in account.store.list(bucket, "")] == left
        assert list(account.store.list_uploads(bucket, "")) == []
    assert account.dynamodb.scan(TableName=account.table)["Count"] == 0


def test_a_table_that_has_items_is_not_touched(moto_endpoint: str) -> None:
    account = Account(moto_endpoint, moto_endpoint)
    item: Any = {"pk": {"S": "JOB#1"}, "sk": {"S": "JOB"}}
    account.dynamodb.put_item(TableName=account.table, Item=item)

    done = account.run("tests/contract/test_locks.py", *account.options, "--differences=moto")

    assert done.returncode == 2
    assert "give the suite one that is empty" in done.stdout + done.stderr
    assert account.dynamodb.scan(TableName=account.table)["Items"] == [item]
