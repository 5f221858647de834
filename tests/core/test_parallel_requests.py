"""What a step asks for each file it asks side by side, and jobs share workers.

A call has 15 minutes, and a hundred thousand requests take half an hour, one after the other: a
step that can't end in one call is begun anew for ever.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from s3commit.aws.parallel import ThreadMap
from s3commit.core.documents import plan
from s3commit.core.documents.commit_manifest import read_commit_manifest
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.rounds import share_workers
from s3commit.core.model.moments import shifted
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, Workers
from tests.contract.ledger_jobs import bring_to
from tests.core.world import JOB, REF, World, job_directory

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


@pytest.mark.parametrize("ending", [".pendingset", ".jsonl"])
def test_the_manifests_and_the_pages_of_a_job(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "PAGE_FILES", 1)
    monkeypatch.setattr(plan, "UNIT_FILES", 1)
    world = written()
    when = (JobState.SEALED, True) if ending == ".pendingset" else (JobState.COMMITTING, False)
    met = meet(
        world,
        "get",
        lambda key: (state(world), bool(world.open_uploads())) == when and key.endswith(ending),
    )
    world.run(job_directory())
    assert len(met) == TOGETHER
    _, listed = read_commit_manifest(world.store, job_directory())
    assert [one.key for one in listed] == [f"sales/part-t{n}-{JOB}.parquet" for n in range(TASKS)]


def test_the_directories_above_a_new_job() -> None:
    world, directory = World(), job_directory(prefix="lake/sales/2026/")
    world.ask(directory)
    here = directory.destination.prefix
    met = meet(world, "list", lambda key: JOB in key and not key.startswith(here))
    world.run(directory)
    assert len(met) == TOGETHER
    assert world.result(directory).outcome is Outcome.COMMITTED


# Jobs at work share the workers of the deployment


HOUR = 3600


@pytest.fixture
def ports() -> Ports:
    return replace(World().ports, workers=Workers(of_all=100, of_one=40))


def share(ports: Ports, *, jobs: int, units: int = 4_000, hours_ago: float = 0) -> int:
    """How many workers a job gets beside so many that were decided so long ago."""
    for number in range(jobs):
        written = shifted(ports.clock.now(), -hours_ago * HOUR)
        bring_to(ports.ledger, JobState.COMMITTING, f"job-{number}", written)
    directory = job_directory()
    ticket = Ticket(directory.job_id, directory.bucket, directory.prefix, units=units)
    return share_workers(ports, replace(ticket, state=JobState.COMMITTING)).workers


@pytest.mark.parametrize(
    ("jobs", "workers"), [(0, 40), (1, 40), (2, 40), (3, 33), (10, 10), (100, 1), (300, 1)]
)
def test_what_jobs_are_given_at_once_is_what_there_is_and_one_at_least(
    ports: Ports, jobs: int, workers: int
) -> None:
    assert share(ports, jobs=jobs) == workers


def test_a_job_gets_no_more_workers_than_it_has_units(ports: Ports) -> None:
    assert share(ports, jobs=3, units=7) == 7
    assert share(ports, jobs=0, units=1) == 1


def test_a_job_whose_execution_is_long_dead_takes_no_share(ports: Ports) -> None:
    assert share(ports, jobs=100, hours_ago=25) == 40


def test_only_a_ticket_that_goes_on_to_the_map_is_shared_for(ports: Ports) -> None:
    directory = job_directory()
    ticket = Ticket(directory.job_id, directory.bucket, directory.prefix, units=2)
    for state in set(JobState) - {JobState.COMMITTING}:
        assert share_workers(ports, replace(ticket, state=state)).workers == 1
    without = replace(ticket, state=JobState.COMMITTING, units=0)
    assert share_workers(ports, without).workers == 1
