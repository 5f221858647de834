"""I12: what one may put below one prefix neither stops the sweep nor makes it cost without end.

Requests are counted, not seconds: one of S3's takes some 50 ms, a call of a Lambda 900 s at most.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.job.documents import read_spec
from s3commit.core.job.record import new_record
from s3commit.core.model.errors import TransientError
from s3commit.core.model.pending import PendingSet
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ownership import open_uploads
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.survey import SeenObject
from s3commit.core.sweep import cost as sweep_cost
from s3commit.core.sweep import directories as sweep_directories
from s3commit.core.sweep.cost import SHARES
from s3commit.core.sweep.sweep import DAY, HOUR, MOST_PUT_OFF
from s3commit.core.sweep.turns import CALLS_A_PASS, Sitting, SweepTurn, kept_turn
from s3commit.testing.item_limits import item_size, job_item
from s3commit.testing.survey import MemorySurvey
from tests.core.swept import LIMITS, MINUTE, Schedule, Swept, abandoned_at, announced, ended
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, job_directory

QUARTER = 15 * MINUTE
THEIRS = "tenants/a/"  # where somebody may put what they like
OURS = "tenants/b/"  # behind it in every listing


@pytest.fixture
def world() -> Swept:
    return Swept()


@pytest.fixture
def schedule(world: Swept) -> Schedule:
    return Schedule(world, MemorySurvey(world.store))


def ids(count: int) -> Iterator[str]:
    chance = random.Random(9)
    return (str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(count))


def begin(world: Swept, key: str) -> None:
    world.store.create_upload(BUCKET, key, metadata={}, content_type="")


def zombie(world: Swept, prefix: str = OURS) -> JobDirectory:
    """A job that has ended, and an upload of its that has not."""
    directory = job_directory(prefix=prefix)
    ended(world, directory)
    world.upload(directory, f"zombie-{JOB}.x", b"1", task="t9", attempt="a0")
    return directory


# Uploads with deep keys and random ids


@pytest.mark.parametrize("depth", [90, 300])
def test_i12_uploads_with_deep_keys_cost_their_share_and_keep_nobody_from_their_turn(
    world: Swept, schedule: Schedule, depth: int
) -> None:
    zombie(world)
    chance = random.Random(depth)
    for job_id in ids(1_100):
        path = "".join(f"{chance.randrange(36**2):02x}/" for _ in range(depth))
        begin(world, f"{THEIRS}{path}"[:960] + f"/part-{job_id}.x")
    world.later(DAY)
    for _ in range(2):
        assert schedule.sweep().uploads == (schedule.passes == 1)
        assert max(schedule.calls["AbortOrphanedUploads"]) < 60_000
        assert len(schedule.calls["AbortOrphanedUploads"]) <= CALLS_A_PASS
        world.later(QUARTER)


def test_i12_what_has_been_put_off_is_come_to_after_all_others_and_to_its_end(
    world: Swept, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever costs much comes last; yet nothing of theirs is forgotten."""
    monkeypatch.setattr("s3commit.core.sweep.sweep.CALL_REQUESTS", 100)
    monkeypatch.setattr(sweep_cost, "SHARES", (80, 40, 20))
    zombie(world)
    last = f"{THEIRS}zz/"
    ended(world, job_directory(OTHER_JOB, last))
    for number, job_id in enumerate(ids(40)):
        begin(world, f"{THEIRS}{number:03d}/1/2/3/part-{job_id}.x")
    begin(world, f"{last}zombie-{OTHER_JOB}.x")
    world.later(DAY)
    assert schedule.sweep().uploads == 1  # ours, though it is behind theirs
    freed = 0
    while schedule.passes < 20 and not freed:
        world.later(QUARTER)
        freed = schedule.sweep().uploads
        assert max(schedule.calls["AbortOrphanedUploads"]) < 200
    assert freed == 1


def test_i5_an_upload_too_deep_to_be_asked_for_is_left_alone(
    world: Swept, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job is under way above it, and the ledger has lost it; a copy below has ended."""
    monkeypatch.setattr(open_uploads, "DEEPEST", 3)
    ended(world, job_directory(prefix="sales/1/2/"))
    world.open(job_directory())
    begin(world, f"sales/1/2/3/part-{JOB}.x")
    world.ledger._jobs.clear()
    world.later(60 * DAY)
    assert schedule.sweep().uploads == 0
    assert schedule.calls["AbortOrphanedUploads"] == [1]


# A directory of ten million objects


class Endless(MemorySurvey):
    """Ten million objects in one directory, of which nobody has to keep any."""

    where = ""
    modified = ""

    def objects(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[SeenObject]:
        more = self.where.startswith(prefix)
        for listed in super().objects(bucket, prefix, after=after):
            if more and listed.key > self.where:
                yield from self._endless(after)
                more = False
            yield listed
        if more:
            yield from self._endless(after)

    def _endless(self, after: str) -> Iterator[SeenObject]:
        keys = (f"{self.where}{number:08d}" for number in range(10_000_000))
        for key in keys:
            if key <= after and after > self.where + "9":
                return
            if key > after:
                yield SeenObject(key, '"e"', 1, self.modified)


@pytest.mark.parametrize("where", ["tasks/t0/", "junk/", "no job's"])
@pytest.mark.parametrize("state", ["unknown", "open", "ended"])
def test_i12_one_directory_of_ten_million_objects_does_not_keep_the_next_from_its_turn(
    world: Swept, state: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s3commit.core.sweep.sweep.THING_REQUESTS", 300)
    monkeypatch.setattr("s3commit.core.sweep.sweep.CALL_REQUESTS", 500)
    monkeypatch.setattr(sweep_directories, "LISTED", 10_000)
    survey = Endless(world.store)
    schedule = Schedule(world, survey)
    endless = job_directory(JOB, OURS)
    if state == "ended":
        ended(world, endless)
    elif state == "open":
        announced(world, endless)
    else:
        world.open(endless)
    survey.where = f"{endless.prefix}{where}"
    if where == "no job's":
        survey.where = f"{endless.destination.prefix}__magic_job-0/"
    survey.modified = world.clock.now()
    behind = job_directory(OTHER_JOB, OURS)
    ended(world, behind)
    world.attempt(behind, "t9", "zombie")
    world.later(LIMITS.abandoned + HOUR)
    for _ in range(3):
        assert schedule.sweep().tidied == (schedule.passes == 1)
        assert max(map(max, schedule.calls.values())) <= 500 + 300 + 2
        assert sum(schedule.calls["TidyJobDirectories"]) < 100
        world.later(QUARTER)


def test_i5_of_a_directory_that_is_not_listed_to_its_end_nobody_says_that_it_is_silent(
    world: Swept, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_directories, "LISTED", 3)
    announced(world, job_directory(OTHER_JOB))
    live = job_directory()
    for number in range(4):
        world.attempt(live, f"t{number}")
    for upload in world.store.list_uploads(BUCKET, ""):
        world.store.abort_upload(BUCKET, upload.key, upload.upload_id)
    world.later(LIMITS.abandoned + HOUR)
    world.drop(live, PendingSet(JOB, (), "t9", "a0"), "t9", "a0")  # it sorts behind the others
    schedule.sweep()
    assert abandoned_at(world, live) == ""


def test_documents_due_with_much_behind_them_go_bit_by_bit(
    world: Swept, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result goes last: it says that the rest may go."""
    monkeypatch.setattr(sweep_directories, "TIDIED_HERE", 3)
    directory = job_directory()
    world.open(directory, locations={"dt=1/": "there/"})
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    body = encode_pendingset(PendingSet(JOB, (), "t", "a"))
    there = directory.at("there/")
    for number in range(7):
        world.store.put(BUCKET, there.manifest(f"t{number}", "late"), body)
    world.later(LIMITS.retention + HOUR)
    world.ledger._jobs.clear()
    announced(world, job_directory(NEIGHBOUR))
    left = []
    for _ in range(4):
        schedule.sweep()
        left.append((len(world.all_keys(there.prefix)), len(world.all_keys(directory.prefix))))
    assert left == [(5, 3), (2, 3), (0, 0), (0, 0)]


# Records of manifests without a job.json


def s3a_job(world: Swept, directory: JobDirectory) -> None:
    """What a single put brings about: a record of a job that nobody can say the end of."""
    world.store.put(BUCKET, f"{directory.s3a}00/task_1_0000_m_000000.pendingset", b"{}")
    world.ledger.open_job(
        new_record(read_spec(world.ports, directory), directory, world.clock.now())
    )


def test_i12_records_without_a_job_json_are_looked_at_ever_more_seldom(
    world: Swept, schedule: Schedule
) -> None:
    for number, job_id in enumerate(ids(10)):
        s3a_job(world, job_directory(job_id, f"{THEIRS}{number}/"))
    once = 10 * 5  # requests for a look at all of them
    daily = []
    for day in range(40):
        before = schedule.requests.count
        passes = 96 if day in {2, 10, 39} else 4
        for _ in range(passes):
            world.later(DAY / passes)
            schedule.sweep()
        daily.append(schedule.requests.count - before - passes)  # a listing of uploads each
    assert daily[2] <= 2 * once
    assert daily[10] <= once
    assert sum(daily[33:40]) <= once


def test_a_request_for_an_old_record_is_heard_within_a_day(
    world: Swept, schedule: Schedule
) -> None:
    directory = job_directory()
    s3a_job(world, directory)
    for _ in range(4 * 10):
        world.later(6 * HOUR)
        schedule.sweep()
    world.request_abort(directory)  # its event is lost
    world.later(LIMITS.stuck + 1)
    started = [bool(schedule.sweep().started)]
    for _ in range(4):
        world.later(6 * HOUR)
        started.append(bool(schedule.sweep().started))
    assert any(started)


def test_i5_a_job_of_ours_that_falls_silent_is_given_up_by_the_schedule(
    world: Swept, schedule: Schedule
) -> None:
    """However old it is when it does: the pause between two looks is six hours at most."""
    directory = job_directory()
    announced(world, directory)
    for _ in range(12):
        world.later(6 * HOUR)
        world.attempt(directory, f"late{schedule.passes}")
        assert schedule.sweep().asked == 0
    for _ in range(30):
        world.later(HOUR)
        schedule.sweep()
    assert abandoned_at(world, directory)


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
    schedule.survey = world.plan.fail("uploads", TransientError("no"), times=None).wrap(
        schedule.survey
    )
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


# A table in which jobs have ended


class Reads:
    """The ledger of a sweep: reads of single jobs, and the records that the index has brought."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.jobs = 0
        self.listed = 0
        self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def job(self, ref: str) -> JobRecord | None:
        self.jobs += 1
        return self._ledger.job(ref)

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        for record in self._ledger.jobs_in(state, before=before, since=since):
            self.listed += 1
            self.bytes += item_size(job_item(record))
            yield record


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


def passes(world: Swept, count: int) -> tuple[Reads, int]:
    """What so many passes, a quarter of an hour apart, take of the ledger, and requests of S3.

    After a first pass, which looks at all that nobody knows when it was looked at.
    """
    reads, spent = Reads(world.ledger), 0
    schedule = Schedule(world, MemorySurvey(world.store))
    for number in range(count + 1):
        if number == 1:
            world.ports = replace(world.ports, ledger=cast("Ledger", reads))
        schedule.sweep()
        spent += schedule.spent if number else 0
        world.later(QUARTER)
    return reads, spent


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
    """A location's manifest, and a plan: the directory itself does not tell of them."""
    directory = job_directory(prefix=OURS)
    there = directory.at("elsewhere/dt1/")
    world.open(directory, locations={"dt=1/": there.destination.prefix})
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    schedule.sweep()
    world.later(HOUR)
    plan = directory.plan("0" * 64)
    world.store.put(BUCKET, plan, b"{}")
    world.store.put(BUCKET, there.manifest("t9", "late"), b"{}")
    for hours, tidied in ((1, 0), (10, 0), (11, 0), (2, 1), (1, 0)):
        world.later(hours * HOUR)
        assert schedule.sweep().tidied == tidied, hours
    assert world.all_keys(there.prefix) == [there.job]
    assert plan not in world.all_keys()
