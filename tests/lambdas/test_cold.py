"""What a function does when it starts: it imports what it calls, and makes its clients."""

import importlib
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from bench.cold import LAMBDAS, environment
from s3commit.core.model.limits import COMPLETE_WORKERS
from stacks.definition import MAP_FUNCTION, STEPS
from stacks.functions import FUNCTIONS
from stacks.layers import ROOT, dependencies_layer
from tests.lambdas.conftest import ENVIRONMENT

PROGRAM = """
import gc, json, sys
sys.path[:0] = sys.argv[2:]
__import__(sys.argv[1])
from botocore.client import BaseClient
clients = [one.meta.service_model.service_name for one in gc.get_objects()
           if issubclass(type(one), BaseClient)]
print(json.dumps({"modules": sorted(sys.modules), "clients": sorted(clients)}))
"""
STEP = "s3commit.core.commit."
WITHOUT_A_STATE = {MAP_FUNCTION: "complete_unit", "ingest": "ingest_pendingsets"}
# Each takes 5 to 50 ms, and nothing of it is used: of boto3 botocore is enough.
NEEDLESS = {"boto3", "s3transfer", "multiprocessing", "unittest", "asyncio", "pydantic", "pyarrow"}


@cache
def started(name: str) -> dict[str, list[str]]:
    """The modules and the clients of a function that has just started."""
    package = ROOT / "layers" / "s3commit" / "python"
    paths: list[Path] = [LAMBDAS, package, dependencies_layer() / "python"]
    answer = subprocess.check_output(
        [sys.executable, "-I", "-S", "-B", "-c", PROGRAM, name, *map(str, paths)],
        env=environment(),
    )
    found: dict[str, list[str]] = json.loads(answer)
    return found


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_imports_no_step_but_its_own(name: str) -> None:
    steps = {module.removeprefix(STEP) for module in started(name)["modules"] if STEP in module}
    called = [step for step, function in STEPS.items() if function == name]
    own = {"_".join(re.findall("[A-Z][a-z]+", step)).lower() for step in called}
    if name in WITHOUT_A_STATE:
        own.add(WITHOUT_A_STATE[name])
    assert steps == own


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_imports_nothing_that_no_function_needs(name: str) -> None:
    assert NEEDLESS & set(started(name)["modules"]) == set()


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"sweep"}))
def test_no_function_of_a_job_imports_the_sweep_or_the_check(name: str) -> None:
    elsewhere = ("s3commit.core.sweep", "s3commit.core.check")
    assert [one for one in started(name)["modules"] if one.startswith(elsewhere)] == []


def test_who_starts_executions_knows_no_ledger_and_no_store() -> None:
    needless = {"pynamodb", "s3commit.aws.s3", "s3commit.aws.ledger"}
    assert needless & set(started("dispatch")["modules"]) == set()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_has_its_clients_before_its_first_call(name: str) -> None:
    """One of each service. While it starts a function has more of a processor than in its calls."""
    expected = ["stepfunctions"] if name in {"ingest", "dispatch", "sweep"} else []
    if name != "dispatch":
        expected += ["glue" if name == "catalog" else "dynamodb", "s3"]
    assert started(name)["clients"] == sorted(expected)


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
