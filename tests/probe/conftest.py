"""The servers that the probes run on, with a plain and a versioned bucket on each."""

from __future__ import annotations

import itertools
from typing import Any

import boto3
import pytest

from s3commit.cli.probe.world import Given, World
from s3commit.core.formats.layout import parse_destination
from s3commit.writer.environment import SystemEnvironment
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.contract.given import make_bucket

ROLE = "arn:aws:iam::123456789012:role/other"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/7c9e6679-7425-40de-944b-e07fc1f90ae7"
_NUMBERS = itertools.count()


def world_on(name: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """Small races in fresh buckets; with the options that the server can be probed with."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    bucket = f"probed-{next(_NUMBERS)}"
    # A session of its own: the default one keeps the credentials of whichever test came first.
    services: Any = boto3.Session()
    client = services.client("s3", region_name=REGION)
    for each in (bucket, f"{bucket}-versioned"):
        make_bucket(client, each)
    client.put_bucket_versioning(
        Bucket=f"{bucket}-versioned", VersioningConfiguration={"Status": "Enabled"}
    )
    given = Given(parse_destination(f"s3://{bucket}/a/b/"), f"{bucket}-versioned")
    if name == "moto":
        create_table(bucket, endpoint)
        given = Given(given.destination, given.versioned_bucket, bucket, ROLE, KEY)
    return World(given, SystemEnvironment(), parts=2, rounds=2)


@pytest.fixture
def moto_world(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world on the moto server."""
    return world_on("moto", moto_endpoint, monkeypatch)
