"""Many jobs at once in processes of their own, on S3 and DynamoDB of a server (I6, I11)."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_client import make_client
from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.ports.bundle import Ports
from s3commit.testing.execution import run_execution
from s3commit.testing.faults import Crash, FaultPlan
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.contract.locking import claims_left
from tests.core import world as worlds
from tests.core.world import World, job_directory
from tests.crash.test_many_jobs import KINDS, Job

PROCESSES = 6
CHOSEN = [0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 13, 14]  # of the kinds; one key twice
PATIENCE = 120  # seconds


class Served(World):
    """A client and a pipeline on the server that ``AWS_ENDPOINT_URL`` names."""

    def __init__(self, table: str) -> None:
        super().__init__()
        store: Any = S3ObjectStore(make_client())
        ledger: Any = DynamoLedger(table, region=REGION, host=os.environ["AWS_ENDPOINT_URL"])
        clock: Any = SystemClock()
        self.store, self.ledger, self.clock = store, ledger, clock
        self.ports = Ports(self.store, self.ledger, self.clock)


def run_jobs(bucket: str, table: str, jobs: list[tuple[int, int]]) -> None:
    """What one process does: write and commit its jobs, given by number and kind."""
    worlds.BUCKET = bucket
    world = Served(table)
    for number, kind in jobs:
        job = make(number, kind)
        one = job.kind
        world.open(job.directory, conflict=one.conflict, scope=one.scope, idempotency_key=one.key)
        files = {key.removeprefix(one.prefix): job.job_id.encode() for key in job.keys}
        world.request(job.directory, world.attempt(job.directory, "t", files=files))
        # The machine's pause of five seconds, in short.
        run_execution(world.ports, job.directory, pause=lambda: time.sleep(0.1))


def make(number: int, kind: int) -> Job:
    one = KINDS[kind]
    return Job(one, job_directory(f"{number:08x}-0000-4000-8000-000000000000", one.prefix))


def restart(bucket: str, table: str, job_id: str, execution: str) -> list[str]:
    """One execution of a job, in a process of its own; the states that it entered."""
    worlds.BUCKET = bucket
    return Served(table).run(job_directory(job_id, "w/"), execution)


@pytest.mark.parametrize("loses", [False, True], ids=["committed", "rolled back"])
def test_i2_i4_one_job_with_many_executions_by_mistake_ends_once(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch, loses: bool
) -> None:
    """They overtake each other, and whoever is left ends the job; one more finds it ended."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    bucket = table = f"once-{uuid.uuid4().hex}"
    monkeypatch.setattr(worlds, "BUCKET", bucket)
    create_table(table, moto_endpoint)
    make_client().create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    world, directory = Served(table), job_directory(prefix="w/")
    world.open(directory)
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(12)])
    if loses:  # after the decision, whoever makes it
        decided = FaultPlan().crash_after("decide")
        world.ports = Ports(world.store, decided.wrap(world.ledger), world.clock)
        with pytest.raises(Crash):
            world.run(directory, "execution-0")
        upload = list(world.store.list_uploads(bucket, "w/"))[5]
        world.store.abort_upload(bucket, upload.key, upload.upload_id)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=spawn) as pool:
        names = [f"execution-{number}" for number in range(1, 9)]
        running = [pool.submit(restart, bucket, table, directory.job_id, name) for name in names]
        ends = [one.result(PATIENCE)[-1] for one in running]
    assert set(ends) <= {"TidyUp", "Superseded"}
    world.run(directory, "the-last")
    outcome = Outcome.ROLLED_BACK if loses else Outcome.COMMITTED
    assert world.result(directory).outcome is outcome
    assert len(world.visible("w/")) == (0 if loses else 12)
    assert world.open_uploads("w/") == []
    assert claims_left(world.ledger, world.record(directory)) == []


def test_i2_i6_i10_i11_jobs_of_many_processes_end_as_if_one_after_the_other(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    bucket = table = f"many-{uuid.uuid4().hex}"
    monkeypatch.setattr(worlds, "BUCKET", bucket)
    create_table(table, moto_endpoint)
    make_client().create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    numbered = list(enumerate(CHOSEN))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=spawn) as pool:
        shares = [numbered[start::PROCESSES] for start in range(PROCESSES)]
        for done in [pool.submit(run_jobs, bucket, table, share) for share in shares]:
            done.result(PATIENCE)
    world = Served(table)
    check_one_after_the_other(world, [make(number, kind) for number, kind in numbered])
    assert world.open_uploads("w/") == []


def check_one_after_the_other(world: World, jobs: list[Job]) -> None:
    """By the times of the decisions and ends, which conflicting jobs tell apart: one waits."""
    records = {job.job_id: world.record(job.directory) for job in jobs}
    for job in jobs:
        assert records[job.job_id].state.value == world.result(job.directory).outcome.value
        assert claims_left(world.ledger, records[job.job_id]) == []
    committed = [job for job in jobs if records[job.job_id].state.value == Outcome.COMMITTED.value]
    for one, other in itertools.combinations(committed, 2):
        if one.conflicts_with(other):
            first, second = sorted(
                (records[one.job_id], records[other.job_id]),
                key=lambda record: record.decided_at or "",
            )
            assert (first.finished_at or "") <= (second.decided_at or "")
    assert sum(1 for job in committed if job.kind.key) == 1
    visible: set[str] = set()
    for job in sorted(committed, key=lambda job: records[job.job_id].decided_at or ""):
        minded = {key for key in visible if key.rpartition("/")[0] + "/" in job.kind.touches}
        if job.kind.conflict is Conflict.REPLACE:
            visible -= minded
        assert not (job.kind.conflict is Conflict.FAIL and minded)
        visible |= job.keys
    assert set(world.visible("w/")) == visible
    assert len(committed) > len(jobs) // 2
