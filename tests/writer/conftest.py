"""What the writer's suites share: a store in memory, the faults of its calls, and a job."""

from collections.abc import Iterator

import pytest

from s3commit.writer.access import shared_client
from s3commit.writer.job import Job
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.lake import Lake, lake_in_memory, lake_on
from tests.writer.support import BUCKET, JOB, ScriptedEnvironment, open_on


@pytest.fixture(autouse=True)
def no_connections_of_another_test() -> None:
    """A job or task that travelled connects by what the environment says in this test."""
    shared_client.cache_clear()


@pytest.fixture
def served_lake(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with lake_on(moto_endpoint, monkeypatch) as lake:
        yield lake


@pytest.fixture
def memory_lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with lake_in_memory(monkeypatch) as lake:
        yield lake


@pytest.fixture
def lake(served_lake: Lake) -> Lake:
    """The server's, unless a module has another."""
    return served_lake


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(BUCKET)


@pytest.fixture
def plan() -> FaultPlan:
    return FaultPlan()


@pytest.fixture
def environment() -> ScriptedEnvironment:
    return ScriptedEnvironment()


@pytest.fixture
def job(store: MemoryObjectStore, plan: FaultPlan, environment: ScriptedEnvironment) -> Job:
    """A job that is open; the plan's count begins after that."""
    job = open_on(plan.wrap(store), environment=environment, job_id=JOB)
    plan.forget_calls()
    return job
