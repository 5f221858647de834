"""What the jobs of a run want, all drawn from its seed before anything begins."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from s3commit.core.model.job import Conflict, Scope

ROOT = "lake/"
JOBS_A_TABLE = 4  # those that replace go one after the other, five seconds apart

A, F, R = Conflict.APPEND, Conflict.FAIL, Conflict.REPLACE
D, P = Scope.DIRECTORY, Scope.PARTITION


class Kind(StrEnum):
    """What is special about a job."""

    PLAIN = "plain"
    KEYED = "keyed"  # one of several with one idempotency key
    CONDITION = "condition"  # that it does not meet
    ABORT = "abort"
    SABOTAGED = "sabotaged"  # a saboteur aborts one of its uploads right after its decision


class Death(StrEnum):
    """When a client dies."""

    NEVER = "never"
    OPENED = "after job.json"
    WRITING = "in a task"
    WRITTEN = "before its request"
    ASKED = "after its request"


class Extra(StrEnum):
    """What becomes of a task's other attempt."""

    NONE = "none"
    LOSES = "finishes first, and is not counted"
    KILLED = "is killed while it writes"
    LATE = "finishes when the job has ended"


@dataclass(frozen=True)
class TaskPlan:
    """A task writes a file into each of its partitions."""

    task_id: str
    partitions: tuple[str, ...]
    extra: Extra


@dataclass(frozen=True)
class Plan:
    """One client's program. ``start`` is in shares of the time in which jobs begin."""

    number: int
    prefix: str
    kind: Kind
    conflict: Conflict
    scope: Scope
    death: Death
    start: float
    tasks: tuple[TaskPlan, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How a trace calls the job."""
        return f"job{self.number:03}"

    @property
    def policy(self) -> str:
        """For people."""
        return f"{self.kind} {self.conflict}/{self.scope}, client dies {self.death}"


KINDS = {
    Kind.PLAIN: 64,
    Kind.KEYED: 12,
    Kind.CONDITION: 4,
    Kind.ABORT: 8,
    Kind.SABOTAGED: 12,
}
DEATHS = {
    Death.NEVER: 76,
    Death.OPENED: 4,
    Death.WRITING: 6,
    Death.WRITTEN: 6,
    Death.ASKED: 8,
}


def draw(seed: int, jobs: int) -> list[Plan]:
    """The plans of a run, the same for the same seed and number."""
    random = Random(f"plans {seed}")
    tables = [f"{ROOT}t{number}/" for number in range(1, max(2, jobs // JOBS_A_TABLE) + 1)]
    return [_plan(random, number, tables) for number in range(jobs)]


def new_id(random: Random) -> str:
    """A UUID of the seed's."""
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


def _plan(random: Random, number: int, tables: list[str]) -> Plan:
    kind = _weighted(random, KINDS)
    prefix, below, conflict, scope, options = _wish(random, kind, tables)
    death = _weighted(random, DEATHS)
    start = random.random()
    tasks = _tasks(random, below, kind)
    return Plan(number, prefix, kind, conflict, scope, death, start, tasks, options)


def _wish(
    random: Random, kind: Kind, tables: list[str]
) -> tuple[str, str, Conflict, Scope, dict[str, Any]]:
    """Where, what its partitions are called there, and by which policy."""
    conflict = _weighted(random, {A: 50, R: 38, F: 12})
    scope = _weighted(random, {P: 60, D: 40})
    prefix, below = random.choice(tables), "dt"
    if random.random() < 0.25:  # a destination in another's
        prefix, below = f"{prefix}dt={random.randint(1, 4)}/", "h"
    if kind is Kind.KEYED:
        conflict = _weighted(random, {A: 80, R: 20})
        key = f"day {random.randint(1, 3)}"
        return f"{ROOT}keyed/", "dt", conflict, D, {"idempotency_key": key}
    if kind is Kind.SABOTAGED:  # a loss after the decision takes one that gets there
        conflict = _weighted(random, {A: 60, R: 40})
    if kind is Kind.CONDITION:
        return prefix, below, conflict, scope, {"conditions": {"minFiles": 1000}}
    return prefix, below, conflict, scope, {}


def _tasks(random: Random, below: str, kind: Kind) -> tuple[TaskPlan, ...]:
    tasks = []
    for number in range(2 if kind is Kind.SABOTAGED else random.randint(1, 2)):
        chosen = sorted(random.sample(range(1, 6), random.randint(1, 2)))
        extra = _weighted(random, {Extra.NONE: 70, Extra.LOSES: 12, Extra.KILLED: 9, Extra.LATE: 9})
        tasks.append(TaskPlan(str(number), tuple(f"{below}={one}/" for one in chosen), extra))
    return tuple(tasks)


def _weighted(random: Random, weights: dict[Any, int]) -> Any:
    return random.choices(list(weights), list(weights.values()))[0]
