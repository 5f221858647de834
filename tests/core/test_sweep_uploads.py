"""The sweep over open uploads: those of ended jobs go (I4), all others stay (I5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.protocol.sweep import DAY, HOUR
from tests.core.swept import LIMITS, Swept, announced, ended
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, place_of


@pytest.fixture
def world() -> Swept:
    return Swept()


def test_i4_an_upload_of_an_ended_job_is_aborted_and_measured(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    world.upload(place, f"zombie-{JOB}.parquet", b"12345", task="t9", attempt="a0")
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert (report.uploads, report.upload_bytes) == (1, 5)
    assert world.open_uploads() == []


def test_i5_uploads_that_are_not_provably_ours_stay(world: Swept) -> None:
    ended(world, place_of())
    ended(world, place_of("0b6f6f0e-0000-4000-8000-000000000009", "managed/"))
    live = place_of(OTHER_JOB)
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
    ended(world, place_of())
    stray = place_of(NEIGHBOUR)
    file = world.upload(stray, f"part-{NEIGHBOUR}.parquet", b"x", task="t", attempt="a")
    world.later(LIMITS.orphaned - HOUR)
    assert world.sweep().uploads == 0
    world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    world.later(2 * HOUR)
    assert world.sweep().uploads == 0
    world.later(LIMITS.orphaned)
    assert world.sweep().uploads == 1


def test_an_upload_of_a_job_that_only_s3_remembers_is_judged_by_its_result(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    world.upload(place, f"zombie-{JOB}.parquet", b"1", task="t9", attempt="a0")
    world.ledger._jobs.clear()
    world.later(LIMITS.stuck + 1)
    assert world.sweep().uploads == 1


def test_i5_a_result_further_down_does_not_speak_for_a_job_above_it(world: Swept) -> None:
    """After the ledger was lost: a job writes below a directory that was copied there."""
    below = place_of(prefix="sales/b/")
    ended(world, below)
    live = place_of()
    world.open(live)
    world.upload(live, f"b/part-{JOB}.parquet", b"x", task="t", attempt="a")
    world.ledger._jobs.clear()
    world.later(LIMITS.stuck + 1)
    assert world.sweep().uploads == 0
    assert world.open_uploads() == [f"sales/b/part-{JOB}.parquet"]
