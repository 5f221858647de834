"""What the command's tests share."""

import itertools
from typing import Any

import boto3
import pytest

from s3commit.aws import env
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.notifications import SUFFIXES
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.ports.bundle import Ports
from s3commit.version import __version__
from tests.cli.account import Account
from tests.cli.browser import Browser
from tests.cli.support import Desk
from tests.conftest import REGION
from tests.contract.conftest import create_table

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table unless a test names one."""
    monkeypatch.delenv(env.TABLE, raising=False)


@pytest.fixture
def desk() -> Desk:
    """The command over an empty world."""
    return Desk()


@pytest.fixture
def browser(desk: Desk) -> Browser:
    return Browser(desk)


@pytest.fixture
def ports(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Ports:
    """A bucket and a table of one name on a server, and the environment that leads there."""
    name = f"desk-{next(_NUMBERS)}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setenv(env.TABLE, name)
    create_table(name, moto_endpoint)
    region: Any = {"LocationConstraint": REGION}
    boto3.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration=region)
    return Ports(S3ObjectStore(), DynamoLedger(name), SystemClock())


@pytest.fixture
def account(moto_endpoint: str) -> Account:
    return Account(moto_endpoint)


@pytest.fixture
def deployed(account: Account) -> Account:
    bucket = account.make_bucket(*SUFFIXES)
    account.deploy(env.STORAGE_STACK, BucketName=bucket)
    account.deploy(env.PIPELINE_STACK, Version=__version__, LambdaConcurrency="500")
    return account
