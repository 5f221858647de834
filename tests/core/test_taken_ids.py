"""A job id in two places, by mistake or by malice: the later one is turned away, and told so.

The ledger has one record for an id (docs/adr/0010). Nobody can tell who is the impostor; what must
hold is that nothing hangs, that each client has a result, and that neither touches the other's.
"""

from __future__ import annotations

import pytest

from s3commit.core.documents import decode_result, encode_job, encode_request, encode_result
from s3commit.core.errors import InvalidInputError, S3CommitError
from s3commit.core.layout import JobDirectory
from s3commit.core.model import CommitRequest, JobResult, JobSpec, Names, Outcome
from s3commit.core.policy import ABORT_ROUNDS
from s3commit.core.protocol.pipeline import Pipeline, takeovers
from s3commit.core.states import JobState
from s3commit.testing.faults import Crash
from s3commit.testing.memory import MemoryLedger
from tests.core.world import BUCKET, JOB, NEIGHBOUR, World, place_of

REAL = place_of()
APART = place_of(prefix="evil/")
BELOW = place_of(prefix="sales/2026/")
ABOVE = place_of(prefix="all/")
INSIDE_ABOVE = place_of(prefix="all/sales/")


def asked(world: World, place: JobDirectory, *, tasks: int = 2) -> None:
    world.open(place)
    world.request(place, *[world.attempt(place, f"t{number}") for number in range(tasks)])


def turned_away(world: World, place: JobDirectory) -> bool:
    result = world.result(place)
    return (
        result.outcome is Outcome.ABORTED
        and result.error is not None
        and result.error.code == "JOB_ID_TAKEN"
        and "under a new id" in result.error.message
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [(REAL, APART), (REAL, BELOW), (BELOW, REAL), (ABOVE, INSIDE_ABOVE), (INSIDE_ABOVE, ABOVE)],
    ids=["apart", "below", "above", "all, all/sales", "all/sales, all"],
)
def test_i5_of_two_jobs_with_one_id_the_later_one_is_turned_away(
    first: JobDirectory, second: JobDirectory
) -> None:
    world = World()
    asked(world, first)
    kept = world.open_uploads()
    world.announce(first, world.attempt(first, "t9"))  # opens the record, nothing more
    asked(world, second, tasks=1)
    assert world.run(second)[-2:] == ["AbortJob", "TidyUp"]
    assert turned_away(world, second)
    assert world.record(first).destination == first.destination
    assert takeovers(world.record(first)) == 0
    assert set(kept) <= set(world.open_uploads()), "the first one's uploads are its own"
    assert world.run(first)[-1] == "TidyUp"
    assert world.result(first).outcome is Outcome.COMMITTED
    assert len(world.visible(first.destination.prefix)) == 2
    assert world.open_uploads() == []
    assert turned_away(world, second), "it keeps its result"


def test_a_manifest_under_a_foreign_id_takes_the_record_and_the_job_is_told() -> None:
    world = World()
    world.open(REAL)
    uploaded = world.attempt(REAL, "t0")
    world.announce(APART, world.attempt(APART, "t0"))
    with pytest.raises(InvalidInputError) as refused:
        world.announce(REAL, uploaded)
    assert refused.value.code == "JOB_ID_TAKEN"
    world.request(REAL, uploaded)
    world.run(REAL)
    assert turned_away(world, REAL)
    assert world.open_uploads("sales/") == []
    assert world.open_uploads("evil/") != []
    assert world.record(APART).state is JobState.OPEN


def test_i4_i5_exact_names_are_aborted_by_the_manifests_and_only_apart_from_the_holder() -> None:
    world = World()
    asked(world, APART)
    world.open(REAL, names=Names.EXACT)
    world.store.create_upload(BUCKET, "sales/theirs.csv", metadata={}, content_type="x")
    world.request(REAL, world.attempt(REAL, "t0", files={"mine.csv": b"1"}))
    world.announce(APART, world.attempt(APART, "t9"))
    world.run(REAL)
    assert turned_away(world, REAL)
    assert world.open_uploads("sales/") == ["sales/theirs.csv"]
    assert len(world.open_uploads("evil/")) == 3


def test_i5_what_lies_at_a_location_of_the_holder_is_the_holders() -> None:
    """Someone asks in the job directory that a job has at one of its locations."""
    world, location = World(), place_of(prefix="archive/dt=1/")
    upload = world.upload(location, f"part-{JOB}.parquet", b"1", task="t0", attempt="a0")
    world.open(REAL, locations={"dt=1/": location.destination.prefix})
    world.announce(REAL, world.attempt(REAL, "t0"))
    world.request(location)
    world.run(location)
    assert turned_away(world, location)
    assert upload.key in world.open_uploads()


@pytest.mark.parametrize("strike", ["lose_response", "crash_before", "crash_after"])
def test_i2_i4_a_job_is_turned_away_whatever_call_fails(strike: str) -> None:
    point = 0
    while True:
        point += 1
        world = World()
        asked(world, APART)
        world.run(APART)
        asked(world, REAL)
        world.plan.forget_calls()
        getattr(world.plan, strike)(None, nth=point)
        try:
            world.run(REAL)
        except Crash:
            world.run(REAL, "execution-2")
        assert turned_away(world, REAL)
        assert world.open_uploads() == []
        assert world.visible("sales/") == {}
        assert len(world.visible("evil/")) == 2
        if not world.plan.fired:
            assert point > 5
            return


def test_i4_a_task_that_still_opens_uploads_is_waited_for() -> None:
    world = World()
    asked(world, APART)
    world.run(APART)
    asked(world, REAL, tasks=1)
    opened = 0

    def another() -> None:
        nonlocal opened
        opened += 1
        if opened < 2 * ABORT_ROUNDS:
            key = f"sales/part-{opened}-{JOB}.parquet"
            world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
            world.plan.run_after("abort_upload", another)

    world.plan.run_after("abort_upload", another)
    entered = world.run(REAL)
    assert (entered[0], entered[-1]) == ("SealJob", "TidyUp")
    assert entered.count("AbortJob") > 1
    assert turned_away(world, REAL)
    assert world.open_uploads() == []


def test_a_job_that_ended_and_was_forgotten_keeps_its_result_when_its_id_is_taken() -> None:
    world = World()
    asked(world, REAL)
    world.run(REAL)
    world.ledger = MemoryLedger()
    world.pipeline = Pipeline(world.store, world.ledger, world.clock)
    asked(world, APART)
    world.run(APART)
    assert world.run(REAL, "execution-2") == ["SealJob", "Superseded"]
    assert world.result(REAL).outcome is Outcome.COMMITTED
    assert len(world.visible()) == 2


def test_i2_nobody_is_told_that_a_visible_file_never_was() -> None:
    """The ledger is lost after a decision, and then the id is taken: a person has to look."""
    world = World()
    asked(world, REAL)
    world.run(REAL)
    world.store.delete(BUCKET, REAL.result)
    world.ledger = MemoryLedger()
    world.pipeline = Pipeline(world.store, world.ledger, world.clock)
    asked(world, APART)
    world.run(APART)
    with pytest.raises(
        S3CommitError, match="is visible, but the ledger has the id at s3://lake/ev"
    ):
        world.run(REAL, "execution-2")
    assert world.store.head(BUCKET, REAL.result) is None
    assert len(world.visible()) == 2


# A table that somebody copies brings its job directories along.


def copy(world: World, source: str, target: str) -> None:
    """As S3 copies: user metadata goes along."""
    objects = world.store._buckets[BUCKET].objects
    for key in [key for key in objects if key.startswith(source)]:
        objects[target + key[len(source) :]] = list(objects[key])


@pytest.mark.parametrize("remembers", [True, False], ids=["same ledger", "another ledger"])
@pytest.mark.parametrize("lacking", [(), ("result",), ("result", "commits")], ids=str)
def test_i5_a_copied_table_keeps_its_files(remembers: bool, lacking: tuple[str, ...]) -> None:
    """The copy's request.json is announced like any other, before all of the rest has arrived."""
    world = World()
    asked(world, REAL)
    world.run(REAL)
    copy(world, "sales/", "backup/")
    place = place_of(prefix="backup/")
    for name in lacking:
        world.store.delete(BUCKET, getattr(place, name))
    if not remembers:
        world.ledger = MemoryLedger()
        world.pipeline = Pipeline(world.store, world.ledger, world.clock)
    world.run(place, "execution-2")
    assert sorted(world.visible("backup/").values()) == sorted(world.visible().values())
    assert len(world.visible()) == 2


# What S3 remembers of a job is believed only of the job that lies there.


def test_i8_a_result_of_another_job_is_not_believed() -> None:
    world = World()
    asked(world, REAL)
    foreign = encode_result(result_of(world, place_of(NEIGHBOUR, "other/")))
    world.store.put(BUCKET, REAL.result, foreign)
    with pytest.raises(InvalidInputError, match="is of another job"):
        world.run(REAL)
    assert world.ledger.job(JOB) is None
    assert len(world.open_uploads("sales/")) == 2
    with pytest.raises(InvalidInputError) as refused:
        decode_result(foreign, REAL)
    assert refused.value.code == "WRONG_JOB"


def result_of(world: World, place: JobDirectory) -> JobResult:
    asked(world, place)
    world.run(place)
    return world.result(place)


@pytest.mark.parametrize("other", [place_of(NEIGHBOUR), APART], ids=["job", "destination"])
def test_i8_a_commit_manifest_of_another_job_or_place_is_not_believed(other: JobDirectory) -> None:
    world = World()
    asked(world, other)
    world.run(other)
    body = world.store.get(BUCKET, other.commits, max_bytes=10**6).body
    world.ledger = MemoryLedger()
    world.pipeline = Pipeline(world.store, world.ledger, world.clock)
    world.store.put(BUCKET, REAL.commits, body)
    world.store.put(BUCKET, REAL.job, encode_job(JobSpec(JOB, REAL.destination)))
    world.store.put(BUCKET, REAL.request, encode_request(CommitRequest(JOB, ())))
    with pytest.raises(InvalidInputError) as refused:
        world.run(REAL)
    assert refused.value.code == "WRONG_JOB"
    assert world.ledger.job(JOB) is None
