"""The check and its repairs, finding by finding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.fsck.findings import Finding
from s3commit.core.fsck.repair import DONE, FAILED, PASSED_OVER, UNKNOWN
from s3commit.core.fsck.verdict import Action
from s3commit.core.model.errors import InvalidInputError, TransientError
from s3commit.core.model.job import Destination
from s3commit.core.model.locks import key_digest
from tests.core.fsck_world import (
    Checked,
    aborted,
    checked,
    committed,
    file_of,
    make,
    rolled_back,
    start_upload,
)
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.faults import FaultPlan


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, [finding.name for finding in found]
    return found[0]


def test_a_missing_file_is_found_and_its_marker_with_it() -> None:
    desk = checked()
    committed(desk.world)
    desk.world.store.delete(BUCKET, file_of(JOB))
    assert desk.names() == ["MARKER_OF_INCOMPLETE", "MISSING"]


def test_i2_on_a_versioned_bucket_what_a_rolled_back_jobs_file_covered_comes_back() -> None:
    desk, key = checked(versioned=True), file_of(JOB, "zombie")
    desk.world.store.put(BUCKET, key, b"before")
    rolled_back(desk.world)
    make(desk.world, key)
    assert only(desk.findings()).name == "LEFT_VISIBLE"
    assert [one.outcomes for one in desk.repair()] == [(DONE,)]
    assert desk.world.visible() == {key: b"before"}


def of_aborted(desk: Checked) -> None:
    aborted(desk.world)
    make(desk.world, file_of(JOB, "zombie"))


def of_committed(desk: Checked) -> None:
    committed(desk.world)
    make(desk.world, file_of(JOB, "dead"))


def of_forgotten(desk: Checked) -> None:
    rolled_back(desk.world)
    make(desk.world, file_of(JOB, "zombie"))
    desk.lose_ledger()


def older(desk: Checked) -> None:
    make(desk.world, file_of(JOB, "before"))
    rolled_back(desk.world)


def unproven(desk: Checked) -> None:
    rolled_back(desk.world)
    desk.world.store.put(BUCKET, file_of(JOB, "by-hand"), b"who knows")
    make(desk.world, file_of(JOB, "theirs"), job_id=NEIGHBOUR)


@pytest.mark.parametrize(
    ("arrange", "names"),
    [
        (of_aborted, ["VISIBLE_UNDECIDED"]),
        (of_committed, ["UNCOUNTED"]),
        (of_forgotten, ["LEFT_VISIBLE"]),
        (older, ["LEFT_VISIBLE"]),
        (unproven, ["UNPROVEN"]),
    ],
)
def test_i5_i12_without_a_decision_in_the_ledger_and_proof_no_visible_object_is_deleted(
    arrange: Callable[[Checked], None], names: list[str]
) -> None:
    """A result and a list prove nothing: whoever may put objects can write them."""
    desk = checked()
    arrange(desk)
    before = desk.world.visible()
    assert desk.names() == names
    desk.repair()
    assert desk.world.visible() == before


def test_i4_uploads_of_ended_jobs_are_aborted_and_no_others() -> None:
    desk = checked()
    aborted(desk.world)
    live = job_directory(OTHER_JOB)
    desk.world.open(live)
    for name in (
        f"part-{JOB}.x",
        f"part-{OTHER_JOB}.x",
        f"part-{NEIGHBOUR}.x",
        "nobody's.csv",
    ):
        start_upload(desk.world, f"sales/{name}")
    start_upload(desk.world, f"sales2/part-{JOB}.x")
    assert desk.names() == ["UPLOAD_LEFT", "UPLOAD_OF_NOBODY"]
    desk.repair()
    assert sorted(desk.world.open_uploads()) == [
        "sales/nobody's.csv",
        f"sales/part-{OTHER_JOB}.x",
        f"sales/part-{NEIGHBOUR}.x",
        f"sales2/part-{JOB}.x",
    ]


def test_a_result_that_contradicts_the_ledger_is_only_told() -> None:
    desk = checked()
    directory = committed(desk.world)
    other = aborted(desk.world, OTHER_JOB)
    body = desk.world.store.get(BUCKET, other.result, max_bytes=10**6).body
    desk.world.store.put(BUCKET, directory.result, body.replace(OTHER_JOB.encode(), JOB.encode()))
    desk.world.store.delete(BUCKET, file_of(JOB))
    assert only(desk.findings()).name == "RESULT_CONTRADICTS"


def test_a_job_without_its_result_and_one_that_stands_still_get_an_execution() -> None:
    desk = checked()
    directory = aborted(desk.world)
    desk.world.store.delete(BUCKET, directory.result)
    standing = job_directory(OTHER_JOB)
    desk.world.open(standing)
    desk.world.request(standing)
    assert desk.names() == ["REQUEST_UNHEARD", "RESULT_MISSING"]
    assert [one.outcomes for one in desk.repair()] == [(DONE,), (DONE,)]
    generation = desk.world.record(directory).generation
    assert desk.hands.started == [(JOB, generation), (OTHER_JOB, 0)]


def test_a_live_job_is_left_to_its_execution() -> None:
    world = World(plan=FaultPlan().fail("decide", TransientError("away"), times=None))
    desk = Checked(world)
    directory = job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    with pytest.raises(TransientError):
        world.run(directory)
    assert desk.names() == ["NOT_GOING_ON"]
    desk.hands.running.add(JOB)
    assert desk.findings() == []


def test_a_job_that_was_taken_over_since_is_passed_over() -> None:
    desk = checked()
    directory = job_directory()
    desk.world.open(directory)
    desk.world.request(directory)

    def taken() -> None:
        desk.world.run(directory)

    desk.world.plan.run_before("job", taken, nth=2)
    assert desk.repair()[0].outcomes == (PASSED_OVER,)
    assert desk.hands.started == []


def test_jobs_that_the_ledger_has_forgotten_are_as_fine_as_before() -> None:
    desk = checked()
    directory = committed(desk.world)
    aborted(desk.world, OTHER_JOB)
    desk.lose_ledger()
    assert desk.findings() == []
    for key in desk.world.all_keys(directory.prefix):
        desk.world.store.delete(BUCKET, key)
    assert desk.findings() == []


def test_a_half_visible_job_without_a_record_gets_an_execution_and_nothing_else() -> None:
    world = World()
    desk = Checked(world)
    directory = job_directory()
    attempt = world.attempt(directory, "t0")
    world.request(directory, attempt)
    make(world, file_of(JOB, "t1"))
    assert desk.names() == ["HALF_VISIBLE", "REQUEST_UNHEARD"]
    assert {one.action for found in desk.findings() for one in found.repairs} == {
        Action.START_EXECUTION
    }


def test_i9_a_marker_of_a_job_that_was_not_committed_goes_and_others_stay() -> None:
    desk = checked()
    committed(desk.world)
    other = aborted(desk.world, OTHER_JOB)
    marker = desk.world.store.get(BUCKET, other.success, max_bytes=10**6).body
    lie = marker.replace(JOB.encode(), OTHER_JOB.encode())
    desk.world.store.put(BUCKET, other.success, lie)
    assert only(desk.findings()).name == "MARKER_OF_UNDONE"
    desk.repair()
    assert desk.world.store.head(BUCKET, other.success) is None
    desk.world.store.put(BUCKET, other.success, lie.replace(b'"committer":"s3commit"', b'"x":1'))
    assert desk.findings() == []


def test_i11_notes_of_jobs_that_were_not_committed_go_and_others_stay() -> None:
    desk = checked()
    directory = committed(desk.world, idempotency_key="one")
    other = aborted(desk.world, OTHER_JOB, idempotency_key="two")
    note = desk.world.store.get(BUCKET, directory.once(key_digest("one")), max_bytes=10**6).body
    left = note.replace(JOB.encode(), OTHER_JOB.encode()).replace(b'"one"', b'"two"')
    desk.world.store.put(BUCKET, other.once(key_digest("two")), left)
    unknown = left.replace(OTHER_JOB.encode(), NEIGHBOUR.encode())
    desk.world.store.put(BUCKET, other.once(key_digest("three")), unknown)
    desk.world.store.put(BUCKET, other.once(key_digest("four")), b"{")
    assert desk.names() == ["ONCE_LEFT", "ONCE_OF_NOBODY", "ONCE_UNREADABLE"]
    desk.repair()
    assert desk.world.store.head(BUCKET, directory.once(key_digest("one"))) is not None
    assert desk.world.store.head(BUCKET, other.once(key_digest("two"))) is None


def test_working_objects_stay_while_an_upload_of_their_job_could_not_be_aborted() -> None:
    desk = checked()
    directory = committed(desk.world)
    desk.world.attempt(directory, "late")
    desk.world.plan.fail("abort_upload", TransientError("slow down"), times=None)
    outcomes = {one.finding.name: one.outcomes for one in desk.repair()}
    assert outcomes == {"UPLOAD_LEFT": (UNKNOWN,), "SCRATCH_LEFT": (PASSED_OVER,)}
    assert desk.names() == ["SCRATCH_LEFT", "UPLOAD_LEFT"]


def test_a_failed_repair_says_why_and_the_next_one_is_done() -> None:
    desk = checked()
    rolled_back(desk.world)
    for name in ("a", "b"):
        make(desk.world, file_of(JOB, name))
    desk.world.plan.fail("delete", InvalidInputError("no"), times=1)
    first, second = desk.repair()
    assert (first.outcomes, first.why) == ((FAILED,), "no")
    assert second.outcomes == (DONE,)


def test_jobs_of_s3a_are_for_the_rescue() -> None:
    desk = checked()
    directory = job_directory()
    desk.world.store.put(BUCKET, f"{directory.s3a}00/task_1.pendingset", b"{}")
    desk.world.store.put(BUCKET, f"sales/__magic/job-{OTHER_JOB}/x.pending", b"{}")
    assert desk.names() == ["S3A_LEFTOVER", "S3A_LEFTOVER"]
    assert [one.repairs for one in desk.findings()] == [(), ()]


@pytest.mark.parametrize("what", ["", "_commits/", "__magic_job-"])
def test_i5_nothing_of_a_copied_table_is_touched(what: str) -> None:
    desk = checked()
    world = desk.world
    committed(world)
    for key in world.all_keys(f"sales/{what}"):
        body = world.store.get(BUCKET, key, max_bytes=10**6).body
        world.store.put(BUCKET, f"copy/{key[len('sales/') :]}", body)
    start_upload(world, f"copy/part-x-{JOB}.csv")
    make(world, f"copy/part-dead-{JOB}.csv")
    copy = Checked(world, destination=Destination(BUCKET, "copy/"))
    assert copy.findings() == []
    desk.lose_ledger()
    assert copy.findings() == []


def test_a_job_whose_id_is_one_elsewhere_too_is_a_job_of_its_own() -> None:
    desk = checked()
    committed(desk.world)
    elsewhere = job_directory(JOB, "orders/")
    desk.world.open(elsewhere)
    there = Checked(desk.world, destination=Destination(BUCKET, "orders/"))
    assert there.names() == []
    desk.world.request(elsewhere)
    assert there.names() == ["REQUEST_UNHEARD"]


def test_an_upload_of_a_job_in_a_directory_below_is_not_nobodys() -> None:
    desk = checked()
    below = job_directory(NEIGHBOUR, "sales/dt=1/")
    desk.world.open(below)
    desk.world.attempt(below, "t0")
    assert desk.findings() == []


def test_an_upload_of_a_job_of_which_only_the_commit_manifest_is_left_is_told_of() -> None:
    """Nothing says any more when the job began, so it is not aborted before it is old."""
    desk = checked()
    directory = job_directory()
    desk.world.request(directory, desk.world.attempt(directory, "t0"))
    desk.world.run(directory)
    for key in desk.world.all_keys(directory.prefix):
        desk.world.store.delete(BUCKET, key)
    desk.lose_ledger()
    start_upload(desk.world, f"sales/late-{JOB}.parquet")
    assert "UPLOAD_OF_NOBODY" in desk.names()
    desk.repair()
    assert len(desk.world.open_uploads()) == 1
