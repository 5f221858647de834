"""At most one attempt of a task counts, and the uploads of all others are aborted (I3, I4).

Speculation, a stage that is retried, a manifest that comes after the decision or the end, a task
that nobody has stopped.
"""

import pytest

from s3commit.core.commit.note_arrivals import note_manifest
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.outcome import Outcome
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, OTHER_JOB, World, job_directory
from tests.fakes.faults import FaultPlan


def file_of(task: str, directory: JobDirectory) -> str:
    return f"part-{task}-{directory.job_id}.csv"


def tries(
    world: World, task: str, attempt: str, directory: JobDirectory | None = None
) -> CountedAttempt:
    """A finished attempt; its file says which one wrote it."""
    directory = directory or job_directory()
    files = {file_of(task, directory): f"{task} {attempt}".encode()}
    return world.attempt(directory, task, attempt, files=files)


def announce(world: World, directory: JobDirectory, attempt: CountedAttempt) -> None:
    """The event of a manifest, beside the calls that are counted."""
    note_manifest(world.unplanned, world.late, BUCKET, directory.prefix + attempt.manifest)


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


@pytest.mark.parametrize("fate", [Outcome.COMMITTED, Outcome.ABORTED, Outcome.ROLLED_BACK])
@pytest.mark.parametrize("when", ["before", "after"])
def test_i3_i4_a_loser_that_finishes_at_any_moment_neither_appears_nor_stays(
    when: str, fate: Outcome
) -> None:
    """Its manifest arrives at each single call of the pipeline in turn, and at last after all."""

    def check(point: int) -> FaultPlan:
        world, directory = World(), job_directory()
        theirs = bystanders(world)
        world.open(directory)
        winner = tries(world, "t0", "a0")
        if fate is Outcome.ABORTED:
            world.request_abort(directory)
        else:
            world.request(directory, winner)
        if fate is Outcome.ROLLED_BACK:
            world.lose_after_decision(f"sales/{file_of('t0', directory)}", slice(1))
        late: list[CountedAttempt] = []

        def finish() -> None:
            late.append(tries(world, "t0", "loser"))
            announce(world, directory, late[0])

        hook = world.plan.run_before if when == "before" else world.plan.run_after
        hook(None, finish, nth=point)
        world.run(directory)
        if not late:
            finish()
        announce(world, directory, late[0])  # the event once more
        assert world.result(directory).outcome is fate
        expected = [b"t0 a0"] if fate is Outcome.COMMITTED else []
        assert list(world.visible().values()) == expected
        assert upload_ids(world) == theirs, (point, when)
        return world.plan

    every_point(check, least=10)


def test_i4_a_crowd_of_late_manifests_starts_one_execution_an_hour() -> None:
    world, directory = World(), job_directory()
    world.commit(directory)
    for number in range(5):
        announce(world, directory, tries(world, "t1", f"a{number}"))
        world.clock.advance(60)
    assert len(world.late.started) == 1
    assert not [one for one in world.ledger.attempts(directory.ref) if one.task_id == "t1"]
    world.clock.advance(3600)
    announce(world, directory, tries(world, "t1", "a9"))
    assert len(world.late.started) == 2
    assert world.open_uploads() == []
    assert world.all_keys(directory.tasks) == []
