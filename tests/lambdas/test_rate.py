"""A worker has so many completions under way, and slows down if S3 takes less."""

from __future__ import annotations

import importlib

import pytest

from s3commit.core.model.limits import COMPLETE_WORKERS
from tests.lambdas.conftest import ENVIRONMENT


def test_a_worker_has_so_many_under_way_and_slows_down_when_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    worker = importlib.import_module("lambdas.complete").ports
    assert worker.parallel._workers == COMPLETE_WORKERS
    config = worker.store._client.meta.config
    assert config.retries["mode"] == "adaptive"
    assert config.max_pool_connections == COMPLETE_WORKERS
    other = importlib.import_module("lambdas.end").ports
    assert other.store._client.meta.config.retries["mode"] == "standard"
