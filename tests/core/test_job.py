"""A job from its first manifest to its end, over the fakes."""

from contextlib import suppress
from functools import partial

import pytest

from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from tests.core.swept import LIMITS, Swept
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash

COMMIT_PATH = [
    "SealJob",
    "VerifyManifests",
    "CheckConditions",
    "DecideCommit",
    "CompleteUploads",
    "BeginPublish",
    "PublishSuccess",
    "TidyUp",
]


@pytest.mark.parametrize("alone", [False, True])
def test_i1_i2_a_job_is_invisible_until_its_decision_and_whole_after(alone: bool) -> None:
    """Whether a call runs several steps, or each is a call of its own."""
    world, directory = World(), job_directory()
    counted = [world.attempt(directory, f"t{number}") for number in range(3)]
    for attempt in counted:
        world.announce(directory, attempt)
    assert world.visible() == {}
    seen_at_decision: list[object] = []
    world.plan.run_before("decide", lambda: seen_at_decision.append(world.visible()))
    world.request(directory, *counted)

    assert run_execution(world.ports, directory, alone=alone) == COMMIT_PATH

    assert seen_at_decision == [{}]
    assert sorted(world.visible().values()) == [b"t0 a0", b"t1 a0", b"t2 a0"]
    result = world.result(directory)
    assert (result.outcome, result.execution) == (Outcome.COMMITTED, "execution-1")
    assert (result.files, result.bytes, result.rows) == (3, 15, 15)
    assert world.record(directory).state is JobState.COMMITTED
    own = [directory.job, directory.request, directory.result, directory.commits]
    assert world.all_keys("sales/_") == ["sales/_SUCCESS", *own], "and nothing else"
    names = [f"/sales/part-t{number}-{JOB}.parquet" for number in range(3)]
    assert world.json("sales/_SUCCESS")["filenames"] == names
    assert (world.open_uploads(), world.ledger.holders) == ([], set())


def test_i4_i5_uploads_and_files_of_others_are_left_alone() -> None:
    world, directory, other = World(), job_directory(), job_directory(OTHER_JOB)
    neighbour = job_directory(NEIGHBOUR, "sales2/")
    for one in (directory, other, neighbour):
        world.open(one)
    others = [world.attempt(other, "t0"), world.attempt(neighbour, "t0")]
    foreign = world.store.create_upload(BUCKET, "sales/x", metadata={}, content_type="x")
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    assert {upload.upload_id for upload in world.store.list_uploads(BUCKET, "")} >= {foreign}
    assert len(world.open_uploads()) == 3
    world.request(other, others[0])
    world.run(other)
    assert len(world.visible("sales/")) == 2


def test_i9_the_marker_of_the_run_before_stays_until_the_new_one_replaces_it() -> None:
    world, directory = World(), job_directory()
    world.store.put(BUCKET, directory.success, b"")
    world.request(directory, world.attempt(directory, "t0"))
    seen: list[bytes] = []

    def look() -> None:
        seen.append(world.store.get(BUCKET, directory.success, max_bytes=10).body)
        seen.append(str(len(world.visible())).encode())

    world.plan.run_before("put", look, where=lambda call: call.key == directory.success)
    world.run(directory)
    assert seen == [b"", b"1"]
    assert world.json(directory.success)["jobId"] == JOB


def test_i9_jobs_that_put_their_markers_at_once_wait_longer_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.plan.run_before(
        "put",
        lambda: world.store.put(BUCKET, directory.success, world.clock.now().encode()),
        times=8,
        where=lambda call: call.key == directory.success,
    )
    pauses: list[float] = []
    monkeypatch.setattr(world.clock, "sleep", pauses.append)
    world.run(directory)
    assert world.json(directory.success)["jobId"] == JOB
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]


def test_running_an_ended_job_again_changes_nothing() -> None:
    world, directory = World(), job_directory()
    world.commit(directory)
    before = {key: world.store.head(BUCKET, key) for key in world.all_keys()}
    assert world.run(directory, "execution-2") == ["SealJob", "PublishSuccess", "TidyUp"]
    assert {key: world.store.head(BUCKET, key) for key in world.all_keys()} == before


@pytest.mark.parametrize("spoilt", [False, True])
def test_i3_i8_a_forgotten_job_that_is_committed_stays_so(spoilt: bool) -> None:
    """Whatever becomes of its ``_job.json``: who may write it opens the job no second time."""
    world, directory = World(), job_directory()
    world.commit(directory)
    visible = world.visible()
    world.ledger.expire()
    if spoilt:
        world.store.put(BUCKET, directory.job, b"{}")
    assert world.run(directory, "execution-2") == ["SealJob", "PublishSuccess", "TidyUp"]
    assert world.record(directory).state is JobState.COMMITTED
    world.store.delete(BUCKET, directory.result)
    world.ledger.expire()
    assert world.run(directory, "execution-3") == ["SealJob", "PublishSuccess", "TidyUp"]
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.result(directory).files == 1
    assert world.visible() == visible


@pytest.mark.parametrize(("verb", "calls"), [("complete_upload", 2), ("advance", 3), ("put", 6)])
def test_i2_i8_a_decided_job_that_the_ledger_forgot_goes_on_from_its_decision(
    verb: str, calls: int
) -> None:
    """At each of these calls of a job."""
    for nth in range(1, calls + 1):
        world, directory = World(), job_directory()
        world.ask(directory, "t0", "t1", idempotency_key="a key")
        world.plan.crash_after(verb, nth=nth)
        with suppress(Crash):
            world.run(directory)
        decided = world.store.head(BUCKET, directory.decision) is not None
        world.ledger.expire()
        entered = world.run(directory, "execution-2")
        assert ("DecideCommit" in entered) is not decided, (verb, nth)
        assert world.result(directory).outcome is Outcome.COMMITTED
        assert len(world.visible()) == 2
        assert world.open_uploads() == []
        assert world.json(directory.decision)["state"] == "COMMITTED"


def test_i4_i8_what_a_client_has_deleted_of_an_undone_job_does_not_come_back() -> None:
    """The event of its request is repeated, and what a late task puts there goes on arrival.

    The sweep puts nothing either, and aborts what a task opened whose event is lost.
    """
    world, directory = Swept(), job_directory()
    world.attempt(directory, "t0")
    world.request_abort(directory)
    world.run(directory)
    world.delete_documents(directory)
    world.run(directory, "execution-2")
    assert world.all_keys(directory.prefix) == []
    world.announce(directory, world.attempt(directory, "t1"))
    assert world.all_keys(directory.prefix) == []
    assert world.open_uploads() == []
    world.attempt(directory, "t2")
    world.later(2 * LIMITS.stuck)
    world.sweep_and_settle()
    assert world.all_keys(directory.prefix) == []
    assert world.open_uploads() == []


def test_i8_a_result_that_is_put_while_its_client_deletes_goes_as_well() -> None:
    """A try of AbortJob was given up, and goes on when a twin has put the result."""
    world, directory = World(), job_directory()
    world.request_abort(directory)
    deletes = partial(world.delete_documents, directory)
    world.plan.run_before("put", deletes, where=lambda call: call.key == directory.result)
    world.run(directory)
    assert world.all_keys(directory.prefix) == []
