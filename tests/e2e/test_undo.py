"""Appends, overwrites and undos on the deployed pipeline, while workers of its functions die."""

import json
import os
import random
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import s3commit
from s3commit import JobFailedError, JobRefusedError, Mode, OverwriteMode
from s3commit.core.formats.layout import is_data
from tests.cli.support import run
from tests.e2e.conftest import Deployed

PARTITIONS = ("dt=1/", "dt=2/")
MODES: list[Mode] = ["append", "append", "overwrite"]
OVERWRITES: list[OverwriteMode] = ["static", "dynamic"]


def children(pid: int) -> list[int]:
    """The worker processes of the runtime, by /proc: some may be gone by now."""
    found = []
    for one in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = one.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(one.parent.name))
    return found


@contextmanager
def a_worker_dies(pid: int, rng: random.Random) -> Iterator[None]:
    """Some time after the begin, whatever it does. One: a step is tried again only so often."""

    def kill() -> None:
        if found := children(pid):
            with suppress(ProcessLookupError):
                os.kill(rng.choice(found), signal.SIGKILL)

    timer = threading.Timer(rng.uniform(0, 2), kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def write(
    table: str, rng: random.Random, mode: Mode, over: OverwriteMode
) -> tuple[str, set[bytes]]:
    rows = set()
    with s3commit.open_job(
        table, mode=mode, partition_by="dt", partition_overwrite_mode=over, commit_timeout=300
    ) as job:
        with job.task("0") as task:
            for partition in rng.sample(PARTITIONS, rng.randint(1, 2)):
                with task.open(f"{partition}part-0.csv", rows=1) as file:
                    body = f"{partition} {uuid.uuid4()}".encode()
                    file.write(body)
                rows.add(body)
        result = job.commit([task.counted])
    assert result.rows == len(rows)
    return job.job_id, rows


@pytest.mark.parametrize("rounds", [12, pytest.param(200, marks=pytest.mark.long)])
def test_i2_i6_the_jobs_that_stand_are_there(environment: Deployed, rounds: int) -> None:
    s3, bucket, prefix = environment.client("s3"), environment.bucket, f"e2e/undo-{rounds}/"
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    table, rng = f"s3://{bucket}/{prefix}", random.Random(rounds)
    jobs: list[tuple[str, Mode, OverwriteMode, set[bytes]]] = []
    undone: dict[str, str] = {}

    def stands(job_id: str) -> bool:
        return job_id not in undone or not stands(undone[job_id])

    def replayed() -> set[bytes]:
        found: set[bytes] = set()
        for job_id, mode, over, rows in jobs:
            if stands(job_id):
                written = tuple(body[:5] for body in rows) if over == "dynamic" else b""
                if mode == "overwrite":
                    found = {body for body in found if not body.startswith(written)}
                found |= rows
        return found

    def visible() -> set[bytes]:
        listed = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [one["Key"] for page in listed for one in page.get("Contents", ())]
        data = [key for key in keys if is_data(key[len(prefix) :])]
        return {s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in data}

    for number in range(rounds):
        with a_worker_dies(environment.pid, rng):
            if number < 2 or rng.random() < 0.6:
                mode, over = rng.choice(MODES), rng.choice(OVERWRITES)
                job_id, rows = write(table, rng, mode, over)
                jobs.append((job_id, mode, over, rows))
                continue
            job_id = rng.choice([*(one for one, *_ in jobs[-3:]), *list(undone.values())[-1:]])
            with suppress(JobRefusedError, JobFailedError):
                undone[job_id] = s3commit.undo(table, job_id).job_id
            assert visible() == replayed(), number
    assert visible() == replayed()
    assert undone
    assert json.loads(run("fsck", table, "--output", "json").stdout)["sound"]
