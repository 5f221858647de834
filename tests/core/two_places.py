"""A job with files at its destination and at one location."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from s3commit.core.model.job import (
    CountedAttempt,
)
from tests.core.world import BUCKET, JOB, World, job_directory

MAIN = job_directory()
PREFIX = "archive/2026/dt1/"
THERE = MAIN.at(PREFIX)
LOCATIONS = {"dt=1/": PREFIX}
HERE_FILE = f"sales/dt=2/part-t0-{JOB}.parquet"
THERE_FILE = f"{PREFIX}part-t0-{JOB}.parquet"
OLD_HERE, OLD_THERE = "sales/dt=2/old.parquet", f"{PREFIX}old.parquet"
OLD = {OLD_HERE: b"old", OLD_THERE: b"old"}


def here(world: World, attempt: str = "a0", task: str = "t0") -> CountedAttempt:
    name = f"dt=2/part-{task}-{JOB}.parquet"
    return world.attempt(MAIN, task, attempt, files={name: b"here"})


def there(world: World, attempt: str = "a0", task: str = "t0") -> CountedAttempt:
    name = f"part-{task}-{JOB}.parquet"
    counted = world.attempt(THERE, task, attempt, files={name: b"there"})
    return replace(counted, location=PREFIX)


def asked(world: World, **spec: Any) -> None:
    """A job of one task with a file at the destination and one at the location."""
    world.open(MAIN, locations=LOCATIONS, **spec)
    world.request(MAIN, here(world), there(world))


def data(world: World) -> dict[str, bytes]:
    return {**world.visible("sales/"), **world.visible("archive/")}


def code(world: World) -> str:
    error = world.result(MAIN).error
    return error.code if error else ""


def put_old(world: World) -> None:
    for key, body in OLD.items():
        world.store.put(BUCKET, key, body)
