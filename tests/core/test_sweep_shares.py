"""I12: what one prefix costs, passes that break off, and tables in which jobs have ended."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from s3commit.core.model.errors import TransientError
from s3commit.core.sweep import cost as sweep_cost
from s3commit.core.sweep.cost import SHARES
from s3commit.core.sweep.sweep import DAY, HOUR, MOST_PUT_OFF
from s3commit.core.sweep.turns import Sitting, SweepTurn, kept_turn
from tests.core.sweep_costs import OURS, THEIRS, begin, ids, passes, zombie
from tests.core.swept import LIMITS, MINUTE, Schedule, Swept, abandoned_at, announced, ended
from tests.core.world import BUCKET, JOB, OTHER_JOB, job_directory


@pytest.fixture
def world() -> Swept:
    return Swept()


@pytest.fixture
def schedule(world: Swept) -> Schedule:
    return Schedule(world)


# One thing, and one prefix, among others


@pytest.mark.parametrize(("calls", "is_done"), [(5, False), (50, True)])
def test_i12_a_job_that_costs_much_comes_last_and_one_that_costs_too_much_is_left_alone(
    world: Swept,
    schedule: Schedule,
    calls: int,
    is_done: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("s3commit.core.sweep.sweep.THING_REQUESTS", 15)
    monkeypatch.setattr("s3commit.core.sweep.sweep.CALL_REQUESTS", calls)
    costly, other = job_directory(prefix=THEIRS), job_directory(OTHER_JOB, OURS)
    announced(world, costly)
    for number in range(20):
        world.upload(costly, f"{number}-{JOB}.x", b"x", task="t", attempt="a")
    announced(world, other)
    world.later(LIMITS.abandoned + HOUR)
    report = schedule.sweep()
    assert (report.asked, report.failed) == (1 + is_done, 0)
    assert report.postponed >= 1
    assert any("left alone" in note for note in report.notes) is not is_done
    assert bool(abandoned_at(world, costly)) is is_done
    assert abandoned_at(world, other)


def test_i12_jobs_below_one_prefix_do_not_keep_those_of_another_from_their_turn(
    world: Swept, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_cost, "SHARES", (40, 20))
    for job_id in ids(100):
        announced(world, job_directory(job_id, THEIRS))
    world.later(HOUR)
    other = job_directory(OTHER_JOB, OURS)
    announced(world, other)
    world.later(LIMITS.abandoned - MINUTE)
    world.request_abort(other)  # its event is lost
    world.later(LIMITS.stuck + 1)
    report = schedule.sweep()
    assert report.started == 1
    assert report.postponed > 50
    assert sum(schedule.calls["LookAtOpenJobs"]) < 60


def test_i12_directories_below_one_prefix_do_not_keep_those_of_another_from_their_turn(
    world: Swept, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest comes last, and in the passes that follow."""
    monkeypatch.setattr("s3commit.core.sweep.sweep.CALL_REQUESTS", 50)
    monkeypatch.setattr(sweep_cost, "SHARES", (40, 20))
    theirs = [job_directory(job_id, THEIRS) for job_id in sorted(ids(60))]
    for directory in theirs:
        ended(world, directory)
        world.attempt(directory, "t9", "zombie")
    ours = job_directory(OTHER_JOB, OURS)
    ended(world, ours)
    world.attempt(ours, "t9", "zombie")
    world.later(LIMITS.stuck + 1)
    schedule.sweep()
    assert len(world.all_keys(ours.prefix)) == 3
    assert len(world.all_keys(theirs[-1].prefix)) == 4
    while schedule.passes < 40 and len(world.all_keys(theirs[-1].prefix)) == 4:
        world.later(1)
        schedule.sweep()
    assert all(len(world.all_keys(directory.prefix)) == 3 for directory in theirs)


def test_no_more_is_put_off_than_the_ledger_has_room_for(
    world: Swept, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_cost, "SHARES", (1_000, 1_000, 1))
    for number, job_id in enumerate(ids(50)):
        for some in range(3):
            begin(world, f"{THEIRS}{number:02d}/{some}-{job_id}.x")
    world.later(DAY)
    schedule.sweep()
    note = world.ledger.sweep_note()
    assert 0 < len(kept_turn(note, "AbortOrphanedUploads").put_off) <= MOST_PUT_OFF
    assert 4 * MOST_PUT_OFF * 3 * 1_100 < 300_000, "an item of DynamoDB has 400 KB"


def test_the_share_of_a_directory_is_half_of_the_one_above_at_most() -> None:
    assert all(2 * below <= above for above, below in pairwise(SHARES))


# Passes


def test_a_walk_that_was_broken_off_begins_anew_with_the_next_pass() -> None:
    turn = SweepTurn(cursor="x", walked=False, began="2026-11-22T10", before="2026-11-22T09")
    assert turn.opened("now") == replace(turn, cursor="x")
    anew = replace(turn, broken_off=True).opened("now")
    assert (anew.cursor, anew.began, anew.before) == ("", "now", "2026-11-22T09")
    through = replace(turn, walked=True).opened("now")
    assert (through.cursor, through.began, through.before) == ("", "now", "2026-11-22T10")


def test_a_call_that_dies_is_noted(world: Swept, schedule: Schedule) -> None:
    zombie(world)
    world.later(HOUR)
    no = TransientError("no")
    schedule.store = world.plan.fail("list_uploads", no, times=None).wrap(world.store)
    with pytest.raises(TransientError):
        schedule.sweep()
    assert json.loads(world.ledger.sweep_note().turns["AbortOrphanedUploads"])["broken_off"]


def test_of_two_sweeps_that_begin_at_once_one_does(world: Swept) -> None:
    note = world.ledger.sweep_note()
    first, second = (Sitting(world.ledger, name, world.clock.now()) for name in ("a", "b"))
    assert first.may_begin(note)
    assert second.may_begin(note)
    assert first.put(note, "step", SweepTurn())
    assert second.put(note, "step", SweepTurn()) is None


def test_a_sweep_that_died_keeps_the_next_one_waiting_for_half_an_hour(world: Swept) -> None:
    dead = Sitting(world.ledger, "dead", world.clock.now())
    assert dead.put(world.ledger.sweep_note(), "step", SweepTurn())
    note = world.ledger.sweep_note()
    world.later(29 * MINUTE)
    assert not Sitting(world.ledger, "next", world.clock.now()).may_begin(note)
    world.later(MINUTE)
    assert Sitting(world.ledger, "next", world.clock.now()).may_begin(note)


def table_of(world: Swept, days: int, a_day: int) -> None:
    """A table to which so many jobs a day were written for so many days, the last one just now."""
    template = job_directory(prefix=OURS)
    ended(world, template)
    record = world.record(template)
    bodies = {
        name: world.store.get(BUCKET, getattr(template, name), max_bytes=10_000).body
        for name in ("job", "request", "result")
    }
    for job_id in ids(days * a_day):
        world.later(DAY / a_day)
        directory = job_directory(job_id, OURS)
        for name, body in bodies.items():
            world.store.put(BUCKET, getattr(directory, name), body)
        now = world.clock.now()
        one = replace(record, job_id=job_id, updated_at=now, finished_at=now)
        world.ledger._jobs[one.ref] = one


def test_i12_a_pass_reads_no_record_of_jobs_that_ended_long_ago_and_need_nothing() -> None:
    """Their directories are listed, which says it all."""
    taken = []
    for days in (5, 25):
        world = Swept()
        table_of(world, days, a_day=20)
        reads, _ = passes(world, 3)
        taken.append((reads.jobs, reads.listed, reads.bytes))
    assert taken[0] == taken[1]
    assert taken[0][0] <= 3  # at most as many as have ended a day ago, in three quarters of an hour


def test_a_pass_behind_three_hundred_thousand_ended_jobs_costs_less_than_a_cent() -> None:
    """A hundred a day for 29 days, in four passes; ten thousand a day cost a hundred times that.

    us-east-1: https://aws.amazon.com/s3/pricing/ and
    https://aws.amazon.com/dynamodb/pricing/on-demand/
    """
    world, count = Swept(), 4
    table_of(world, days=1, a_day=1)
    _, always = passes(world, count)
    world = Swept()
    table_of(world, days=29, a_day=100)
    reads, spent = passes(world, count)
    jobs, listed, size, lists = (
        100 * one / count for one in (reads.jobs, reads.listed, reads.bytes, spent - always)
    )
    lists += always / count  # whatever has ended
    units = jobs + size / 4096 / 2  # single records consistently; the index can not be read so
    dollars = lists * 0.005 / 1000 + units * 0.25 / 1e6
    seconds = lists * 0.060 + jobs * 0.005 + listed * 0.0002
    print(
        f"{lists:.0f} requests of S3, {jobs:.0f} records one by one, {listed:.0f} from the index"
        f" ({size / 2**20:.0f} MB): {dollars:.4f} USD, {seconds:.0f} s"
    )
    assert dollars <= 0.01
    listing = 0.060 * 3 * 29 * 10_000 / 1000  # three documents of each job
    assert listing < seconds <= listing + 15


def test_i4_what_somebody_late_has_put_beside_the_directory_goes_a_day_after_the_end(
    world: Swept, schedule: Schedule
) -> None:
    """A plan: the directory itself does not tell of it."""
    directory = job_directory(prefix=OURS)
    world.open(directory)
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    schedule.sweep()
    world.later(HOUR)
    plan = directory.plan("0" * 64)
    world.store.put(BUCKET, plan, b"{}")
    for hours, tidied in ((1, 0), (10, 0), (11, 0), (2, 1), (1, 0)):
        world.later(hours * HOUR)
        assert schedule.sweep().tidied == tidied, hours
    assert plan not in world.all_keys()
