"""A sweep's memory and time: bounded by size, and for each question by itself (I12)."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from s3commit.core.jobs.listings import random_key
from s3commit.core.model.destination import Destination
from s3commit.core.model.limits import CALL_SECONDS
from s3commit.core.model.moments import shifted
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.sweep.questions import QUESTIONS
from s3commit.core.sweep.sweep import Question, Sweep
from tests.core.swept import LIMITS, Swept, announced
from tests.core.world import BUCKET, OTHER_JOB, job_directory
from tests.fakes.ledger import MemoryLedger

MANY = 100


def small(number: int, state: JobState, updated_at: str) -> JobRecord:
    job_id = f"{number:08d}-0000-4000-8000-000000000000"
    return JobRecord(job_id, Destination(BUCKET, "sales/"), state, 0, "", updated_at)


def large(number: int, state: JobState, updated_at: str) -> JobRecord:
    """As large as a client may make one, and no text of it is another record's."""
    column = "\U00010000" * 240
    return replace(
        small(number, state, updated_at),
        partition_by=tuple(f"{number}{column}{column_number}" for column_number in range(100)),
        locks=tuple(f"{number}/{column}/{node}" for node in range(90)),
    )


class Crowded(MemoryLedger):
    """Each state has many large records, which are made as they are listed, as by a decoder."""

    def jobs_in(
        self, state: JobState, *, before: str, since: str = "", latest_first: bool = False
    ) -> Iterator[JobRecord]:
        return (large(number, state, shifted(before, -1)) for number in range(MANY))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_i12_what_a_question_holds_is_bounded_whatever_clients_write(question: Question) -> None:
    world = Swept()
    world.ports = replace(world.ports, ledger=Crowded())
    sweep = Sweep(world.ports, world.executions, LIMITS)
    tracemalloc.start()
    held = list(question(sweep))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held
    states = len(JobState) if question.__name__ == "known_destinations" else len(ENDED)
    assert peak < 3_000 * MANY * 2 * states  # two listings; one record alone has 150,000 bytes


class Slow(MemoryLedger):
    """To list each job of one state takes a while."""

    def __init__(self, world: Swept, slow: JobState) -> None:
        super().__init__(world.clock)
        self.world, self.slow = world, slow
        self.listed: Counter[JobState] = Counter()

    def jobs_in(
        self, state: JobState, *, before: str, since: str = "", latest_first: bool = False
    ) -> Iterator[JobRecord]:
        for record in super().jobs_in(state, before=before, since=since):
            if state is self.slow:
                self.world.later(CALL_SECONDS / 10)
            self.listed[state] += 1
            yield record


def test_i12_a_question_that_is_listed_slowly_takes_no_time_from_the_others() -> None:
    """Listing has half of its time: the rest is for those that were listed."""
    world = Swept()
    world.ledger = Slow(world, JobState.SEALED)
    world.ports = world.unplanned
    announced(world, job_directory(OTHER_JOB))
    moment = world.clock.now()
    for number in range(50):
        world.ledger.open_job(small(number, JobState.SEALED, moment))
    world.later(LIMITS.abandoned + 3600)
    report = world.sweep()
    assert 0 < report.started < 10
    assert report.aborted == 1


def test_i12_a_listing_that_is_cut_short_begins_elsewhere_in_each_sweep() -> None:
    world, seen = Swept(), set[str]()
    for number in range(100):
        at = shifted(world.clock.now(), -600 * number)
        world.ledger.open_job(small(number, JobState.OPEN, at))
    for _ in range(100):
        world.later(60)
        sweep = Sweep(world.ports, world.executions, LIMITS)
        sweep.list_until = shifted(sweep.now, 0.007)  # a few readings of the clock
        seen |= {record.job_id for record in sweep.jobs_in(JobState.OPEN, before=sweep.now)}
    assert len(seen) > 50


def test_i12_a_random_key_is_found_on_each_way_of_a_fork_whatever_lies_there() -> None:
    world = Swept()
    many = [f"data/tenant-a/{number:03d}" for number in range(300)]
    for key in (*many, "data/tenant-b/x", "data/tenant-b/y", "data/z"):
        world.store.create_upload(BUCKET, key, metadata={}, content_type="")

    def listing(prefix: str, *, after: str = "") -> Iterator[object]:
        return world.store.list_uploads(BUCKET, prefix, after=after)

    found = Counter(random_key(listing, "data/", lot)[:13] for lot in range(120))  # type: ignore
    assert found["data/z"] == 60
    assert found["data/tenant-a"] == found["data/tenant-b"] == 30
    assert random_key(listing, "nothing/", 7) == "nothing/"  # type: ignore
