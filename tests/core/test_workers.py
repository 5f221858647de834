"""Jobs at work share the workers of the deployment."""

from dataclasses import replace

import pytest

from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.rounds import share_workers
from s3commit.core.model.moments import shifted
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, Workers
from tests.contract.ledger_jobs import bring_to
from tests.core.world import World, job_directory

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
