"""Jobs that nobody writes any more: which are given up, and which only look so (I5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.formats.documents import decode_request
from s3commit.core.model.job import AbortRequest, Outcome
from s3commit.core.sweep.steps import STEPS
from s3commit.core.sweep.sweep import DAY, HOUR, Sweep, shifted
from s3commit.core.sweep.turns import SweepTurn, take_turn
from tests.core.swept import LIMITS, MINUTE, Swept, TimedStore, abandoned_at, announced, sealed
from tests.core.world import BUCKET, JOB, OTHER_JOB, job_directory


@pytest.fixture
def world() -> Swept:
    return Swept()


def test_an_abandoned_job_is_aborted_by_the_request_a_driver_would_write(world: Swept) -> None:
    directory = job_directory()
    announced(world, directory)
    world.later(LIMITS.abandoned + 1)
    report = world.sweep()
    assert (report.asked, report.started) == (1, 0)
    stored = world.store.get(BUCKET, directory.request, max_bytes=1000)
    request = decode_request(stored.body, directory)
    assert isinstance(request, AbortRequest)
    assert request.abandoned
    world.later(LIMITS.stuck + 1)
    world.sweep()  # its event was lost
    world.settle()
    result = world.result(directory)
    assert result.outcome is Outcome.ABORTED
    assert result.error is not None
    assert result.error.code == "ABANDONED"
    assert "no sign of life since 2026-11-21T22:00:00.0" in result.error.message
    assert "for 24 hours" in result.error.message
    assert "run it again" in result.error.message
    assert "raise abandonedHours" in result.error.message
    assert world.open_uploads() == []


def test_a_driver_that_was_faster_keeps_its_word(world: Swept) -> None:
    directory = job_directory()
    attempt = world.attempt(directory, "t0")
    world.announce(directory, attempt)
    world.later(LIMITS.abandoned + 1)
    world.plan.run_before("put", lambda: world.request(directory, attempt))
    assert world.sweep().failed == 0
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_an_abandoned_job_that_the_ledger_never_heard_of_is_aborted_too(world: Swept) -> None:
    directory = job_directory()
    world.open(directory)
    world.upload(directory, f"part-{JOB}.parquet", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + 1)
    assert world.sweep().asked == 1


def test_i5_a_job_that_the_ledger_has_not_heard_of_yet_may_take_its_time(world: Swept) -> None:
    announced(world, job_directory(OTHER_JOB))
    directory = job_directory()
    world.open(directory)
    world.later(LIMITS.abandoned - HOUR)
    assert world.sweep().asked == 0
    world.later(2 * HOUR)
    assert world.sweep().asked == 2


# Jobs that only look dead


def test_i5_a_job_whose_first_task_begins_a_day_after_it_lives(world: Swept) -> None:
    """Its job.json is old, the ledger has never heard of it, and its table is swept."""
    announced(world, job_directory(OTHER_JOB))
    directory = job_directory()
    world.open(directory)
    world.later(LIMITS.abandoned + HOUR)
    world.upload(directory, f"first-{JOB}.parquet", b"x", task="t0", attempt="a0")
    world.later(LIMITS.stuck + 1)
    world.sweep()
    assert not abandoned_at(world, directory)
    assert f"sales/first-{JOB}.parquet" in world.open_uploads()


def test_i5_a_task_that_sends_a_part_an_hour_keeps_its_job_alive_for_weeks(world: Swept) -> None:
    directory = job_directory()
    announced(world, directory)
    file = world.upload(directory, f"slow-{JOB}.parquet", b"x", task="t1", attempt="a0")
    for number in range(2, 24 * 14):
        world.later(HOUR)
        world.store.upload_part(BUCKET, file.key, file.upload_id, number, b"y")
        if number % 5 == 0:
            report = world.sweep()
            assert (report.asked, report.uploads, report.notes) == (0, 0, [])
    world.later(LIMITS.abandoned - 5 * MINUTE)
    assert world.sweep().asked == 0
    world.later(6 * MINUTE)
    assert world.sweep().asked == 1


@pytest.mark.parametrize("alive", [None, 0, 3, 6])
def test_i5_of_many_uploads_the_one_that_is_written_to_counts_wherever_it_is(
    world: Swept, alive: int | None
) -> None:
    """More than a call asks: they wait until all other jobs are looked at, then call by call."""
    world.asked_at_once, world.call_items = 2, 1
    directory = job_directory()
    announced(world, directory)
    files = [
        world.upload(directory, f"{number}-{JOB}.x", b"x", task="t", attempt=f"a{number}")
        for number in range(7)
    ]
    world.later(LIMITS.abandoned)
    if alive is not None:
        file = files[alive]
        world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    world.later(HOUR)
    report = world.sweep()
    assert report.asked == (alive is None)
    assert report.failed == 0
    others = 11  # of them 8 that go over the uploads
    assert world.calls == others + {None: 5, 0: 1, 3: 2, 6: 0}[alive]  # the last ones first


def test_i5_no_call_stops_between_two_uploads_of_one_key(world: Swept) -> None:
    """S3 does not promise to go on there in the order in which it lists them."""
    directory = job_directory()
    announced(world, directory)
    names = ["same"] * 5 + ["z0", "z1", "z2"]
    for number, name in enumerate(names):
        world.upload(directory, f"{name}-{JOB}.x", b"x", task="t", attempt=f"a{number}")
    world.later(LIMITS.abandoned + HOUR)
    slow = TimedStore(world, seconds=0)
    asked = []
    for _ in looks_at_open_jobs(world, call_items=1):
        asked.append([key.split("-")[0] for key in slow.asked])
        slow.asked.clear()
    assert len(asked.pop(0)) == 2  # those begun last
    assert asked.pop() == []  # nothing is left, which it did not know
    whole_key = ["sales/part", *["sales/same"] * 5]
    assert asked == [whole_key, ["sales/z0", "sales/z1"], ["sales/z2"]]
    assert abandoned_at(world, directory)


def test_a_call_that_runs_out_of_time_over_one_jobs_uploads_goes_on_with_the_next(
    world: Swept,
) -> None:
    world.asked_at_once = 2
    directory = job_directory()
    announced(world, directory)
    for number in range(9):
        world.upload(directory, f"{number}-{JOB}.x", b"x", task="t", attempt=f"a{number}")
    world.later(LIMITS.abandoned + HOUR)
    slow = TimedStore(world, seconds=200)
    calls = 0
    for _ in looks_at_open_jobs(world):
        calls += 1
        assert len(slow.asked) <= 4  # 800 s: the call ends with the chunk in which 600 s are over
        slow.asked.clear()
    assert calls == 4
    assert abandoned_at(world, directory)


def test_i5_a_part_that_comes_while_others_are_asked_for_hours_is_a_sign_of_life(
    world: Swept,
) -> None:
    """The upload was asked long ago, and had no part then."""
    directory = job_directory()
    announced(world, directory)
    files = [
        world.upload(directory, f"{number}-{JOB}.x", b"x", task="t", attempt=f"a{number}")
        for number in range(9)
    ]
    world.later(LIMITS.abandoned + HOUR)
    for number, _ in enumerate(looks_at_open_jobs(world, call_items=1)):
        if number == 2:
            world.store.upload_part(BUCKET, files[0].key, files[0].upload_id, 2, b"y")
            world.later(7 * HOUR)
    assert abandoned_at(world, directory) == ""


def looks_at_open_jobs(world: Swept, *, call_items: int = 5_000) -> Iterator[SweepTurn]:
    """The calls of the step in one pass, and then those in which what was put off has its turn."""

    def make(turn: SweepTurn) -> Sweep:
        return Sweep(
            BUCKET,
            world.ports,
            world.executions,
            put_off=dict(turn.put_off),
            call_items=call_items,
            asked_at_once=2,
        )

    turn = SweepTurn(walked=False)
    while turn.more:
        turn = take_turn(make, STEPS["LookAtOpenJobs"], turn)
        yield turn
        if not turn.more:
            turn = replace(turn, waiting=tuple(turn.put_off))


def test_a_job_that_has_just_begun_an_upload_is_asked_for_no_parts(world: Swept) -> None:
    """A request for each upload is paid by jobs alone of which all else is old."""
    directory = job_directory()
    announced(world, directory)
    for number in range(20):
        world.upload(directory, f"{number}-{JOB}.x", b"x", task="t", attempt=f"a{number}")
    world.later(LIMITS.abandoned + HOUR)
    world.upload(directory, f"new-{JOB}.x", b"x", task="t", attempt="a")
    world.plan.forget_calls()
    world.sweep()
    assert world.plan.count("upload_parts") == 0


def test_i5_an_upload_that_ends_while_it_is_asked_for_is_a_sign_of_life(world: Swept) -> None:
    """A task gives its try up, and is going to begin another one."""
    directory = job_directory()
    announced(world, directory)
    file = world.upload(directory, f"slow-{JOB}.x", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + HOUR)
    abort = partial(world.store.abort_upload, BUCKET, file.key, file.upload_id)
    world.plan.run_before("upload_parts", abort)
    assert world.sweep().asked == 0


@pytest.mark.parametrize("off", [-15 * MINUTE, 15 * MINUTE])
def test_i5_a_clock_as_wrong_as_s3_lets_pass_kills_no_job(world: Swept, off: int) -> None:
    """S3 refuses whoever is off by more than 15 minutes (RequestTimeTooSkewed)."""
    world.limits = replace(LIMITS, abandoned=HOUR)
    directory = job_directory()
    announced(world, directory)
    world.later(44 * MINUTE)
    now = shifted(world.clock.now(), off)
    for step in STEPS.values():
        sweep = Sweep(BUCKET, world.ports, world.executions, world.limits, now=now)
        assert step(sweep, "") == ""
        assert (sweep.report.asked, sweep.report.uploads) == (0, 0)


def test_i5_a_job_that_stages_its_files_lives_from_its_last_manifest_on(world: Swept) -> None:
    """A task may compute for long before it opens its first file."""
    directory = job_directory()
    announced(world, directory)
    for _ in range(5):
        world.later(LIMITS.abandoned - HOUR)
        assert world.sweep().asked == 0
        world.attempt(directory, f"t{world.calls}")


def test_i5_a_job_that_was_asked_for_is_not_given_up_while_it_waits_for_days(world: Swept) -> None:
    """Its execution waits for the destination; its client polls, and nothing is put anywhere."""
    sealed(world, job_directory())
    world.executions.running.add("execution-1")
    for _ in range(5):
        world.later(DAY)
        report = world.sweep()
        assert (report.asked, report.started, report.uploads) == (0, 0, 0)
    world.run(job_directory(), "execution-2")
    assert world.result(job_directory()).outcome is Outcome.COMMITTED
