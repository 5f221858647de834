"""At most one attempt of a task counts, and the uploads of all others are aborted (I3, I4).

Speculation, a stage that is retried, a manifest that comes after the decision or the end, a task
that nobody has stopped.
"""

from __future__ import annotations

import pytest

from s3commit.core.commit.ingest_pendingsets import judge_arrival, note_arrivals
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import UploadGoneError
from s3commit.core.model.job import CountedAttempt, Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.core.world import BUCKET, OTHER_JOB, World, job_directory


def file_of(task: str, directory: JobDirectory) -> str:
    return f"part-{task}-{directory.job_id}.csv"


def tries(
    world: World, task: str, attempt: str, directory: JobDirectory | None = None
) -> CountedAttempt:
    """A finished attempt; its file says which one wrote it."""
    directory = directory or job_directory()
    files = {file_of(task, directory): f"{task} {attempt}".encode()}
    return world.attempt(directory, task, attempt, files=files)


def announce(world: World, directory: JobDirectory, attempt: CountedAttempt) -> int:
    """The event of a manifest, beside the calls that are counted; how many uploads it aborted."""
    events = Ports(world.store, world.ledger, world.clock)
    arrival = judge_arrival(events, BUCKET, directory.prefix + attempt.manifest)
    note_arrivals(events, [arrival])
    return arrival.late


def bystanders(world: World) -> list[str]:
    """Uploads that are nobody's of the job: another job's, and a stranger's. Their ids."""
    other = job_directory(OTHER_JOB)
    world.open(other)
    tries(world, "t0", "a0", other)
    world.store.create_upload(BUCKET, "sales/stranger.csv", metadata={}, content_type="x")
    world.store.create_upload(BUCKET, "sales2/t0.csv", metadata={}, content_type="x")
    return upload_ids(world)


def upload_ids(world: World) -> list[str]:
    return [upload.upload_id for upload in world.store.list_uploads(BUCKET, "")]


def test_i3_i4_of_two_finished_attempts_the_counted_one_appears() -> None:
    world, directory = World(), job_directory()
    theirs = bystanders(world)
    world.open(directory)
    slow = tries(world, "t0", "a0")
    fast = tries(world, "t0", "a1")
    for attempt in (fast, slow, fast):  # events in any order, and more than once
        announce(world, directory, attempt)
    world.request(directory, fast)
    world.run(directory)
    assert list(world.visible().values()) == [b"t0 a1"]
    assert upload_ids(world) == theirs


def test_i3_i4_of_a_stage_that_was_retried_only_the_new_attempts_count() -> None:
    world, directory = World(), job_directory()
    theirs = bystanders(world)
    world.open(directory)
    for task in ("t0", "t1", "t2"):
        announce(world, directory, tries(world, task, "stage0"))
    again = [tries(world, task, "stage1") for task in ("t0", "t1", "t2")]
    world.request(directory, *again)
    world.run(directory)
    assert sorted(world.visible().values()) == [b"t0 stage1", b"t1 stage1", b"t2 stage1"]
    assert upload_ids(world) == theirs
    assert world.result(directory).files == 3


@pytest.mark.parametrize("fate", [Outcome.COMMITTED, Outcome.ABORTED, Outcome.ROLLED_BACK])
@pytest.mark.parametrize("when", ["before", "after"])
def test_i3_i4_a_loser_that_finishes_at_any_moment_neither_appears_nor_stays(
    when: str, fate: Outcome
) -> None:
    """Its manifest arrives at each single call of the pipeline in turn, and at last after all."""
    point = 0
    while True:
        point += 1
        world, directory = World(), job_directory()
        theirs = bystanders(world)
        world.open(directory)
        winner = tries(world, "t0", "a0")
        if fate is Outcome.ABORTED:
            world.request_abort(directory)
        else:
            world.request(directory, winner)
        if fate is Outcome.ROLLED_BACK:
            victim = next(
                upload
                for upload in world.store.list_uploads(BUCKET, "sales/")
                if upload.upload_id not in theirs
            )

            def lose(
                world: World = world, key: str = victim.key, one: str = victim.upload_id
            ) -> None:
                world.store.abort_upload(BUCKET, key, one)

            world.plan.run_after("decide", lose)
        late: list[CountedAttempt] = []

        def finish(
            world: World = world,
            late: list[CountedAttempt] = late,
            directory: JobDirectory = directory,
        ) -> None:
            late.append(tries(world, "t0", "loser"))
            announce(world, directory, late[0])

        hook = world.plan.run_before if when == "before" else world.plan.run_after
        hook(None, finish, nth=point)
        world.run(directory)
        reached = any(call.number == point for call in world.plan.fired)
        if not late:
            finish()
        announce(world, directory, late[0])  # the event once more
        assert world.result(directory).outcome is fate
        expected = [b"t0 a0"] if fate is Outcome.COMMITTED else []
        assert list(world.visible().values()) == expected
        assert upload_ids(world) == theirs, (point, when)
        if not reached:
            assert point > 10, "the enumeration must have reached the whole job"
            return


def test_i2_a_manifest_that_counts_and_is_announced_after_the_end_takes_nothing_away() -> None:
    world, directory = World(), job_directory()
    world.open(directory)
    winner = tries(world, "t0", "a0")
    body = world.store.get(BUCKET, directory.prefix + winner.manifest, max_bytes=10**6).body
    world.request(directory, winner)
    world.run(directory)
    world.store.put(
        BUCKET, directory.prefix + winner.manifest, body
    )  # as if it had not been tidied
    announce(world, directory, winner)
    assert list(world.visible().values()) == [b"t0 a0"]


def test_i3_i4_a_task_that_goes_on_after_the_end_changes_nothing() -> None:
    world, directory = World(), job_directory()
    theirs = bystanders(world)
    world.open(directory)
    winner = tries(world, "t0", "a0")
    running = world.upload(directory, file_of("t1", directory), b"1", task="t1", attempt="a0")
    world.request(directory, winner)
    world.run(directory)
    with pytest.raises(UploadGoneError):
        world.store.upload_part(BUCKET, running.key, running.upload_id, 2, b"2")
    with pytest.raises(UploadGoneError):
        world.store.complete_upload(BUCKET, running.key, running.upload_id, running.etags, length=1)
    late = tries(world, "t1", "a0")
    assert announce(world, directory, late) == 1
    assert announce(world, directory, late) == 0  # it is gone
    assert list(world.visible().values()) == [b"t0 a0"]
    assert upload_ids(world) == theirs
    assert world.record(directory).state is JobState.COMMITTED
