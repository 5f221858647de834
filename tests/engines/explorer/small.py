"""The small world's rules, and one state of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from s3commit.core.formats.ticket import Ticket, Unit, UnitResult
from s3commit.core.model.job import Conflict, Destination, JobSpec, Scope

BUCKET = "lake"
PREFIX = "sales/"
OLD = f"{PREFIX}old.parquet"


@dataclass(frozen=True)
class Rules:
    """What may happen in the small world; the bounds that keep it finite."""

    jobs: tuple[JobSpec, ...]
    executions: tuple[int, ...]  # of each job
    zombies: bool = True
    losses: int = 0  # uploads of the first job that may be lost
    by_call: bool = False
    old: bool = True  # whether there is a file of before
    before: tuple[JobSpec, ...] = ()  # jobs that are committed already, and replaced that file
    apart: float = 0  # seconds between the requests; nobody is known to be alive


@dataclass(frozen=True, slots=True)
class Execution:
    """Where an execution stands; ``answers`` are those of the step that it is in the middle of."""

    job: int
    name: str
    step: str
    ticket: Ticket
    results: tuple[UnitResult, ...] = ()
    planned: tuple[Unit, ...] | None = None  # the Map's units, as it read them
    unit: Unit | None = None
    answers: tuple[Any, ...] = ()
    told: str = ""  # digest of the answers
    failures: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """S3, the ledger and the executions. Dictionaries here are never changed in place."""

    objects: dict[str, list[Any]]
    uploads: dict[str, Any]
    completed: dict[str, Any]
    records: dict[str, Any]
    beside: tuple[dict[Any, Any], ...]  # locks, keys, appends and turns
    executions: tuple[Execution, ...]
    to_finish: frozenset[tuple[int, str]]
    losses: int
    path: tuple[Any, ...] = field(default=(), compare=False)  # linked list of what was done


def spec(number: int, conflict: Conflict = Conflict.APPEND, **more: Any) -> JobSpec:
    """A job of the small world, by its number."""
    job_id = f"0000000{number}-0000-4000-8000-00000000000{number}"
    return JobSpec(
        job_id, Destination(BUCKET, PREFIX), conflict=conflict, scope=Scope.DIRECTORY, **more
    )


def undo(number: int) -> JobSpec:
    """An undo of the first job."""
    return spec(number, Conflict.REPLACE, undoes=spec(1).job_id)


def own_files(job: JobSpec) -> dict[str, str]:
    """What its tasks write, each by its name; an undo brings one file back."""
    tasks = ("t0",) if job.undoes else ("t0", "t1")
    return {task: f"{PREFIX}part-{task}-{job.job_id}.parquet" for task in tasks}


def way_there(state: State) -> list[str]:
    """What was done, in order."""
    found = []
    path = state.path
    while path:
        path, label = path
        found.append(label)
    return found[::-1]
