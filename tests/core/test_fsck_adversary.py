"""What somebody who means harm, or copies carelessly, makes a repair do: nothing (I5, I7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.formats.documents import encode_result
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.formats.published import CommitHeader, CommittedFile, commit_lines
from s3commit.core.fsck.rebuild import rebuild
from s3commit.core.fsck.repair import PASSED_OVER
from s3commit.core.model.job import Conflict, Destination, JobResult, Names, Outcome
from s3commit.core.model.pending import PendingSet
from s3commit.core.model.states import JobState
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
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, REF, World, job_directory

ELSEWHERE = "archive/dt=1/"


def forge_list(world: World, directory: JobDirectory, *files: CommittedFile, **header: Any) -> None:
    """A list in ``_commits/`` that nobody of ours wrote."""
    first = CommitHeader(
        directory.job_id,
        directory.destination.uri,
        "2026-11-21T00:00:00.000Z",
        files=len(files),
        bytes=sum(file.length for file in files),
        rows=None,
    )
    lines = commit_lines(replace(first, **header), files)
    world.store.put(BUCKET, directory.commits, b"".join(lines))


def forge_result(world: World, directory: JobDirectory, outcome: Outcome) -> None:
    now = "2026-11-21T00:00:00.000Z"
    result = JobResult(directory.job_id, outcome, None, 0, 0, None, None, now, "arn")
    world.store.put(BUCKET, directory.result, encode_result(result))


def changed_by_repair(desk: Checked) -> bool:
    """Whether a repair of everything deletes or aborts anything at all."""

    def state() -> object:
        world = desk.world
        return world.all_keys(), list(world.store.list_uploads(BUCKET, ""))

    before = state()
    desk.repair()
    return state() != before


@pytest.mark.parametrize("is_known", [False, True], ids=["forgotten", "in the ledger"])
def test_i7_a_list_that_claims_a_strangers_directory_as_its_location_acts_nowhere_there(
    is_known: bool,
) -> None:
    desk = checked()
    theirs = job_directory(JOB, "orders/")
    desk.world.open(theirs)
    desk.world.request(theirs, desk.world.attempt(theirs, "t0"))
    desk.world.run(theirs)
    start_upload(desk.world, f"orders/part-late-{JOB}.csv")
    files: list[CommittedFile] = []
    if is_known:
        committed(desk.world)
        facts = desk.world.store.head(BUCKET, file_of(JOB))
        assert facts is not None
        files = [CommittedFile(facts.key, facts.length, facts.etag, None)]
    else:
        desk.lose_ledger()  # or it was forgotten after its 90 days
    forge_list(desk.world, job_directory(), *files, locations={"dt=1/": "orders/"})
    make(desk.world, f"orders/part-dead-{JOB}.csv")
    assert desk.names() == []
    assert not changed_by_repair(desk)


def test_i7_a_list_that_names_files_outside_its_places_is_not_believed() -> None:
    desk = checked()
    forge_list(desk.world, job_directory(), CommittedFile("orders/x.csv", 3, '"e"', None))
    assert desk.names() == ["UNREADABLE"]
    assert "orders/x.csv" in desk.findings()[0].detail


def two_places(world: World, **spec: Any) -> JobDirectory:
    """A job of one file at a location, which is committed."""
    directory = job_directory()
    world.open(directory, locations={"dt=1/": ELSEWHERE}, **spec)
    attempt = world.attempt(directory.at(ELSEWHERE), "t0")
    world.request(directory, replace(attempt, location=ELSEWHERE))
    world.run(directory)
    return directory


def test_a_location_whose_documents_are_retired_is_looked_at_and_not_acted_on() -> None:
    desk = checked()
    directory = two_places(desk.world)
    for key in [*desk.world.all_keys(directory.prefix), *desk.world.all_keys("archive/dt=1/__")]:
        desk.world.store.delete(BUCKET, key)
    desk.lose_ledger()
    assert desk.findings() == []
    make(desk.world, f"{ELSEWHERE}part-dead-{JOB}.csv")
    start_upload(desk.world, f"{ELSEWHERE}part-late-{JOB}.csv")
    assert not changed_by_repair(desk)
    desk.world.store.delete(BUCKET, f"{ELSEWHERE}part-t0-{JOB}.parquet")
    assert "MISSING" in desk.names()


@pytest.mark.parametrize("is_lost", [False, True])
def test_i4_what_an_ended_job_left_at_its_location_is_found_and_goes(is_lost: bool) -> None:
    desk = checked()
    directory = two_places(desk.world)
    desk.world.attempt(directory.at(ELSEWHERE), "late")
    start_upload(desk.world, f"{ELSEWHERE}part-{NEIGHBOUR}.csv")
    make(desk.world, f"{ELSEWHERE}part-dead-{JOB}.csv")
    if is_lost:
        desk.lose_ledger()
    assert desk.names() == ["SCRATCH_LEFT", "UNCOUNTED", "UPLOAD_LEFT"]
    desk.repair()
    assert desk.names() == ["UNCOUNTED"]
    assert desk.world.open_uploads() == [f"{ELSEWHERE}part-{NEIGHBOUR}.csv"]


def test_i4_an_aborted_jobs_uploads_at_its_location_are_found() -> None:
    desk = checked()
    directory = job_directory()
    desk.world.open(directory, locations={"dt=1/": ELSEWHERE})
    desk.world.request_abort(directory)
    desk.world.run(directory)
    desk.world.upload(directory.at(ELSEWHERE), f"late-{JOB}.csv", b"x", task="t0", attempt="a0")
    assert desk.names() == ["UPLOAD_LEFT"]
    desk.repair()
    assert desk.world.open_uploads() == []


def test_locations_of_jobs_that_lie_in_each_other_are_looked_at_once() -> None:
    desk = checked()
    two_places(desk.world)
    within = f"{ELSEWHERE}_deep/er/"
    other = job_directory(OTHER_JOB)
    desk.world.open(other, locations={"dt=2/": within})
    attempt = desk.world.attempt(other.at(within), "t0")
    desk.world.request(other, replace(attempt, location=within))
    desk.world.run(other)
    assert desk.findings() == []


@pytest.mark.parametrize("lied_at", ["sales/", "sales/eu/"])
def test_i5_a_result_that_lies_beside_another_jobs_directory_takes_nothing(lied_at: str) -> None:
    desk = checked()
    other = {"sales/": "sales/eu/", "sales/eu/": "sales/"}[lied_at]
    directory = job_directory(JOB, other)
    desk.world.open(directory)
    desk.world.request(
        directory,
        desk.world.attempt(directory, "t0", files={f"eu/x-{JOB}.csv": b"x", f"y-{JOB}.csv": b""}),
    )
    desk.world.run(directory)
    desk.lose_ledger()
    forge_result(desk.world, job_directory(JOB, lied_at), Outcome.ABORTED)
    start_upload(desk.world, f"sales/eu/part-y-{JOB}.csv")
    there = Checked(desk.world, destination=Destination(BUCKET, lied_at))
    assert not changed_by_repair(there)


@pytest.mark.parametrize("batch", [200_000, 1])
@pytest.mark.parametrize(("wrong", "right"), [(JOB, OTHER_JOB), (OTHER_JOB, JOB)])
def test_i5_a_file_that_another_jobs_list_has_is_never_deleted(
    monkeypatch: pytest.MonkeyPatch, wrong: str, right: str, batch: int
) -> None:
    """A forged manifest of a job with exact names proves by etag that the file is its."""
    monkeypatch.setattr("s3commit.core.fsck.expected.BATCH_FILES", batch)
    desk = checked()
    directory = rolled_back(desk.world, wrong, names=Names.EXACT)
    written = "0b6f6f0e-0000-4000-8000-00000000000f"  # S3A names a write so, and no job
    key = f"sales/part-0-{written}.csv"
    upload = start_upload(desk.world, key)
    etag = desk.world.store.upload_part(BUCKET, key, upload, 1, b"x")
    facts = desk.world.store.complete_upload(BUCKET, key, upload, [etag], length=1)
    file = desk.world.upload(directory, "z", b"x", task="t9", attempt="a9")
    desk.world.store.abort_upload(BUCKET, file.key, file.upload_id)
    forged = PendingSet(directory.job_id, (replace(file, key=key),), "t9", "a9")
    desk.world.drop(directory, forged, "t9", "a9")
    assert "LEFT_VISIBLE" in desk.names(), "else there is nothing to be kept from"
    forge_list(desk.world, job_directory(right), CommittedFile(key, 1, facts.etag, None))
    desk.repair()
    assert key in desk.world.visible()


def test_i12_a_file_below_a_directory_that_has_a_job_of_the_same_id_is_left_to_that_one() -> None:
    desk = Checked(World(), destination=Destination(BUCKET, "sales/dt=1/"))
    rolled_back(desk.world, prefix="sales/dt=1/")
    make(desk.world, f"sales/dt=1/part-{JOB}.csv")
    assert desk.names() == ["LEFT_VISIBLE"]
    desk.world.open(job_directory())
    assert desk.names() == []
    assert not changed_by_repair(desk)


@pytest.mark.parametrize("outer", [False, True])
def test_i12_so_is_an_upload_there(outer: bool) -> None:
    """The job further up has ended too: of which of the two the upload is, nobody knows."""
    desk = Checked(World(), destination=Destination(BUCKET, "sales/dt=1/"))
    rolled_back(desk.world, prefix="sales/dt=1/")
    if outer:
        aborted(desk.world)
    key = f"sales/dt=1/part-{JOB}.csv"
    desk.world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    assert desk.names() == ([] if outer else ["UPLOAD_LEFT"])
    assert changed_by_repair(desk) is not outer


def test_i5_an_upload_of_a_live_job_that_an_ended_jobs_manifest_names_stays() -> None:
    desk = checked()
    live = job_directory(OTHER_JOB)
    desk.world.open(live, names=Names.EXACT)
    desk.world.attempt(live, "t0", files={"a.csv": b"a"})
    (upload,) = desk.world.store.list_uploads(BUCKET, "")
    ended = aborted(desk.world, names=Names.EXACT)
    file = desk.world.upload(ended, "b.csv", b"b", task="t9", attempt="a9")
    forged = replace(file, key=upload.key, upload_id=upload.upload_id)
    pending = PendingSet(JOB, (file, forged), "t9", "a9")
    desk.world.drop_bytes(ended, encode_pendingset(pending), pending, "t9", "a9")
    desk.repair()
    assert desk.world.open_uploads() == ["sales/a.csv"]


def shorten(body: bytes) -> bytes:
    """The list without its last file, and with the counts that it has then."""
    first, one, _ = body.splitlines()
    head = json.loads(first) | {"files": 1, "bytes": json.loads(one)["length"]}
    return json.dumps(head).encode() + b"\n" + one + b"\n"


def cut_off(body: bytes) -> bytes:
    return body.splitlines()[0]


def miscount(body: bytes) -> bytes:
    return body.replace(b'"length":5', b'"length":4')


@pytest.mark.parametrize("is_known", [False, True], ids=["forgotten", "in the ledger"])
@pytest.mark.parametrize("spoil", [shorten, cut_off, miscount, None])
def test_i5_a_list_that_somebody_spoilt_takes_no_file_with_it(
    spoil: Callable[[bytes], bytes] | None, is_known: bool
) -> None:
    """Nor what its job has left: what a list does not have would pass for an uncounted file."""
    desk = checked()
    directory = job_directory()
    desk.world.open(directory)
    desk.world.request(directory, *(desk.world.attempt(directory, task) for task in ("t0", "t1")))
    desk.world.run(directory)
    desk.world.attempt(directory, "late")
    make(desk.world, file_of(JOB, "dead"))
    if not is_known:
        desk.lose_ledger()
    if spoil is None:
        desk.world.store.delete(BUCKET, directory.commits)
        assert desk.names() == ["LIST_MISSING", "MARKER_WITHOUT_LIST"]
    else:
        body = desk.world.store.get(BUCKET, directory.commits, max_bytes=10**6).body
        desk.world.store.put(BUCKET, directory.commits, spoil(body))
        assert desk.names() == ["UNREADABLE"]
    if spoil is shorten:
        told = f"_commits/{JOB}.jsonl, {'COMMITTED' if is_known else 'not in the ledger'}"
        assert desk.findings()[0].detail == told
    assert not changed_by_repair(desk)


@pytest.mark.parametrize("names", Names)
def test_i5_a_list_of_a_job_that_has_only_begun_ends_nothing(names: Names) -> None:
    """Its tasks write; no event has come yet, so that the ledger does not know it."""
    desk = checked()
    directory = job_directory()
    desk.world.open(directory, names=names)
    desk.world.attempt(directory, "t0")
    forge_list(desk.world, directory)
    assert desk.names() == ["LIST_CONTRADICTS"]
    assert not changed_by_repair(desk)


@pytest.mark.parametrize("outcome", Outcome)
def test_i5_a_result_that_somebody_put_beside_a_live_job_ends_nothing(outcome: Outcome) -> None:
    desk = checked()
    directory = job_directory()
    desk.world.open(directory)
    attempt = desk.world.attempt(directory, "t0")
    desk.world.announce(directory, attempt)
    forge_result(desk.world, directory, outcome)
    assert desk.names() == ["LEDGER_SET_BACK"]
    assert not changed_by_repair(desk)


@pytest.mark.parametrize("whole", [False, True], ids=["list alone", "whole"])
def test_i5_a_job_directory_copied_under_another_id_is_unreadable_or_another_job(
    whole: bool,
) -> None:
    desk = checked()
    directory = committed(desk.world)
    own = desk.world.all_keys(directory.prefix) if whole else []
    for key in [*own, directory.commits]:
        body = desk.world.store.get(BUCKET, key, max_bytes=10**6).body
        desk.world.store.put(BUCKET, key.replace(JOB, OTHER_JOB), body)
    make(desk.world, file_of(OTHER_JOB, "dead"), job_id=OTHER_JOB)
    assert desk.names() == ([] if whole else ["UNREADABLE"])
    assert not changed_by_repair(desk)


def test_i5_a_table_copied_from_another_bucket_is_let_be() -> None:
    desk = checked()
    directory = committed(desk.world)
    for key in (directory.job, directory.commits):
        body = desk.world.store.get(BUCKET, key, max_bytes=10**6).body
        desk.world.store.put(BUCKET, key, body.replace(b"s3://lake/", b"s3://pond/"))
    desk.lose_ledger()
    make(desk.world, file_of(JOB, "dead"))
    assert desk.findings() == []


@pytest.mark.parametrize("name", ["größe=ä/ü", "日=1/x", "a b+c%2F&", "dt=😀/a", "dt=\uffee/a"])
def test_keys_of_any_script_come_in_the_order_in_which_s3_has_them(name: str) -> None:
    desk = checked()
    directory = job_directory()
    desk.world.open(directory)
    files = {f"{name}-{n}-{JOB}.csv": b"x" for n in range(3)}
    desk.world.request(directory, desk.world.attempt(directory, "t0", files=files))
    desk.world.run(directory)
    start_upload(desk.world, f"sales/{name}-2b-{JOB}.csv")
    desk.repair()
    assert list(desk.world.visible()) == sorted((f"sales/{key}" for key in files), key=str.encode)
    assert desk.world.open_uploads() == []
    assert desk.findings() == []


def test_a_ledger_that_was_set_back_is_a_finding_and_nothing_is_done() -> None:
    desk = checked()
    directory = job_directory()
    desk.world.open(directory, conflict=Conflict.REPLACE)
    desk.world.request(directory, desk.world.attempt(directory, "t0"))
    kept = []
    desk.world.plan.run_after("advance", lambda: kept.append(desk.world.ledger.job(REF)))
    desk.world.run(directory)
    (before,) = kept
    assert before is not None
    assert before.state is JobState.SEALED
    desk.world.ledger._jobs[REF] = before
    assert desk.names() == ["LEDGER_SET_BACK"]
    assert not changed_by_repair(desk)
    assert desk.hands.started == []


@pytest.mark.parametrize("is_null", [False, True], ids=["plain", "suspended"])
def test_i5_an_object_that_becomes_another_at_the_last_moment_stays(is_null: bool) -> None:
    """Where versioning is suspended, whoever writes the key next has version ``null`` too."""
    desk, key = checked(), file_of(JOB, "zombie")
    rolled_back(desk.world)
    make(desk.world, key)
    if is_null:
        versions = desk.world.store._bucket(BUCKET).objects[key]
        versions[0] = replace(versions[0], version_id="null")
    desk.world.plan.run_before("delete", lambda: desk.world.store.put(BUCKET, key, b"new"))
    assert [one.outcomes for one in desk.repair()] == [(PASSED_OVER,)]
    assert desk.world.visible() == {key: b"new"}


@pytest.mark.parametrize("name", ["CHANGED", "MISSING"])
def test_the_version_to_restore_is_named_on_a_versioned_bucket(name: str) -> None:
    desk = checked(versioned=True)
    committed(desk.world)
    facts = desk.world.store.head(BUCKET, file_of(JOB))
    if name == "CHANGED":
        desk.world.store.put(BUCKET, file_of(JOB), b"other bytes")
    else:
        desk.world.store.delete(BUCKET, file_of(JOB))
    found = next(one for one in desk.findings() if one.name == name)
    assert facts is not None
    assert (found.restore, found.repairs) == (facts.version_id, ())


def test_files_at_a_jobs_locations_are_looked_at_where_they_lie() -> None:
    desk = checked()
    there = two_places(desk.world).at(ELSEWHERE)
    assert desk.findings() == []
    assert Checked(desk.world, destination=there.destination).findings() == []
    desk.lose_ledger()
    left_out = list(rebuild(desk.fsck, Destination(BUCKET, "archive/")))
    assert [(one.state, one.is_left) for one in left_out] == [(None, False)]
    desk.world.store.delete(BUCKET, f"{ELSEWHERE}part-t0-{JOB}.parquet")
    assert "MISSING" in desk.names()


def test_i5_an_upload_that_may_be_the_last_copy_of_a_committed_file_stays() -> None:
    desk = checked()
    committed(desk.world)
    start_upload(desk.world, file_of(JOB))
    start_upload(desk.world, file_of(JOB, "late"))
    assert desk.names() == ["UPLOAD_LEFT", "UPLOAD_LEFT"]
    desk.world.store.delete(BUCKET, file_of(JOB))
    assert desk.names() == ["MARKER_OF_INCOMPLETE", "MISSING_BUT_UPLOADED", "UPLOAD_LEFT"]
    desk.repair()
    assert desk.world.open_uploads() == [file_of(JOB)]


def test_i12_an_upload_that_is_older_than_its_job_stays() -> None:
    """As the sweep has it: another program has begun it, whatever its name says."""
    desk = checked()
    start_upload(desk.world, f"sales/part-{JOB}.csv")
    desk.world.clock.advance(60)
    aborted(desk.world)
    start_upload(desk.world, f"sales/late-{JOB}.csv")
    desk.repair()
    assert desk.world.open_uploads() == [f"sales/part-{JOB}.csv"]
    assert desk.findings() == []
