"""Buckets and a table that are given to the suite: ``make contract ARGS="--bucket …"``."""

import itertools
import time
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from s3commit.aws.ledger import DynamoLedger
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState

INDEX_LAG = 3.0  # seconds that the index of jobs by state is given to follow the table, on AWS
OPTIONS = ("--bucket", "--versioned-bucket", "--table", "--machine-role")


def given(config: pytest.Config) -> dict[str, str]:
    """The options, or nothing. Raises `pytest.UsageError` where some are missing."""
    found = {option: config.getoption(option[2:].replace("-", "_"), None) for option in OPTIONS}
    missing = [option for option, value in found.items() if not value]
    if len(missing) == len(OPTIONS):
        return {}
    if missing:
        raise pytest.UsageError(f"give {' and '.join(missing)} too: the suite needs all of them")
    return found


def make_bucket(client: Any, name: str) -> str:
    """Make a bucket in the client's region; return its name."""
    region = client.meta.region_name
    # us-east-1 is no LocationConstraint:
    # https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html
    where: Any = {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client.create_bucket(Bucket=name, **({} if region == "us-east-1" else where))
    return name


def own_prefix() -> str:
    """Where the suite works in a bucket that holds other things."""
    return f"s3commit-contract-{uuid.uuid4().hex}/"


def empty(client: Any, bucket: str, prefix: str) -> None:
    """Abort every upload below the prefix, and delete every object and version."""
    for page in client.get_paginator("list_multipart_uploads").paginate(
        Bucket=bucket, Prefix=prefix
    ):
        for one in page.get("Uploads", ()):
            client.abort_multipart_upload(Bucket=bucket, Key=one["Key"], UploadId=one["UploadId"])
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            client.delete_object(Bucket=bucket, Key=one["Key"], VersionId=one["VersionId"])


class GivenLedger(DynamoLedger):
    """A ledger of which a test reads the index when that has followed the table."""

    def jobs_in(self, *state: JobState, **bounds: Any) -> Iterator[JobRecord]:
        time.sleep(INDEX_LAG)
        return super().jobs_in(*state, **bounds)

    def all_jobs(self, *, most: int) -> list[JobRecord] | None:
        time.sleep(INDEX_LAG)
        return super().all_jobs(most=most)

    def count_in(self, *state: JobState, **bounds: Any) -> int:
        time.sleep(INDEX_LAG)
        return super().count_in(*state, **bounds)


def items(table: str) -> Iterator[dict[str, Any]]:
    """The keys of all items of a table."""
    pages = (
        boto3.client("dynamodb")
        .get_paginator("scan")
        .paginate(TableName=table, ProjectionExpression="pk, sk", ConsistentRead=True)
    )
    return itertools.chain.from_iterable(page["Items"] for page in pages)


def clear(table: str) -> None:
    """Delete all items."""
    client = boto3.client("dynamodb")
    for key in items(table):
        client.delete_item(TableName=table, Key=key)
