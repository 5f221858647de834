"""The check and its repairs, finding by finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.formats.documents import encode_job, encode_location
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.fsck.findings import Finding, Repair, decode_plan, encode_plan
from s3commit.core.fsck.rebuild import rebuild
from s3commit.core.fsck.repair import DONE, FAILED, NOT_CHOSEN, PASSED_OVER, UNKNOWN
from s3commit.core.fsck.verdict import Action
from s3commit.core.model.errors import InvalidInputError, TransientError
from s3commit.core.model.job import Conflict, Destination, JobSpec, Names
from s3commit.core.model.locks import key_digest
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.testing.execution import run_execution
from s3commit.testing.faults import FaultPlan
from tests.core.fsck_world import SALES, Checked
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory


def checked(versioned: bool = False) -> Checked:
    return Checked(World(versioned=versioned))


def committed(world: World, job_id: str = JOB, **spec: Any) -> JobDirectory:
    directory = job_directory(job_id)
    world.open(directory, **spec)
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    return directory


def aborted(world: World, job_id: str = JOB, **spec: Any) -> JobDirectory:
    directory = job_directory(job_id)
    world.open(directory, **spec)
    world.request_abort(directory)
    world.run(directory)
    return directory


def rolled_back(world: World, job_id: str = JOB) -> JobDirectory:
    """A job of which an upload was lost after the decision; nothing of it is visible."""
    directory = job_directory(job_id)
    world.request(directory, world.attempt(directory, "t0"))

    def lose() -> None:
        for upload in list(world.store.list_uploads(BUCKET, "sales/")):
            world.store.abort_upload(BUCKET, upload.key, upload.upload_id)

    world.plan.run_after("decide", lose)
    world.run(directory)
    assert world.record(directory).state is JobState.ROLLED_BACK
    return directory


def make(world: World, key: str, body: bytes = b"x", job_id: str = JOB) -> None:
    """An object at ``key`` that says it is the job's."""
    metadata = {META_JOB: job_id, META_TASK: "t9", META_ATTEMPT: "a9"}
    upload = world.store.create_upload(BUCKET, key, metadata=metadata, content_type="")
    etag = world.store.upload_part(BUCKET, key, upload, 1, body)
    world.store.complete_upload(BUCKET, key, upload, [etag], length=len(body))


def file_of(job_id: str, task: str = "t0") -> str:
    return f"sales/part-{task}-{job_id}.parquet"


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, [finding.name for finding in found]
    return found[0]


def test_nothing_is_found_where_nothing_is() -> None:
    assert checked().findings() == []


def test_a_destination_of_committed_aborted_and_rolled_back_jobs_is_clean() -> None:
    desk = checked()
    committed(desk.world)
    aborted(desk.world, OTHER_JOB)
    assert desk.findings() == []


def test_a_missing_file_is_found_and_its_marker_with_it() -> None:
    desk = checked()
    committed(desk.world)
    desk.world.store.delete(BUCKET, file_of(JOB))
    assert desk.names() == ["MARKER_OF_INCOMPLETE", "MISSING"]


def test_the_version_to_restore_is_named_on_a_versioned_bucket() -> None:
    desk = checked(versioned=True)
    committed(desk.world)
    before = desk.world.store.head(BUCKET, file_of(JOB))
    desk.world.store.put(BUCKET, file_of(JOB), b"other bytes")
    found = next(one for one in desk.findings() if one.name == "CHANGED")
    assert before is not None
    assert found.restore == before.version_id


def test_a_file_that_a_later_job_replaced_is_not_missing() -> None:
    desk = checked()
    committed(desk.world)
    committed(desk.world, OTHER_JOB, conflict=Conflict.REPLACE)
    assert desk.findings() == []


def test_a_job_that_replaced_files_before_explains_no_file_that_is_missing() -> None:
    desk = checked()
    desk.world.store.put(BUCKET, "sales/old.csv", b"old")
    committed(desk.world, OTHER_JOB, conflict=Conflict.REPLACE)
    committed(desk.world)
    desk.world.store.delete(BUCKET, file_of(JOB))
    assert "MISSING" in desk.names()


def test_i2_an_object_of_a_job_that_was_rolled_back_is_deleted_as_it_was_seen() -> None:
    desk = checked()
    rolled_back(desk.world)
    make(desk.world, file_of(JOB, "zombie"))
    assert only(desk.findings()).name == "LEFT_VISIBLE"
    assert [one.outcomes for one in desk.repair()] == [(DONE,)]
    assert desk.world.visible() == {}
    assert desk.findings() == []


@pytest.mark.parametrize("ended", [aborted, rolled_back])
def test_i12_without_a_decision_in_the_ledger_no_visible_object_is_deleted(
    ended: Callable[[World], JobDirectory],
) -> None:
    """A result and a list prove nothing: whoever may put objects can write them."""
    desk = checked()
    directory = ended(desk.world)
    make(desk.world, file_of(JOB, "zombie"))
    if ended is rolled_back:
        desk.lose_ledger()
    for key in (file_of(JOB, "zombie"), directory.result):
        assert desk.world.store.head(BUCKET, key) is not None
    desk.repair()
    assert list(desk.world.visible()) == [file_of(JOB, "zombie")]


def test_i12_an_object_that_is_older_than_its_job_is_not_deleted() -> None:
    desk = checked()
    make(desk.world, file_of(JOB, "before"))
    rolled_back(desk.world)
    assert only(desk.findings()).name == "LEFT_VISIBLE"
    desk.repair()
    assert list(desk.world.visible()) == [file_of(JOB, "before")]


def test_i2_on_a_versioned_bucket_what_it_covered_comes_back() -> None:
    desk = checked(versioned=True)
    desk.world.store.put(BUCKET, file_of(JOB, "zombie"), b"before")
    rolled_back(desk.world)
    make(desk.world, file_of(JOB, "zombie"))
    desk.repair()
    assert desk.world.visible() == {file_of(JOB, "zombie"): b"before"}


def test_i5_an_object_without_proof_is_left_where_it_is() -> None:
    desk = checked()
    aborted(desk.world)
    desk.world.store.put(BUCKET, file_of(JOB, "by-hand"), b"who knows")
    make(desk.world, file_of(JOB, "theirs"), job_id=NEIGHBOUR)
    assert only(desk.findings()).name == "UNPROVEN"
    desk.repair()
    assert len(desk.world.visible()) == 2


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
        desk.world.store.create_upload(BUCKET, f"sales/{name}", metadata={}, content_type="")
    desk.world.store.create_upload(BUCKET, f"sales2/part-{JOB}.x", metadata={}, content_type="")
    assert desk.names() == ["UPLOAD_LEFT", "UPLOAD_OF_NOBODY"]
    desk.repair()
    assert sorted(desk.world.open_uploads()) == [
        "sales/nobody's.csv",
        f"sales/part-{OTHER_JOB}.x",
        f"sales/part-{NEIGHBOUR}.x",
        f"sales2/part-{JOB}.x",
    ]


def test_i4_uploads_with_exact_names_are_found_by_the_manifests_that_were_left() -> None:
    desk = checked()
    directory = job_directory()
    desk.world.open(directory, names=Names.EXACT)
    desk.world.request_abort(directory)
    desk.world.run(directory)
    desk.world.attempt(directory, "late", files={"a.csv": b"late"})
    theirs = "sales/b.csv"
    desk.world.store.create_upload(BUCKET, theirs, metadata={}, content_type="")
    assert desk.names() == ["SCRATCH_LEFT", "UPLOAD_LEFT"]
    desk.repair()
    assert desk.world.open_uploads() == [theirs]
    assert desk.findings() == []


def test_i12_an_unlisted_file_of_a_committed_job_is_told_and_stays() -> None:
    desk = checked()
    committed(desk.world)
    make(desk.world, file_of(JOB, "dead"))
    assert only(desk.findings()).name == "UNCOUNTED"
    desk.repair()
    assert sorted(desk.world.visible()) == [file_of(JOB, "dead"), file_of(JOB)]


def test_a_list_that_can_not_be_read_leaves_the_jobs_files_alone() -> None:
    desk = checked()
    directory = committed(desk.world)
    lines = desk.world.store.get(BUCKET, directory.commits, max_bytes=10**6).body.splitlines()
    desk.world.store.put(BUCKET, directory.commits, lines[0])
    make(desk.world, file_of(JOB, "dead"))
    assert desk.names() == ["UNREADABLE"]
    assert desk.findings()[0].repairs == ()


def test_a_list_that_is_gone_leaves_the_jobs_files_alone() -> None:
    desk = checked()
    directory = committed(desk.world)
    desk.world.store.delete(BUCKET, directory.commits)
    assert desk.names() == ["LIST_MISSING", "MARKER_WITHOUT_LIST"]


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
    world.open(directory)
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
    world.open(directory)
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


def test_stray_manifests_and_plans_of_an_ended_job_go() -> None:
    desk = checked()
    directory = committed(desk.world)
    desk.world.store.put(BUCKET, directory.plan("0" * 64), b"{}")
    desk.world.attempt(directory, "late")
    assert desk.names() == ["SCRATCH_LEFT", "UPLOAD_LEFT"]
    desk.repair()
    assert desk.findings() == []
    assert sorted(desk.world.all_keys(directory.prefix)) == sorted(
        [directory.job, directory.request, directory.result]
    )


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


def test_i5_nothing_of_a_copied_table_is_touched() -> None:
    desk = checked()
    directory = committed(desk.world)
    world = desk.world
    for key in world.all_keys("sales/"):
        body = world.store.get(BUCKET, key, max_bytes=10**6).body
        world.store.put(BUCKET, f"copy/{key[len('sales/') :]}", body)
    world.store.create_upload(BUCKET, f"copy/part-x-{JOB}.csv", metadata={}, content_type="")
    copy = Checked(world, destination=Destination(BUCKET, "copy/"))
    assert copy.findings() == []
    desk.lose_ledger()
    assert copy.findings() == []
    assert directory.job_id == JOB


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


# The plan.


def repairs(desk: Checked) -> list[Repair]:
    return [one for finding in desk.findings() for one in finding.repairs]


def test_a_plan_is_read_as_it_was_written() -> None:
    desk = checked(versioned=True)
    rolled_back(desk.world)
    make(desk.world, file_of(JOB, "zombie"))
    desk.world.store.create_upload(BUCKET, f"sales/part-{JOB}.x", metadata={}, content_type="")
    desk.world.open(job_directory(OTHER_JOB))
    desk.world.request(job_directory(OTHER_JOB))
    planned = repairs(desk)
    assert {one.action for one in planned} == set(Action)
    body = b"".join(encode_plan(SALES, planned))
    assert decode_plan(body, SALES) == planned
    with pytest.raises(InvalidInputError, match="not of s3://lake/orders/"):
        decode_plan(body, Destination(BUCKET, "orders/"))


def test_only_what_the_plan_names_is_repaired() -> None:
    desk = checked()
    rolled_back(desk.world)
    for name in ("a", "b"):
        make(desk.world, file_of(JOB, name))
    chosen = [one for one in repairs(desk) if "-a-" in one.key]
    assert [one.outcomes for one in desk.repair(chosen)] == [(DONE,), (NOT_CHOSEN,)]
    assert list(desk.world.visible()) == [file_of(JOB, "b")]


def test_i5_a_plan_that_somebody_made_up_touches_nothing() -> None:
    desk = checked()
    committed(desk.world)
    facts = desk.world.store.head(BUCKET, file_of(JOB))
    assert facts is not None
    made_up = Repair(Action.DELETE_OBJECT, "x", BUCKET, facts.key, JOB, etag=facts.etag)
    assert desk.repair([made_up]) == []
    assert list(desk.world.visible()) == [file_of(JOB)]


def test_i5_an_object_that_became_another_since_it_was_planned_stays() -> None:
    desk = checked()
    rolled_back(desk.world)
    make(desk.world, file_of(JOB, "a"))
    chosen = repairs(desk)
    make(desk.world, file_of(JOB, "a"), b"another")
    assert [one.outcomes for one in desk.repair(chosen)] == [(NOT_CHOSEN,)]
    assert len(desk.world.visible()) == 1


@pytest.mark.parametrize("line", [b'{"action":"delete-bucket"}', b"[]", b"{"])
def test_a_plan_of_something_else_is_refused(line: bytes) -> None:
    head = next(iter(encode_plan(SALES, [])))
    with pytest.raises(InvalidInputError):
        decode_plan(head + line, SALES)


# What a listed file's etag tells.


@pytest.mark.parametrize(
    ("etag", "found"),
    [
        ('"0123456789abcdef0123456789abcdef-1"', ["UNSURE"]),
        ('"0-2"', ["CHANGED"]),
        ('"0"', ["CHANGED"]),
    ],
)
def test_an_etag_that_can_not_be_foretold_is_no_other_file(etag: str, found: list[str]) -> None:
    desk = checked()
    committed(desk.world)
    (version,) = desk.world.store._bucket(BUCKET).objects[file_of(JOB)]
    assert version.etag.endswith('-1"')
    without = replace(version, etag=etag, metadata={})
    desk.world.store._bucket(BUCKET).objects[file_of(JOB)] = [without]
    assert [name for name in desk.names() if not name.startswith("MARKER")] == found
    encrypted = replace(version, etag=etag)
    desk.world.store._bucket(BUCKET).objects[file_of(JOB)] = [encrypted]
    assert desk.findings() == []


def test_files_are_judged_in_batches_as_they_are_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = checked()
    for job_id in (JOB, OTHER_JOB, NEIGHBOUR):
        committed(desk.world, job_id)
        make(desk.world, file_of(job_id, "dead"), job_id=job_id)
        desk.world.store.delete(BUCKET, file_of(job_id))
    desk.world.store.create_upload(BUCKET, f"sales/x-{JOB[:-1]}9.csv", metadata={}, content_type="")
    at_once = sorted((one.name, one.key) for one in desk.findings())
    assert len(at_once) == 8
    monkeypatch.setattr("s3commit.core.fsck.expected.BATCH_FILES", 1)
    assert sorted((one.name, one.key) for one in desk.findings()) == at_once


def test_files_at_a_jobs_locations_are_looked_at_where_they_lie() -> None:
    desk = checked()
    world, directory = desk.world, job_directory()
    elsewhere = "archive/dt=1/"
    spec = JobSpec(JOB, directory.destination, locations={"dt=1/": elsewhere})
    world.store.put(BUCKET, directory.job, encode_job(spec))
    there = directory.at(elsewhere)
    world.store.put(BUCKET, there.job, encode_location(spec, elsewhere))
    attempt = world.attempt(there, "t0")
    world.request(directory, replace(attempt, location=elsewhere))
    world.run(directory)
    key = f"{elsewhere}part-t0-{JOB}.parquet"
    assert world.store.head(BUCKET, key) is not None
    assert desk.findings() == []
    assert Checked(world, destination=there.destination).findings() == []
    desk.lose_ledger()
    left_out = list(rebuild(desk.fsck, Destination(BUCKET, "archive/")))
    assert [(one.state, one.is_left) for one in left_out] == [(None, False)]
    world.store.delete(BUCKET, key)
    assert "MISSING" in desk.names()


def test_a_job_that_replaces_and_commits_while_the_check_runs_is_no_finding() -> None:
    desk = checked()
    committed(desk.world)
    other = job_directory(OTHER_JOB)
    desk.world.open(other, conflict=Conflict.REPLACE)
    attempt = desk.world.attempt(other, "t0")
    desk.world.announce(other, attempt)
    desk.world.request(other, attempt)
    desk.hands.running.add(OTHER_JOB)

    def commits() -> None:
        run_execution(Ports(desk.world.store, desk.world.ledger, desk.world.clock), other)

    desk.world.plan.run_before("list", commits, where=lambda call: call.key == "sales/")
    assert desk.findings() == []
    assert list(desk.world.visible()) == [file_of(OTHER_JOB)]


def test_i9_a_marker_that_came_while_the_check_ran_is_honest() -> None:
    desk = checked()

    def commits() -> None:
        committed(desk.world)

    desk.world.plan.run_before("list", commits, where=lambda call: call.key == "sales/")
    assert desk.findings() == []


def test_i5_an_object_that_becomes_another_at_the_last_moment_stays() -> None:
    desk = checked()
    rolled_back(desk.world)
    key = file_of(JOB, "zombie")
    make(desk.world, key)
    desk.world.plan.run_before("delete", lambda: desk.world.store.put(BUCKET, key, b"new"))
    assert [one.outcomes for one in desk.repair()] == [(PASSED_OVER,)]
    assert desk.world.visible() == {key: b"new"}


def test_i5_the_lists_of_a_copied_table_say_where_they_belong() -> None:
    """Its job directories were left out, as the runbook advises."""
    desk = checked()
    world, directory = desk.world, committed(desk.world)
    body = world.store.get(BUCKET, directory.commits, max_bytes=10**6).body
    world.store.put(BUCKET, directory.at("copy/").commits, body)
    desk.lose_ledger()
    make(world, f"copy/part-dead-{JOB}.csv")
    copy = Checked(world, destination=Destination(BUCKET, "copy/"))
    assert copy.findings() == []


def test_a_job_that_ends_while_the_check_reads_has_its_result() -> None:
    desk = checked()
    directory = job_directory()
    desk.world.open(directory)
    desk.world.request(directory, desk.world.attempt(directory, "t0"))

    def ends() -> None:
        run_execution(Ports(desk.world.store, desk.world.ledger, desk.world.clock), directory)

    desk.world.plan.run_before("job", ends)
    assert [name for name in desk.names() if name != "SCRATCH_LEFT"] == []


def test_what_an_execution_is_tidying_up_is_left_to_it() -> None:
    desk = checked()
    directory = committed(desk.world)
    desk.world.attempt(directory, "late")
    desk.hands.running.add(JOB)
    assert desk.findings() == []
