"""Data of before, and jobs that append, fail or replace beside it."""

from collections.abc import Iterable

from s3commit.core.formats.layout import PIPELINE, JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.faults import Call

# Data of before, by where it lies.
ROOT = "sales/old.parquet"
ONE = "sales/dt=1/old.parquet"
ONE_DEEP = "sales/dt=1/hour=7/old.parquet"
TWO = "sales/dt=2/old.parquet"
TEN = "sales/dt=10/old.parquet"
UNDERSCORED = "sales/_dt=1/old.parquet"  # a partition whose column begins with _
DATA = [ROOT, ONE, ONE_DEEP, TWO, TEN, UNDERSCORED]

DT1, DT2, AT_ROOT = f"dt=1/part-0-{JOB}.parquet", f"dt=2/part-0-{JOB}.parquet", f"p-{JOB}.parquet"


def is_removal(call: Call) -> bool:
    """Whether data is deleted, and not what the job's work has left behind."""
    if call.verb != "delete_seen":
        return False
    return any(
        "/__magic_job-" not in seen.key and not seen.key.startswith(PIPELINE)
        for seen in call.arguments["objects"]
    )


def fill(world: World, keys: Iterable[str]) -> None:
    for key in keys:
        world.store.put(BUCKET, key, f"before: {key}".encode())


def start(world: World, conflict: Conflict, scope: Scope, names: Iterable[str]) -> JobDirectory:
    """A job that is asked for: a task a file."""
    directory = job_directory()
    world.open(directory, conflict=conflict, scope=scope)
    counted = [
        world.attempt(directory, f"t{number}", files={name: f"new: {name}".encode()})
        for number, name in enumerate(names)
    ]
    world.request(directory, *counted)
    return directory


def new(*names: str) -> set[str]:
    return {f"sales/{name}" for name in names}
