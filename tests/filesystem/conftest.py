from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fsspec
import pytest

from s3commit.filesystem import S3CommitFileSystem
from tests.lake import Lake, lake_on


@pytest.fixture
def lake(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with lake_on(moto_endpoint, monkeypatch) as lake:
        yield lake
    S3CommitFileSystem.clear_instance_cache()


@pytest.fixture
def url(lake: Lake) -> str:
    return f"s3commit://{lake.bucket}/t"


@pytest.fixture
def fs(lake: Lake) -> Any:
    return fsspec.filesystem("s3commit", destination=f"s3://{lake.bucket}/t/")
