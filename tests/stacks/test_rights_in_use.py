"""The handlers, on S3 and DynamoDB of a real server, call nothing that their roles forbid.

The server asks nobody for rights, so each call is noted and held against `stacks.access`; nothing
is granted that no job of any fate needs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from fnmatch import fnmatchcase

import boto3
import pytest

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from stacks.access import ACCESS
from tests.contract.given import make_bucket
from tests.core.world import BUCKET, job_directory
from tests.lake import QUEUE, notify
from tests.lambdas.conftest import ENVIRONMENT
from tests.stacks.fates import FATES, Server
from tests.stacks.recorder import Needed, recording
from tests.stacks.synthesized import Assembly, only


@pytest.fixture(scope="module")
def needed(moto_endpoint: str, assembly: Assembly) -> Iterator[dict[str, set[Needed]]]:
    """Jobs of every fate, and what their functions called."""
    table = f"ledger-{uuid.uuid4().hex}"
    with pytest.MonkeyPatch.context() as patch, recording() as recorder:
        given = {**ENVIRONMENT, "AWS_ENDPOINT_URL": moto_endpoint, env.TABLE: table}
        for name, value in given.items():
            patch.setenv(name, value)
        described = only(assembly.storage, "AWS::DynamoDB::Table")["Properties"]
        shape = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
        boto3.client("dynamodb").create_table(
            TableName=table, **{name: described[name] for name in shape}
        )
        server = Server(recorder, table)
        make_bucket(server.client, BUCKET)
        notify(server.client, BUCKET, QUEUE, *SUFFIXES)
        server.sweep()  # the first look at the empty ledger
        for fate in FATES:
            fate(server, job_directory(job_id=str(uuid.uuid4())))
        yield recorder.needed


@pytest.mark.parametrize("name", sorted(set(ACCESS) - {"dispatch"}))
def test_a_role_allows_what_its_function_calls(needed: dict[str, set[Needed]], name: str) -> None:
    assert needed[name]
    access = ACCESS[name]
    for action, key in needed[name]:
        patterns = [pattern for pattern, granted in access.objects.items() if action in granted]
        allowed = (
            any(fnmatchcase(key, pattern) for pattern in patterns)
            if key
            else action in (*access.bucket, *access.ledger, *access.index)
        )
        assert allowed, f"{name} called {action} on {key or 'the bucket or table'}"


@pytest.mark.parametrize("name", sorted(set(ACCESS) - {"dispatch"}))
def test_a_role_has_no_right_that_its_function_never_needs(
    needed: dict[str, set[Needed]], name: str
) -> None:
    access = ACCESS[name]
    assert {*access.bucket, *access.ledger, *access.index} <= {action for action, _ in needed[name]}
    for pattern, granted in access.objects.items():
        called = {action for action, key in needed[name] if key and fnmatchcase(key, pattern)}
        assert set(granted) <= called, pattern
