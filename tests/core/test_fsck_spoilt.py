"""Lists, results and copies that somebody has spoilt: a repair touches nothing by them (I5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from s3commit.core.fsck.repair import PASSED_OVER
from s3commit.core.model.job import Conflict, Names, Outcome
from s3commit.core.model.states import JobState
from tests.core.fsck_forgeries import (
    changed_by_repair,
    forge_list,
    forge_result,
)
from tests.core.fsck_world import (
    aborted,
    checked,
    committed,
    file_of,
    make,
    rolled_back,
    start_upload,
)
from tests.core.world import BUCKET, JOB, OTHER_JOB, REF, job_directory


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
