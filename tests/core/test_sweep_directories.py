"""The sweep over job directories: what ended jobs and S3A have left there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.locks import LockMode
from s3commit.core.protocol.pipeline import new_record, read_spec
from s3commit.core.protocol.sweep import DAY, HOUR, Sweep
from s3commit.core.protocol.sweep_steps import STEPS
from s3commit.testing.survey import MemorySurvey
from tests.core.swept import LIMITS, Swept, announced, ended
from tests.core.world import BUCKET, JOB, OTHER_JOB, place_of


@pytest.fixture
def world() -> Swept:
    return Swept()


def test_working_objects_of_an_ended_job_are_tidied_up(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    world.attempt(place, "t9", "zombie")  # its event is lost
    assert world.sweep().tidied == 0  # it may be on its way
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert (report.tidied, report.objects) == (1, 1)
    assert world.all_keys(place.prefix) == [place.job, place.request, place.result]
    assert world.open_uploads() == []


def test_documents_go_when_the_retention_is_over_and_commits_stay(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    lock = world.ledger.lock(world.record(place).locks[0])  # taken by a late waker that died
    assert world.ledger.put_lock(replace(lock, holders={JOB: LockMode.SHARED}))
    world.later(LIMITS.retention - HOUR)
    assert world.sweep().retired == 0
    world.later(2 * HOUR)
    assert world.sweep().retired == 1
    assert world.all_keys(place.prefix) == []
    assert world.ledger.lock(lock.node).empty
    assert world.store.head(BUCKET, place.commits) is not None
    assert set(world.visible()) == {f"sales/part-t0-{JOB}.parquet"}
    assert world.sweep().retired == 0


def test_a_copied_directory_is_no_job_and_is_left_alone(world: Swept) -> None:
    announced(world, place_of())
    copy = place_of(prefix="copy/")
    announced(world, place_of(OTHER_JOB, "copy/"))
    body = world.store.get(BUCKET, place_of().job, max_bytes=10_000).body
    world.store.put(BUCKET, copy.job, body)
    world.later(LIMITS.abandoned - HOUR)
    world.limits = replace(LIMITS, abandoned=HOUR)
    world.attempt(place_of(), "t2")
    world.attempt(place_of(OTHER_JOB, "copy/"), "t2")
    assert world.sweep().asked == 0
    assert world.all_keys(copy.prefix) == [copy.job]


def test_a_ledger_full_of_ended_jobs_is_not_read_in_each_call(world: Swept) -> None:
    """Those that ended long ago, and are not due, are not asked for."""
    ended(world, place_of())
    world.later(10 * DAY)
    survey = MemorySurvey(world.store)
    plan = world.plan
    plan.forget_calls()
    sweep = Sweep(BUCKET, world.pipeline, plan.wrap(survey), world.executions)
    assert STEPS["TidyJobDirectories"](sweep, "") == ""
    assert set(plan.counts()) == {"jobs_in"}


def test_i5_a_job_of_s3a_is_never_aborted_without_a_request(world: Swept) -> None:
    place = place_of()
    key = f"{place.s3a}00/task_202611220232_0000_m_000000.pendingset"
    world.store.put(BUCKET, key, b"{}")
    record = new_record(read_spec(world.pipeline, place), place, world.clock.now())
    world.ledger.open_job(record)
    world.later(LIMITS.abandoned - HOUR)
    assert world.sweep().s3a == 0
    world.later(10 * DAY)
    report = world.sweep()
    assert (report.asked, report.started, report.forgotten, report.s3a) == (0, 0, 0, 1)
    assert "left behind by S3A" in report.notes[0]
    world.store.delete(BUCKET, key)  # its own committer is through
    assert world.sweep().forgotten == 1
    assert world.ledger.job(JOB) is None
