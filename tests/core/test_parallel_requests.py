"""What a step asks for each file or manifest it asks side by side: a call has 15 minutes.

A hundred thousand requests take half an hour, one after the other, and a step that can't end in one
call is begun anew for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from s3commit.aws.parallel import ThreadMap
from s3commit.core.job import plan
from s3commit.core.model.job import Outcome
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, REF, World, job_directory

TASKS = 8
TOGETHER = 4
PATIENCE = 10  # seconds until the others don't come


def written() -> World:
    world = World()
    world.ask(job_directory(), *(f"t{number}" for number in range(TASKS)))
    return world


def meet(world: World, verb: str, where: Callable[[str], bool]) -> list[int]:
    """Have the first calls wait until `TOGETHER` of them are under way; who has met."""
    met: list[int] = []
    barrier = threading.Barrier(TOGETHER)
    world.plan.run_before(
        verb,
        lambda: met.append(barrier.wait(PATIENCE)),
        times=TOGETHER,
        where=lambda call: where(call.key),
    )
    world.ports = replace(world.ports, parallel=ThreadMap(TOGETHER + 3))
    return met


def state(world: World) -> JobState | None:
    record = world.ledger.job(REF)
    return record.state if record else None


@pytest.mark.parametrize("verb", ["head", "delete"])
def test_the_files_of_a_roll_back(verb: str) -> None:
    world = written()
    world.lose_after_decision("sales/part-t7", slice(1))
    met = meet(world, verb, lambda key: state(world) is JobState.ROLLING_BACK and "parquet" in key)
    world.run(job_directory())
    assert len(met) == TOGETHER
    assert world.result(job_directory()).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


@pytest.mark.parametrize(("ending", "when"), [(".pendingset", "SEALED"), (".jsonl", "PUBLISHING")])
def test_the_manifests_and_the_pages_of_a_job(
    ending: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PAGE_FILES", 1)
    monkeypatch.setattr(plan, "UNIT_FILES", 1)
    world = written()
    met = meet(world, "get", lambda key: state(world) == when and key.endswith(ending))
    world.run(job_directory())
    assert len(met) == TOGETHER
    lines = world.store.get(BUCKET, job_directory().commits, max_bytes=10**6).body.splitlines()
    assert [f"part-t{number}" in line.decode() for number, line in enumerate(lines[1:])] == [
        True
    ] * TASKS


def test_the_directories_above_a_new_job() -> None:
    world, directory = World(), job_directory(prefix="lake/sales/2026/")
    world.ask(directory)
    here = directory.destination.prefix
    met = meet(world, "list", lambda key: JOB in key and not key.startswith(here))
    world.run(directory)
    assert len(met) == TOGETHER
    assert world.result(directory).outcome is Outcome.COMMITTED
