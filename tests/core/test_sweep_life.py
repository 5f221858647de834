"""Jobs that nobody writes any more: which are given up, and which only look so (I5)."""

from __future__ import annotations

import pytest

from s3commit.core.documents import decode_request, encode_location
from s3commit.core.model import AbortRequest, Names, Outcome, PendingSet
from s3commit.core.protocol.pipeline import read_spec
from s3commit.core.protocol.sweep import HOUR
from tests.core.swept import LIMITS, Swept, announced
from tests.core.world import BUCKET, JOB, OTHER_JOB, place_of


@pytest.fixture
def world() -> Swept:
    return Swept()


def test_an_abandoned_job_is_aborted_by_the_request_a_driver_would_write(world: Swept) -> None:
    place = place_of()
    announced(world, place)
    world.later(LIMITS.abandoned + 1)
    report = world.sweep()
    assert (report.asked, report.started) == (1, 0)
    stored = world.store.get(BUCKET, place.request, max_bytes=1000)
    request = decode_request(stored.body, place)
    assert isinstance(request, AbortRequest)
    assert request.abandoned
    world.later(LIMITS.stuck + 1)
    world.sweep()  # its event was lost
    world.settle()
    result = world.result(place)
    assert result.outcome is Outcome.ABORTED
    assert result.error is not None
    assert result.error.code == "ABANDONED"
    assert "no sign of life since 2026-11-21T22:00:00.0" in result.error.message
    assert "for 24 hours" in result.error.message
    assert "run it again" in result.error.message
    assert "raise abandonedHours" in result.error.message
    assert world.open_uploads() == []


def test_a_driver_that_was_faster_keeps_its_word(world: Swept) -> None:
    place = place_of()
    world.open(place)
    attempt = world.attempt(place, "t0")
    world.announce(place, attempt)
    world.later(LIMITS.abandoned + 1)
    world.plan.run_before("put", lambda: world.request(place, attempt))
    assert world.sweep().failed == 0
    world.run(place)
    assert world.result(place).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("sign", ["job", "manifest", "begun", "part", "exact part"])
def test_i5_a_slow_job_that_shows_a_sign_of_life_is_never_touched(world: Swept, sign: str) -> None:
    place = place_of()
    names = Names.EXACT if sign == "exact part" else Names.UNIQUE
    announced(world, place, names=names)
    file = world.upload(place, f"slow-{JOB}.parquet", b"x", task="t1", attempt="a0")
    exact = world.attempt(place, "t2", files={"slow.csv": b"x"}) if "exact" in sign else None
    if sign != "job":
        world.later(LIMITS.abandoned + HOUR)
    if sign == "manifest":
        world.store.put(BUCKET, place.manifest("t3", "a0"), b"{}")
    elif sign == "begun":
        world.store.create_upload(BUCKET, f"sales/new-{JOB}.x", metadata={}, content_type="")
    elif sign == "part":
        world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    elif sign == "exact part":
        assert exact is not None
        (slow,) = world.store.list_uploads(BUCKET, "sales/slow.csv")
        world.store.upload_part(BUCKET, slow.key, slow.upload_id, 2, b"y")
    world.later(LIMITS.abandoned - HOUR)
    before = world.all_keys(), world.open_uploads()
    report = world.sweep()
    assert (report.asked, report.started, report.uploads) == (0, 0, 0)
    assert (world.all_keys(), world.open_uploads()) == before


@pytest.mark.parametrize("sign", ["upload", "part", "manifest", "none"])
def test_i5_signs_of_life_count_at_the_locations_of_partitions_too(world: Swept, sign: str) -> None:
    main, there = place_of(), place_of(prefix="elsewhere/")
    announced(world, main, locations={"dt=1/": "elsewhere/"})
    spec = read_spec(world.pipeline, main)
    world.store.put(BUCKET, there.job, encode_location(spec, "elsewhere/"))
    file = world.upload(there, f"slow-{JOB}.x", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + HOUR)
    if sign == "upload":
        world.upload(there, f"new-{JOB}.x", b"x", task="t2", attempt="a0")
    elif sign == "part":
        world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    elif sign == "manifest":
        world.drop(there, PendingSet(JOB, (file,), "t1", "a0"), "t1", "a0")
    world.later(LIMITS.abandoned - HOUR)
    assert world.sweep().asked == (1 if sign == "none" else 0)


def test_an_abandoned_job_that_the_ledger_never_heard_of_is_aborted_too(world: Swept) -> None:
    place = place_of()
    world.open(place)
    world.upload(place, f"part-{JOB}.parquet", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + 1)
    assert world.sweep().asked == 1


def test_i5_a_job_that_the_ledger_has_not_heard_of_yet_may_take_its_time(world: Swept) -> None:
    announced(world, place_of(OTHER_JOB))
    place = place_of()
    world.open(place)
    world.later(LIMITS.abandoned - HOUR)
    assert world.sweep().asked == 0
    world.later(2 * HOUR)
    assert world.sweep().asked == 2
