"""Overwrites take effect in the order of their requests (I6); docs/adr/0037 has the reasons."""

from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.commit import acquire_destination
from s3commit.core.formats.layout import META_REQUESTED, JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.limits import (
    MAX_NODES,
    S3_CLOCKS,
    TURN_DAYS,
    TURNS_LOOKED_AT,
    WHOLE_AFTER_SECONDS,
)
from s3commit.core.model.moments import seconds
from tests.core.world import BUCKET, JOB, NEIGHBOUR, NO_MOMENTS, OTHER_JOB, World, job_directory
from tests.fakes.execution import How, run_execution, walk_execution

DAY = 86_400
REPLACE: dict[str, Any] = {"conflict": Conflict.REPLACE}
BY_PARTITION: dict[str, Any] = {**REPLACE, "scope": Scope.PARTITION, "partition_by": ("dt",)}


class Ordered(World):
    """A world in which executions live until they are left; requests are a minute apart."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.living: set[str] = set()
        self.ports = replace(self.ports, runs=self.living.__contains__)

    def asks(self, directory: JobDirectory, *days: str, apart: float = 60, **spec: Any) -> None:
        files = {f"dt={day}/part-{directory.job_id}.csv": b"x" for day in days}
        self.ask(directory, "t", files=files or None, **(spec or REPLACE))
        self.clock.advance(apart)

    def claims(self, directory: JobDirectory, moment: str) -> None:
        """Its client says in the request that it made it first at that moment."""
        stands = self.store.get(BUCKET, directory.request, max_bytes=10**6)
        self.store.put(BUCKET, directory.request, stands.body, metadata={META_REQUESTED: moment})

    def reaches(self, directory: JobDirectory, step: str, *, lost: bool = False) -> None:
        """An execution comes up to the step; it lives on there, or is lost."""
        name = f"of {directory.job_id}"
        self.living.add(name)
        for state in walk_execution(self.ports, directory, execution=name):
            if state == step:
                break
        if lost:
            self.living.discard(name)

    def commits(self, directory: JobDirectory, *days: str, **spec: Any) -> None:
        """It asks, and its turn comes."""
        self.asks(directory, *days, **spec)
        assert self.turns(directory) == "COMMITTED"

    def turns(self, directory: JobDirectory) -> str:
        """What becomes of the job in one look at whose turn it is."""
        name = f"of {directory.job_id}"
        looks = 0
        how = How(execution=name, pause=lambda: None, alone=True)
        for state in walk_execution(self.ports, directory, **how):
            looks += state == "AcquireDestination"
            if looks == 2:
                return "waits"
        outcome, code = self.ended(directory)
        return code or outcome.value


A, B, C = job_directory(JOB), job_directory(OTHER_JOB), job_directory(NEIGHBOUR)


def lost(*days: str, apart: float = 60, **spec: Any) -> Ordered:
    """A world in which the execution of A was lost before it had its locks."""
    world = Ordered()
    world.asks(A, *days, apart=apart, **spec)
    world.reaches(A, "AcquireDestination", lost=True)
    return world


@pytest.mark.parametrize("conflict", [Conflict.REPLACE, Conflict.FAIL])
@pytest.mark.parametrize("step", ["VerifyManifests", "AcquireDestination", "CheckConditions"])
@pytest.mark.parametrize("later", ["sales/", "sales/dt=1/", ""])
def test_i6_an_overwrite_that_was_lost_does_not_come_back_over_a_later_one(
    step: str, later: str, conflict: Conflict
) -> None:
    """Wherever its execution was lost, and at whichever table above or below the later one is."""
    world, base = Ordered(), "x/sales/"
    old = job_directory(JOB, base)
    new = job_directory(OTHER_JOB, f"x/{later}" if later else "x/")
    world.asks(old, conflict=conflict)
    world.reaches(old, step, lost=True)
    world.asks(new)
    if step == "CheckConditions":  # it has its locks: they are taken from it after a while
        world.clock.advance(DAY)
    assert world.turns(new) == "COMMITTED"
    seen = world.visible("x/")

    expected = "STALLED" if step == "CheckConditions" else "OVERTAKEN"
    assert world.turns(old) == expected

    assert world.visible("x/") == seen
    told = world.failure(old).message
    assert (OTHER_JOB in told) == (expected == "OVERTAKEN" and later != "")
    assert world.ledger.holders == set()


@pytest.mark.parametrize("again", [0, 1, 2])
def test_i6_a_job_whose_event_was_lost_is_overtaken_too(again: int) -> None:
    """However often the client that waits for it has asked again."""
    world = Ordered()
    world.asks(A)
    world.commits(B)
    for _ in range(again):
        world.clock.advance(300)
        world.ask_again(A)
    assert world.turns(A) == "OVERTAKEN"


@pytest.mark.parametrize("spec", [REPLACE, {"conflict": Conflict.APPEND}])
@pytest.mark.parametrize(
    "claim",
    [
        *("2000-01-01T00:00:00.000Z", "9999-01-01T00:00:00Z", "2026-11-21T22:00:30.1234567Z"),
        *NO_MOMENTS,
    ],
)
def test_i12_a_request_is_as_old_as_its_job_at_most(claim: str, spec: dict[str, Any]) -> None:
    world = Ordered()
    world.asks(A, **spec)
    world.claims(A, claim)
    last = world.clock.now()
    world.reaches(A, "VerifyManifests")
    record = world.record(A)
    assert record.opened_at <= record.requested_at <= last
    assert seconds(record.requested_at, last) >= 0  # functions reckon with it
    assert world.turns(A) == "COMMITTED"


def test_i12_a_job_that_lies_too_deep_keeps_no_other_from_its_turn() -> None:
    world, deep = Ordered(), job_directory(JOB, "sales/" + 100 * "a/")
    world.asks(deep)
    world.reaches(deep, "AcquireDestination")
    world.asks(B)
    assert world.turns(B) == "waits"
    assert world.turns(deep) == "TOO_DEEP"
    assert world.turns(B) == "COMMITTED"


@pytest.mark.parametrize("step", ["VerifyManifests", "AcquireDestination"])
def test_i6_who_lives_has_its_turn_before_a_later_one(step: str) -> None:
    world = Ordered()
    world.asks(A)
    world.reaches(A, step)
    world.asks(B)
    assert world.turns(B) == "waits"
    waits = world.record(B).waits
    assert waits is not None
    assert waits.behind == (A.ref,)
    assert world.turns(A) == "COMMITTED"
    assert world.turns(B) == "COMMITTED"


def test_i6_a_later_one_that_ends_just_before_the_locks_are_taken_is_seen() -> None:
    world = lost()
    world.asks(B)
    world.plan.run_before("lock", lambda: run_execution(world.unplanned, B))
    assert world.turns(A) == "OVERTAKEN"
    assert list(world.visible()) == [f"sales/part-t-{OTHER_JOB}.parquet"]


def test_i6_a_later_one_below_is_seen_that_was_waited_for_with_the_locks() -> None:
    world, below = lost(), job_directory(OTHER_JOB, "sales/x/")
    world.asks(below)
    world.reaches(below, "CheckConditions")
    assert world.turns(A) == "waits"
    assert world.record(A).locks == ("lake/sales/",)
    assert world.turns(below) == "COMMITTED"
    assert world.turns(A) == "OVERTAKEN"


@pytest.mark.parametrize("apart", [0, S3_CLOCKS - 1, S3_CLOCKS + 1])
def test_i6_requests_within_the_difference_of_s3s_clocks_have_no_order(apart: int) -> None:
    world = lost(apart=apart)
    world.commits(B)
    assert world.turns(A) == ("OVERTAKEN" if apart > S3_CLOCKS else "COMMITTED")


@pytest.mark.parametrize("step", ["VerifyManifests", "AcquireDestination"])
def test_i6_other_partitions_have_no_order_once_they_are_known(step: str) -> None:
    world = Ordered()
    world.asks(A, "1", "2", **BY_PARTITION)
    world.reaches(A, step)
    world.asks(B, "3", **BY_PARTITION)
    world.asks(C, "2", **BY_PARTITION)
    known = step == "AcquireDestination"
    assert world.turns(B) == ("COMMITTED" if known else "waits")
    assert world.turns(C) == "waits"
    assert world.turns(A) == "COMMITTED"


def test_i6_appends_have_no_turn() -> None:
    world = Ordered()
    world.asks(A, conflict=Conflict.APPEND)
    world.commits(B)
    assert world.turns(A) == "COMMITTED"
    since = "2026-11-21T00:00:00.000Z"
    assert [turn.ref for turn in world.ledger.turns_done("lake/sales/", since=since)] == [B.ref]


def test_i6_a_job_that_is_refused_or_rolled_back_overtakes_nobody() -> None:
    world = Ordered()
    world.asks(A)
    world.asks(B)
    world.lose_after_decision(f"sales/part-t-{OTHER_JOB}")
    assert world.turns(B) == "UPLOADS_LOST"
    world.asks(C)
    world.lose_uploads(f"sales/part-t-{NEIGHBOUR}")
    assert world.turns(C) == "UPLOAD_GONE"
    assert world.turns(A) == "COMMITTED"
    done = world.ledger.turns_done("lake/sales/", since="2026-11-21T00:00:00.000Z")
    assert [turn.ref for turn in done] == [A.ref]


def test_i6_i8_an_empty_ledger_knows_the_order() -> None:
    world = lost()
    world.commits(B)
    world.ledger.lose()
    world.heal()
    assert world.turns(A) == "OVERTAKEN"


@pytest.mark.parametrize("days", [TURN_DAYS - 1, TURN_DAYS + 1, 3 * TURN_DAYS])
def test_i6_what_was_committed_since_is_known_for_days_then_the_job_is_refused(days: int) -> None:
    world = Ordered()
    world.asks(A)
    world.commits(B)
    world.clock.advance(days * DAY)
    world.asks(C)
    assert world.turns(A) == "OVERTAKEN"
    assert (f"{TURN_DAYS} days ago" in world.failure(A).message) == (days > TURN_DAYS)
    assert world.turns(C) == "COMMITTED"


def test_i12_who_waits_long_goes_before_those_below_its_destination() -> None:
    world, below, above = Ordered(), job_directory(JOB, "sales/x/"), job_directory(OTHER_JOB)
    world.asks(below)
    world.reaches(below, "VerifyManifests")
    world.asks(above)
    assert world.turns(above) == "waits"
    world.clock.advance(WHOLE_AFTER_SECONDS)
    assert world.turns(above) == "COMMITTED"
    assert world.turns(below) == "OVERTAKEN"
    assert OTHER_JOB not in world.failure(below).message


def jobs_at(many: int, prefix: str = "sales/") -> list[JobDirectory]:
    return [
        job_directory(f"{number:08d}-0000-4000-8000-000000000000", prefix) for number in range(many)
    ]


@pytest.mark.parametrize("lost", [False, True], ids=["living", "lost"])
@pytest.mark.parametrize("later", [False, True], ids=["before", "later, and claimed before"])
@pytest.mark.parametrize("place", ["x/sales/", "x/"])
@pytest.mark.parametrize("many", [*(TURNS_LOOKED_AT + n for n in (-1, 0, 1)), 2 * TURNS_LOOKED_AT])
def test_i6_i12_no_number_of_jobs_below_hides_a_living_one_of_the_table_or_above(
    many: int, place: str, later: bool, lost: bool
) -> None:
    """Whether they meet the job that has to wait or not."""
    days = BY_PARTITION if place == "x/sales/" else REPLACE
    world, old, new = Ordered(), job_directory(JOB, place), job_directory(OTHER_JOB, "x/sales/")
    whole = job_directory(NEIGHBOUR, "x/sales/")
    below = jobs_at(many, "x/sales/a/")
    first = world.clock.now()
    for one in below:
        world.open(one, **REPLACE)
    world.clock.advance(60)

    def those_below() -> None:
        for one in below:
            world.request(one, world.attempt(one, "t"))
            if later:
                world.claims(one, first)
            world.reaches(one, "AcquireDestination", lost=lost)
        world.clock.advance(60)

    if not later:
        those_below()
    world.asks(old, "1", **days)
    world.reaches(old, "AcquireDestination")
    world.asks(new, "1", **BY_PARTITION)
    world.asks(whole)
    if later:
        those_below()
    assert all(world.record(one).requested_at < world.record(old).requested_at for one in below)
    for one in (new, whole):
        assert world.turns(one) == "waits"
        waits = world.record(one).waits
        assert waits is not None
        assert waits.behind == (old.ref,)
    if place == "x/sales/":
        assert world.turns(old) == "COMMITTED"
    else:
        world.living.clear()
    assert world.turns(new) == "COMMITTED"


@pytest.mark.parametrize(
    ("limit", "others"),
    [("TURNS_LOOKED_AT", {"conflict": Conflict.REPLACE}), ("TURNS_READ", BY_PARTITION)],
    ids=["lost ones", "those of other partitions"],
)
def test_i12_a_job_looks_at_so_many_earlier_ones_and_no_more(
    limit: str, others: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for more, expected in ((0, "COMMITTED"), (1, "waits")):
        monkeypatch.setattr(acquire_destination, limit, 3 + more)
        world = Ordered()
        for one in jobs_at(3):
            world.asks(one, "2", **others)
            world.reaches(one, "AcquireDestination", lost=limit == "TURNS_LOOKED_AT")
        world.asks(A, "1", **BY_PARTITION)
        world.reaches(A, "AcquireDestination")
        world.asks(B, "1", **BY_PARTITION)
        assert world.turns(B) == expected


@pytest.mark.parametrize(
    ("days", "expected"), [(0, "OVERTAKEN"), (MAX_NODES, "COMMITTED"), (MAX_NODES + 1, "OVERTAKEN")]
)
def test_i6_a_job_that_locked_the_whole_table_overtakes_those_of_other_partitions(
    days: int, expected: str
) -> None:
    """The refusal says so."""
    world = lost("a", **BY_PARTITION)
    world.open(B, **BY_PARTITION)
    files = {f"dt={day}/part-{OTHER_JOB}.csv": b"x" for day in range(days)}
    world.request(B, *[world.attempt(B, "t", files=files)][: bool(days)])
    assert world.turns(B) == "COMMITTED"
    assert world.turns(A) == expected
    if expected == "OVERTAKEN":
        assert f"job {OTHER_JOB} was requested later" in world.failure(A).message
        assert "locked its whole table" in world.failure(A).message
        assert "to a place that this job writes to" not in world.failure(A).message
