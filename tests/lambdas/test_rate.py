"""The workers of one job together stay below what S3 takes, and slow down if it takes less."""

from __future__ import annotations

import importlib

import pytest

from s3commit.aws.env import MOST_WORKERS
from s3commit.core.model.limits import COMPLETE_WORKERS, UNIT_FILES, UNITS_OF_A_JOB
from stacks.config import ConfigError, DeployConfig
from stacks.functions import FUNCTIONS
from tests.lambdas.conftest import ENVIRONMENT

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
WRITES_A_SECOND = 3500  # below one prefix, before S3 splits it
FASTEST = 0.1  # seconds of a completion; 0.2 is as usual
SLOWEST = 10.0  # of one with 10,000 parts


def test_all_workers_of_a_job_stay_below_what_s3_takes_below_a_prefix() -> None:
    in_flight = MOST_WORKERS * COMPLETE_WORKERS
    assert in_flight / FASTEST < WRITES_A_SECOND
    assert in_flight / FASTEST > 0.9 * WRITES_A_SECOND, "and use it"
    assert UNITS_OF_A_JOB == MOST_WORKERS
    with pytest.raises(ConfigError):
        DeployConfig.from_context({"s3commit:maxConcurrency": MOST_WORKERS + 1})


def test_a_worker_ends_in_time_even_with_the_largest_files() -> None:
    rounds = -(-UNIT_FILES // COMPLETE_WORKERS)
    assert rounds * SLOWEST < FUNCTIONS["complete"].timeout


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
