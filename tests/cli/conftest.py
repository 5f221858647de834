"""What the command's tests share."""

from __future__ import annotations

import pytest

from s3commit.aws import env
from tests.cli.support import Desk


@pytest.fixture(autouse=True)
def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table unless a test names one."""
    monkeypatch.delenv(env.TABLE, raising=False)


@pytest.fixture
def desk() -> Desk:
    """The command over an empty world."""
    return Desk()
