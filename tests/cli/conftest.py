"""What the command's tests share."""

import pytest

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from s3commit.cli.deployment import Deployment
from s3commit.version import __version__
from tests.cli.account import Account
from tests.cli.browser import Browser
from tests.cli.support import TABLE, Desk
from tests.conftest import REGION


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
def of_python(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose bucket the undo of a program works on, too."""
    for name in ("undo.check_pipeline", "access.make_client"):
        monkeypatch.setattr(f"s3commit.writer.{name}", lambda *_, **__: None)
    monkeypatch.setattr("s3commit.writer.undo.S3ObjectStore", lambda *_, **__: desk.session.store)
    monkeypatch.setattr("s3commit.writer.undo.ThreadMap", lambda _: map)
    monkeypatch.setattr("s3commit.writer.undo.Environment", lambda: desk.environment)
    return desk


@pytest.fixture
def account(moto_endpoint: str, desk: Desk) -> Account:
    """An account that the desk works on, too, whatever deployment is named."""
    account = Account(moto_endpoint, desk.session)
    desk.session.deployments = lambda name: Deployment(REGION, account.connect, name)
    return account


@pytest.fixture
def deployed(account: Account) -> Account:
    bucket = account.make_bucket(*SUFFIXES)
    account.deploy(env.STORAGE_STACK, BucketName=bucket, TableName=TABLE, **account.listen())
    account.deploy(env.PIPELINE_STACK, Version=__version__, LambdaConcurrency="500")
    return account
