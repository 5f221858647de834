"""I12: what one may put below one prefix neither stops the sweep nor makes it cost without end.

Requests are counted, not seconds: one of S3's takes some 50 ms, a call of a Lambda 900 s at most.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import cast

import pytest

from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.model.pending import PendingSet
from s3commit.core.ownership import open_uploads
from s3commit.core.ports.objects import ListedObject, ObjectStore
from s3commit.core.sweep import cost as sweep_cost
from s3commit.core.sweep import directories as sweep_directories
from s3commit.core.sweep.sweep import DAY, HOUR
from s3commit.core.sweep.turns import CALLS_A_PASS
from tests.core.sweep_costs import OURS, QUARTER, THEIRS, begin, ids, zombie
from tests.core.swept import LIMITS, Around, Schedule, Swept, abandoned_at, announced, ended
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, job_directory


@pytest.fixture
def world() -> Swept:
    return Swept()


@pytest.fixture
def schedule(world: Swept) -> Schedule:
    return Schedule(world)


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


class Endless(Around):
    """Ten million objects in one directory, of which nobody has to keep any."""

    where = ""
    modified = ""

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        more = self.where.startswith(prefix)
        for listed in self.store.list(bucket, prefix, after=after):
            if more and listed.key > self.where:
                yield from self._endless(after)
                more = False
            yield listed
        if more:
            yield from self._endless(after)

    def _endless(self, after: str) -> Iterator[ListedObject]:
        keys = (f"{self.where}{number:08d}" for number in range(10_000_000))
        for key in keys:
            if key <= after and after > self.where + "9":
                return
            if key > after:
                yield ListedObject(key, '"e"', 1, self.modified)


@pytest.mark.parametrize("where", ["tasks/t0/", "junk/", "no job's"])
@pytest.mark.parametrize("state", ["unknown", "open", "ended"])
def test_i12_one_directory_of_ten_million_objects_does_not_keep_the_next_from_its_turn(
    world: Swept, state: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s3commit.core.sweep.sweep.THING_REQUESTS", 300)
    monkeypatch.setattr("s3commit.core.sweep.sweep.CALL_REQUESTS", 500)
    monkeypatch.setattr(sweep_directories, "LISTED", 10_000)
    full = Endless(world.store)
    schedule = Schedule(world, store=cast("ObjectStore", full))
    endless = job_directory(JOB, OURS)
    if state == "ended":
        ended(world, endless)
    elif state == "open":
        announced(world, endless)
    else:
        world.open(endless)
    full.where = f"{endless.prefix}{where}"
    if where == "no job's":
        full.where = f"{endless.destination.prefix}__magic_job-0/"
    full.modified = world.clock.now()
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
    world.lose_uploads("")
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
    world.open(directory)
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    body = encode_pendingset(PendingSet(JOB, (), "t", "a"))
    for number in range(7):
        world.store.put(BUCKET, directory.plan(f"{number}" * 64), body)
    world.later(LIMITS.retention + HOUR)
    world.ledger._jobs.clear()
    announced(world, job_directory(NEIGHBOUR))
    left = []
    for _ in range(4):
        schedule.sweep()
        own = world.all_keys(directory.pipeline_prefix)
        left.append((len(own), len(world.all_keys(directory.prefix))))
    assert left == [(5, 3), (2, 3), (0, 0), (0, 0)]


# Records of manifests without a job.json


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
