"""Whether a committed file that is gone was replaced by a later job, wherever that job lies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest

from s3commit.core.formats.published import CommitHeader, commit_lines
from s3commit.core.fsck.check import check
from s3commit.core.model.job import Conflict, Destination
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.objects import ListedObject, ObjectStore
from s3commit.core.sweep.sweep import shifted
from tests.core.fsck_world import Checked
from tests.core.swept import Around
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.memory import ManualClock

LAKE, SALES, EU = "lake/", "lake/sales/", "lake/sales/eu/"
FILE = f"{SALES}part-t0-{JOB}.parquet"


@pytest.fixture
def desk() -> Checked:
    return Checked(World(), destination=Destination(BUCKET, SALES))


def run(
    desk: Checked, job_id: str, prefix: str, conflict: Conflict = Conflict.REPLACE, *files: str
) -> None:
    """A job that is committed; what comes next comes a minute later."""
    directory = job_directory(job_id, prefix)
    bodies = dict.fromkeys(files, b"1") or None
    desk.world.open(directory, conflict=conflict)
    desk.world.request(directory, desk.world.attempt(directory, "t0", files=bodies))
    desk.world.run(directory)
    desk.world.clock.advance(60)


@contextmanager
def clock_off(desk: Checked, seconds: int) -> Iterator[None]:
    """The pipeline's machines are ahead, or behind; S3 is not."""
    normal = desk.world.ports
    wrong = ManualClock(shifted(desk.world.clock.now(), seconds), step=0.001)
    desk.world.ports = replace(normal, clock=wrong)
    yield
    desk.world.ports = normal


def test_what_a_job_of_a_destination_below_replaced_is_not_missing(desk: Checked) -> None:
    names = f"eu/part-{JOB}.csv", f"part-{JOB}.csv"
    run(desk, JOB, SALES, Conflict.APPEND, *names)
    run(desk, OTHER_JOB, EU)
    assert list(desk.world.visible(SALES)) == [f"{EU}part-t0-{OTHER_JOB}.parquet", SALES + names[1]]
    assert desk.findings() == []
    desk.world.store.delete(BUCKET, SALES + names[1])
    assert "MISSING" in desk.names()


@pytest.mark.parametrize("prefix", [LAKE, SALES])
def test_what_a_job_replaced_whose_machine_was_behind_is_not_missing(
    desk: Checked, prefix: str
) -> None:
    run(desk, JOB, SALES, Conflict.APPEND)
    with clock_off(desk, -3600):
        run(desk, OTHER_JOB, prefix)
    assert FILE not in desk.world.visible(SALES)
    assert desk.findings() == []


@pytest.mark.parametrize("prefix", [LAKE, SALES])
def test_what_a_job_replaced_before_explains_nothing_even_if_its_machine_was_ahead(
    desk: Checked, prefix: str
) -> None:
    desk.world.store.put(BUCKET, f"{prefix}old.csv", b"old")
    with clock_off(desk, 3600):
        run(desk, OTHER_JOB, prefix)
    run(desk, JOB, SALES, Conflict.APPEND)
    desk.world.store.delete(BUCKET, FILE)
    assert "MISSING" in desk.names()


def test_a_job_above_that_removed_nothing_explains_nothing(desk: Checked) -> None:
    run(desk, JOB, SALES, Conflict.APPEND)
    desk.world.store.delete(BUCKET, FILE)
    run(desk, OTHER_JOB, LAKE)
    run(desk, NEIGHBOUR, LAKE, Conflict.APPEND)
    assert "MISSING" in desk.names()


def test_jobs_above_are_read_back_to_the_last_one_that_removed_files(desk: Checked) -> None:
    run(desk, JOB, SALES, Conflict.APPEND)
    run(desk, OTHER_JOB, LAKE)
    run(desk, NEIGHBOUR, LAKE, Conflict.APPEND)
    assert desk.findings() == []


@pytest.mark.parametrize("body", [b"no list", None])
def test_a_list_above_that_is_no_jobs_of_there_explains_nothing(
    desk: Checked, body: bytes | None
) -> None:
    """`aws s3 sync` brought it there, or anybody else."""
    run(desk, JOB, SALES, Conflict.APPEND)
    desk.world.store.delete(BUCKET, FILE)
    gone = ReplacedFacts("0" * 64, 1, 1)
    now = desk.world.clock.now()
    theirs = CommitHeader(OTHER_JOB, "s3://lake/other/", now, 0, 0, 0, replaced=gone)
    copied = b"".join(commit_lines(theirs, ()))
    desk.world.store.put(BUCKET, job_directory(OTHER_JOB, LAKE).commits, body or copied)
    assert "MISSING" in desk.names()


def test_other_destinations_are_asked_once_and_only_if_something_is_gone(desk: Checked) -> None:
    names = [f"part-{number}-{JOB}.csv" for number in range(5)]
    run(desk, JOB, SALES, Conflict.APPEND, *names)
    run(desk, OTHER_JOB, LAKE, Conflict.APPEND)
    run(desk, NEIGHBOUR, EU, Conflict.APPEND)
    asked: list[str] = []
    fsck = desk.fsck
    noting = cast("ObjectStore", CommitsNoted(fsck.ports.store, asked))
    fsck = replace(fsck, ports=replace(fsck.ports, store=noting))
    assert list(check(fsck, desk.destination)) == []
    assert asked == [f"{SALES}_commits/"]
    for name in names:
        desk.world.store.delete(BUCKET, SALES + name)
    asked.clear()
    assert [one.name for one in check(fsck, desk.destination)].count("MISSING") == 5
    assert asked == [f"{SALES}_commits/", f"{LAKE}_commits/"]


class CommitsNoted(Around):
    """Remembers which lists of commit manifests were asked for."""

    def __init__(self, store: ObjectStore, asked: list[str]) -> None:
        super().__init__(store)
        self._asked = asked

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        if prefix.endswith("_commits/"):
            self._asked.append(prefix)
        return self.store.list(bucket, prefix, after=after)
