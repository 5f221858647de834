"""What there is in a run: strangers' files and uploads, and one to three jobs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from s3commit.core.documents.job_json import Conditions, JobSpec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Destination, Scope
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.model import Job
from tests.engines.sim.scheduler import moment
from tests.engines.sim.troubles import add_troubles

if TYPE_CHECKING:
    from tests.engines.sim.world import World

NAMES = "ABCDEFGHIJKLMNOP"
NESTED = "sales/dt=1/"  # the place of a job that has the id of one further up
STRANGER = "99999999-0000-4000-8000-000000000099"


def furnish(world: World) -> None:
    """Files, markers and uploads of others, from before: by more than S3's clocks differ (A7)."""
    rng = world.rng
    for key in ("sales/old.parquet", "sales/dt=1/old.parquet", "sales/dt=2/old.parquet"):
        if rng.random() < 0.35:
            _foreign(world, key)
    if rng.random() < 0.3:
        _foreign(world, "sales/part-t0-0.parquet")
    for key in ("sales/_hidden/keep", "sales/.keep", "sales2/theirs.parquet"):
        _foreign(world, key)
    if rng.random() < 0.3:
        world.store.put(BUCKET, "sales/_SUCCESS", b"")
    # Some names are like those of a job's files.
    for key in ("sales2/theirs", f"sales/part-0-{STRANGER}-c000.parquet", "sales/upload.bin",
                f"salesroom/part-0-{STRANGER}.parquet",
                f"sales/dt=1/part-0-{STRANGER}.parquet"):  # fmt: skip
        world.foreign_uploads.add(_upload(world, key))


def _foreign(world: World, key: str) -> None:
    world.foreign[key] = f"foreign {key}".encode()
    world.store.put(BUCKET, key, world.foreign[key])


def _upload(world: World, key: str) -> str:
    upload_id = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    world.bucket.uploads[upload_id].initiated = moment(-60)
    etag = world.store.upload_part(BUCKET, key, upload_id, 1, b"theirs")
    world.clients.prey.append((key, upload_id, etag))
    return upload_id


def add_job(
    world: World, prefix: str = "", *, key: str | None = None, outer: Job | None = None
) -> None:
    """A job of any kind, at ``prefix`` or anywhere, and what happens to it.

    It has the id of the ``outer`` one, if there is one: then it is nested.
    """
    rng, used = world.rng, {job.name for job in world.observer.everyone}
    number = len(used.intersection(NAMES))
    name = NAMES[number]
    kind = rng.random()
    anywhere = rng.choice(["sales/"] * 6 + ["sales/dt=1/", "sales2/"])
    is_free, prefix = not prefix, prefix or anywhere
    job_id = f"{number + 1:08d}-0000-4000-8000-{number + 1:012d}"
    twins = [job for job in world.observer.jobs.values() if job.prefix == "twin/"]
    if is_free and number and kind < 0.06 and not twins:
        prefix, job_id = "twin/", world.observer.jobs["A"].directory.job_id
    elif is_free and number and kind < 0.1 and may_hold(world, world.observer.jobs["A"]):
        outer = world.observer.jobs["A"]
    if outer:
        prefix, job_id = NESTED, outer.directory.job_id
    directory = JobDirectory(Destination(BUCKET, prefix), job_id)
    spec = draw_spec(rng, directory)
    job = Job(name, directory, replace(spec, idempotency_key=key or spec.idempotency_key))
    job.outer = outer.name if outer else ""
    job.hostile = rng.random() < 0.3 and prefix == "sales/dt=1/"
    world.observer.jobs[name] = job
    tasks = [
        file_names(rng, directory, f"t{task}", least=job.hostile)
        for task in range(rng.choice([1, 1, 2, 2, 3]))
    ]
    gives_up = rng.random() < 0.08
    dies = rng.random() < 0.04
    driver = partial(world.clients.driver, job, tasks, gives_up=gives_up, dies=dies)
    world.later(
        f"{name}:driver",
        partial(_behind, world, outer, driver) if outer else driver,
        role="driver",
        job=name,
        most=rng.choice([0.0, 0.0, 60.0, 1000.0]),
    )
    if rng.random() < 0.1:
        # Older than the job, and made to look like its own: it is not, whatever is undone (I12).
        _foreign(world, f"{prefix}part-t9-0-{job_id}.parquet")
    add_troubles(world, job)


def may_hold(world: World, outer: Job) -> bool:
    """Whether another job with its id can lie inside; one of a run does."""
    jobs = [one for one in world.observer.everyone if one is not outer]  # an intruder too
    shared = any(one.directory.job_id == outer.directory.job_id for one in jobs)
    return outer.prefix == "sales/" and not shared and not any(job.nested for job in jobs)


def _behind(world: World, outer: Job, driver: Callable[[], None]) -> None:
    """An id is known once its directory is there: a nested job comes after that."""
    for _ in range(100):
        if world.bucket.current(outer.directory.job) is not None:
            driver()
            return
        world.scheduler.sleep(20)


def draw_spec(rng: random.Random, directory: JobDirectory) -> JobSpec:
    return JobSpec(
        directory.job_id,
        directory.destination,
        conflict=rng.choice([Conflict.APPEND] * 3 + [Conflict.REPLACE] * 3 + [Conflict.FAIL]),
        scope=rng.choice(list(Scope)),
        idempotency_key="daily" if rng.random() < 0.3 else None,
        conditions=Conditions(min_files=rng.choice([1, 2])) if rng.random() < 0.1 else Conditions(),
    )


def file_names(
    rng: random.Random, directory: JobDirectory, task: str, *, least: int = 0
) -> list[str]:
    """Where a task writes, below the destination."""
    is_partition = directory.destination.prefix.endswith("/dt=1/")
    partitions = [""] if is_partition else ["", "dt=1/", "dt=2/", "dt=1/h=3/"]
    count = rng.choice([0, 1, 1, 1, 2, 2]) or least
    suffix = f"-{directory.job_id}.parquet"
    return [f"{rng.choice(partitions)}part-{task}-{n}{suffix}" for n in range(count)]
