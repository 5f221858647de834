"""The sweep over open uploads: those of ended jobs go (I4), all others stay (I5)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from s3commit.core.ownership import open_uploads
from s3commit.core.sweep.steps import STEPS
from s3commit.core.sweep.sweep import DAY, HOUR, Sweep
from tests.core.swept import LIMITS, Swept, TimedStore, announced, ended
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, job_directory


@pytest.fixture
def world() -> Swept:
    return Swept()


def test_i4_an_upload_of_an_ended_job_is_aborted_and_measured(world: Swept) -> None:
    directory = job_directory()
    ended(world, directory)
    world.upload(directory, f"zombie-{JOB}.parquet", b"12345", task="t9", attempt="a0")
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert (report.uploads, report.upload_bytes) == (1, 5)
    assert world.open_uploads() == []


def test_i5_uploads_that_are_not_provably_ours_stay(world: Swept) -> None:
    ended(world, job_directory())
    ended(world, job_directory("0b6f6f0e-0000-4000-8000-000000000009", "managed/"))
    live = job_directory(OTHER_JOB)
    announced(world, live)
    keys = [
        f"managed/part-00000-{JOB}.parquet",  # of a job that is at work elsewhere
        "sales/theirs.parquet",
        f"sales/part-00000-{NEIGHBOUR}-c000.snappy.parquet",  # a write of Spark's own
        f"elsewhere/part-00000-{NEIGHBOUR}.parquet",  # where no job has ever been
        f"salesman/part-00000-{JOB}.parquet",  # not below the job's destination
    ]
    for key in keys:
        world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    world.limits = replace(LIMITS, abandoned=100 * DAY)
    world.later(60 * DAY)
    assert world.sweep().uploads == 0
    assert world.open_uploads() == sorted([*keys, f"sales/part-t0-{OTHER_JOB}.parquet"])


def test_an_upload_of_a_forgotten_job_goes_when_it_is_old_and_silent(world: Swept) -> None:
    ended(world, job_directory())
    stray = job_directory(NEIGHBOUR)
    file = world.upload(stray, f"part-{NEIGHBOUR}.parquet", b"x", task="t", attempt="a")
    world.later(LIMITS.orphaned - HOUR)
    assert world.sweep().uploads == 0
    world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    world.later(2 * HOUR)
    assert world.sweep().uploads == 0
    world.later(LIMITS.orphaned)
    assert world.sweep().uploads == 1


def test_an_upload_of_a_job_that_only_s3_remembers_is_judged_by_its_result(world: Swept) -> None:
    directory = job_directory()
    ended(world, directory)
    world.upload(directory, f"zombie-{JOB}.parquet", b"1", task="t9", attempt="a0")
    world.ledger._jobs.clear()
    world.later(LIMITS.stuck + 1)
    assert world.sweep().uploads == 1


def test_i5_a_result_further_down_does_not_speak_for_a_job_above_it(world: Swept) -> None:
    """After the ledger was lost: a job writes below a directory that was copied there."""
    below = job_directory(prefix="sales/b/")
    ended(world, below)
    live = job_directory()
    world.open(live)
    world.upload(live, f"b/part-{JOB}.parquet", b"x", task="t", attempt="a")
    world.ledger._jobs.clear()
    world.later(LIMITS.stuck + 1)
    assert world.sweep().uploads == 0
    assert world.open_uploads() == [f"sales/b/part-{JOB}.parquet"]


def test_i5_a_file_of_deltas_is_no_jobs(world: Swept) -> None:
    """Its id is of the file, and nobody's here."""
    ended(world, job_directory())
    key = f"sales/part-00000-{NEIGHBOUR}.c000.snappy.parquet"
    world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    world.later(60 * DAY)
    assert (world.sweep().uploads, world.open_uploads()) == (0, [key])


# Any number of them


def crowd(world: Swept, count: int, *, keys: int) -> list[str]:
    """Uploads of an ended job, and as many foreign ones between them."""
    directory = job_directory()
    ended(world, directory)
    foreign = []
    for number in range(count):
        name = f"{number % keys:05d}"
        world.upload(directory, f"{name}-{JOB}.x", b"123", task="t", attempt="a")
        foreign.append(f"sales/{name}.theirs")
        world.store.create_upload(BUCKET, foreign[-1], metadata={}, content_type="")
    world.later(LIMITS.stuck + 1)
    return sorted(foreign)


def test_i4_i5_any_number_of_uploads_is_gone_through_call_by_call(
    world: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_uploads, "MOST_REMEMBERED", 3)
    foreign = crowd(world, 1_250, keys=1_250)
    world.call_items = 100
    report = world.sweep()
    assert (report.uploads, report.upload_bytes, report.foreign) == (1_250, 3_750, 1_250)
    assert world.calls >= 25
    assert world.open_uploads() == foreign
    assert any(f"job {JOB}, ended: 50 open uploads aborted, 150 B" in n for n in report.notes)


@pytest.mark.parametrize("call_items", [1, 3, 5_000])
def test_a_call_may_stop_between_two_uploads_of_one_key(call_items: int) -> None:
    world = Swept(call_items=call_items)
    foreign = crowd(world, 10, keys=1)
    report = world.sweep()
    assert (report.uploads, report.foreign) == (10, 10)
    assert world.open_uploads() == foreign


def test_a_call_that_runs_out_of_time_goes_on_where_it_stopped(world: Swept) -> None:
    """Lambda gives 15 minutes; no upload is asked for twice, and none is left out."""
    crowd(world, 20, keys=20)
    slow = TimedStore(world, seconds=100)
    cursor, calls = "", 0
    while cursor or not calls:
        sweep = Sweep(BUCKET, world.ports, world.executions)
        cursor, calls = STEPS["AbortOrphanedUploads"](sweep, cursor), calls + 1
        assert sweep.report.uploads <= 7
    assert calls == 4
    assert slow.asked == sorted(set(slow.asked))
    assert len(slow.asked) == 20


def test_a_cursor_whose_upload_is_gone_is_gone_on_from(world: Swept) -> None:
    foreign = crowd(world, 3, keys=3)
    (first, *_rest) = world.store.list_uploads(BUCKET, "")
    world.store.abort_upload(BUCKET, first.key, first.upload_id)
    sweep = Sweep(BUCKET, world.ports, world.executions)
    cursor = json.dumps(["", first.key, first.upload_id])
    assert STEPS["AbortOrphanedUploads"](sweep, cursor) == ""
    assert sweep.report.uploads == 2
    assert world.open_uploads() == foreign


# At the locations of partitions, after the ledger was lost (ADR 13)


def lost(world: Swept) -> None:
    world.ledger._jobs.clear()
    world.later(LIMITS.stuck + 1)
