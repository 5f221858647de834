"""``s3commit ls``, ``fsck`` and ``undo``: the committed jobs of a table, and what lacks."""

from __future__ import annotations

import pytest

from s3commit.core.model.job import Conflict, Scope
from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk, uri_of
from tests.core.world import BUCKET, World, job_directory


def test_committed_jobs_come_in_the_order_of_their_decisions(desk: Desk) -> None:
    desk.committed_job(JOB)
    desk.world.clock.advance(3600)
    desk.committed_job(OTHER)
    desk.requested_job("22222222-7425-40de-944b-e07fc1f90ae7")
    result = desk.run("ls", SALES)
    header, first, second = result.stdout.splitlines()
    assert header.split() == ["DECIDED", "FILES", "SIZE", "ROWS", "JOB"]
    assert first.split() == ["2026-11-21", "22:00:00Z", "2", "8", "B", "8", JOB]
    assert second.split()[-1] == OTHER
    assert result.stderr == "2 committed jobs at s3://lake/sales/: 4 files, 16 B\n"


def test_the_files_of_a_job(desk: Desk) -> None:
    desk.committed_job(JOB)
    result = desk.run("ls", SALES, "--files", JOB)
    names = [line.split()[-1] for line in result.stdout.splitlines()]
    assert names == ["FILE", f"part-0-{JOB}.parquet", f"part-1-{JOB}.parquet"]
    assert result.stderr == f"2 files of job {JOB} at s3://lake/sales/\n"
    files = desk.json("ls", SALES, "--files", JOB)["files"]
    assert [file["key"] for file in files] == sorted(desk.world.visible())
    assert {file["bytes"] for file in files} == {4}


def test_files_that_a_later_job_replaced_are_said_to_be_gone(desk: Desk) -> None:
    files = {f"dt={day}/part-{JOB}.csv": b"old" for day in (1, 2)}
    desk.committed_job(JOB, files=files)
    desk.committed_job(
        OTHER,
        files={f"dt=1/part-{OTHER}.csv": b"new"},
        conflict=Conflict.REPLACE,
        scope=Scope.PARTITION,
    )
    result = desk.run("ls", SALES, "--files", JOB)
    header, first, second = (line.split() for line in result.stdout.splitlines())
    assert header == ["SIZE", "ROWS", "GONE", "FILE"]
    assert first[3:] == ["gone", f"dt=1/part-{JOB}.csv"]
    assert second[3:] == [f"dt=2/part-{JOB}.csv"]
    assert result.stderr.splitlines() == [
        f"2 files of job {JOB} at s3://lake/sales/",
        "1 of them gone by now: replaced by a later job, or deleted by someone",
    ]
    document = desk.json("ls", SALES, "--files", JOB)
    assert [file["gone"] for file in document["files"]] == [True, False]
    assert "gone" not in desk.run("ls", SALES, "--files", OTHER).output


def test_a_job_that_is_not_committed_has_no_files(desk: Desk) -> None:
    desk.aborted_job(JOB)
    line = desk.fails("ls", SALES, "--files", JOB, exit_code=1)
    assert f"job {JOB} is not committed at s3://lake/sales/" in line


def test_a_table_without_jobs_is_empty_and_not_an_error(desk: Desk) -> None:
    result = desk.run("ls", SALES)
    assert (result.stdout, result.stderr) == ("", "0 committed jobs at s3://lake/sales/\n")
    assert desk.json("ls", SALES) == {"destination": SALES, "jobs": []}


def test_a_manifest_that_can_not_be_read_is_a_row_that_says_so(desk: Desk) -> None:
    desk.committed_job(OTHER)
    desk.world.store.put(BUCKET, f"sales/_commits/_{JOB}.jsonl", b"no json")
    result = desk.run("ls", SALES)
    _, spoilt, sound = result.stdout.splitlines()
    assert spoilt.split()[0] == JOB
    assert f"_commits/_{JOB}.jsonl can not be read: " in spoilt
    assert sound.split()[-1] == OTHER
    assert result.stderr.splitlines() == [
        "1 committed job at s3://lake/sales/: 2 files, 8 B",
        "1 list can not be read, or came with a copy of another table",
    ]
    assert [job["problem"] is None for job in desk.json("ls", SALES)["jobs"]] == [False, True]
    line = desk.fails("ls", SALES, "--files", JOB, exit_code=1)
    assert f"s3://lake/sales/_commits/_{JOB}.jsonl can not be read" in line


def test_i5_the_lists_of_a_copied_table_name_no_job_of_the_copy(desk: Desk) -> None:
    body = desk.world.store.get(BUCKET, desk.committed_job(JOB).commits, max_bytes=10**6).body
    desk.world.store.put(BUCKET, f"copy/_commits/_{JOB}.jsonl", body)
    (job,) = desk.json("ls", "s3://lake/copy/")["jobs"]
    assert "[WRONG_JOB]" in job["problem"]
    assert job["fileCount"] is None
    assert "WRONG_JOB" in desk.fails("ls", "s3://lake/copy/", "--files", JOB, exit_code=1)
    (row,) = desk.json("log", "s3://lake/copy/")["jobs"]
    assert (row["jobId"], row["state"], row["files"]) == (JOB, None, None)


# fsck: what it prints, and how it ends; tests/core has the facts


def test_a_sound_table_says_so(desk: Desk) -> None:
    desk.committed_job()
    text = " ".join(desk.run("fsck", SALES).stdout.split())
    assert text.startswith(f"destination {SALES} sound yes jobs 1 files 2 bytes 8 B")


def test_what_is_gone_and_what_is_open_is_listed(desk: Desk) -> None:
    directory, waits = desk.committed_job(), desk.open_job(OTHER)
    key = min(desk.world.visible())
    desk.world.store.delete(BUCKET, key)
    result = desk.run("fsck", SALES, "--table", TABLE, exit_code=1)
    text = " ".join(result.stdout.split())
    assert "sound no jobs 1 files 1" in text
    assert f"findings what gone, key {key}, job id {JOB}, mend no version of it is kept" in text
    assert f"open jobs job id {OTHER}, state OPEN, requested no, mend if its driver died" in text
    assert uri_of(waits) in text
    document = desk.json("fsck", SALES, exit_code=1)
    assert (document["sound"], document["files"]) == (False, 1)
    assert document["findings"][0]["jobId"] == directory.job_id
    assert document["openJobs"][0]["state"] is None
    desk.world.request(waits)
    (waits_still,) = desk.json("fsck", SALES, exit_code=1)["openJobs"]
    assert waits_still["mend"] == f"if no execution works on it: s3commit commit {waits.typed}"


def test_it_changes_nothing(desk: Desk) -> None:
    desk.committed_job()
    desk.requested_job(OTHER)
    before = desk.world.all_keys(), desk.world.open_uploads()
    calls = len(desk.world.plan.calls)
    desk.run("fsck", SALES, "--table", TABLE)
    assert (desk.world.all_keys(), desk.world.open_uploads()) == before
    writes = {"put", "delete", "delete_seen", "abort_upload", "complete_upload", "advance"}
    assert not writes & {call.verb for call in desk.world.plan.calls[calls:]}


UNDO = THIRD


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A bucket that keeps versions, and a pipeline that acts while the command waits."""
    desk = Desk(World(versioned=True))
    monkeypatch.setattr(desk.environment, "new_id", lambda: UNDO)
    desk.environment.on_sleep = lambda: desk.world.run(job_directory(UNDO))
    return desk


def test_an_append_is_undone_and_its_key_free(desk: Desk) -> None:
    desk.committed_job(OTHER)
    desk.committed_job(idempotency_key="today")
    before = desk.world.all_keys()
    would = desk.run("undo", JOB, "--table", TABLE, "--dry-run")
    assert would.stdout == f"would undo job {JOB} at {SALES}: 2 files, 8 B, 8 rows removed\n"
    assert desk.world.all_keys() == before
    done = desk.run("undo", JOB, "--table", TABLE)
    assert done.stdout == f"undid job {JOB} at {SALES}: 2 files, 8 B, 8 rows removed\n"
    assert done.stderr == (
        "its idempotency key is free: the next job with it is committed\n"
        f"to take the undo back: s3commit undo {UNDO} --destination {SALES}\n"
    )
    assert {key.rpartition("-0b")[0] for key in desk.world.visible()} == {""}
    assert all(OTHER in key for key in desk.world.visible())
    again = desk.fails("undo", JOB, "--table", TABLE, exit_code=3)
    assert f"job {JOB} was undone by job {UNDO} [NOTHING_TO_UNDO]; nothing was changed" in again


def test_what_was_replaced_comes_back_or_is_left(desk: Desk) -> None:
    desk.committed_job(OTHER)
    over = desk.committed_job(conflict=Conflict.REPLACE)
    document = desk.json("undo", uri_of(over), "--dry-run")
    assert document == {
        "jobId": JOB,
        "destination": SALES,
        "undoId": None,
        "removed": {"files": 2, "bytes": 8, "rows": 8},
        "restored": {"files": 2, "bytes": 8, "rows": 8},
        "replacedFiles": 0,
        "idempotencyKey": None,
        "dryRun": True,
    }
    left = desk.run("undo", uri_of(over), "--dry-run", "--leave-removed")
    assert left.stderr == "left removed, which it had replaced: 2 files\n"
    done = desk.run("undo", uri_of(over))
    assert "came back as it was before: 2 files, 8 B, 8 rows\n" in done.stderr
    assert sorted(desk.world.visible().values()) == [b"0 a0", b"1 a0"]


def test_log_ls_show_and_fsck_know_it(desk: Desk) -> None:
    desk.committed_job(OTHER)
    over = desk.committed_job(conflict=Conflict.REPLACE)
    asked = desk.json("show", JOB, "--table", TABLE)
    assert (
        f"if it wrote the wrong data: s3commit undo {JOB} --table {TABLE} --dry-run"
        in asked["next"]
    )
    desk.run("undo", uri_of(over))
    jobs = desk.json("log", SALES)["jobs"]
    rows = [(one["jobId"], one["undoes"], one["replaced"], one["gone"]) for one in jobs]
    assert rows == [(OTHER, None, 0, 2), (JOB, None, 2, 2), (UNDO, JOB, 2, 0)]
    assert desk.json("show", UNDO, "--table", TABLE)["undoes"] == JOB
    assert desk.json("ls", SALES)["jobs"][-1]["undoes"] == JOB
    found = desk.json("fsck", SALES)
    assert (found["sound"], found["files"], found["replacedFiles"]) == (True, 2, 4)


def test_fsck_takes_no_file_for_undone_that_another_job_wrote(desk: Desk) -> None:
    kept = desk.committed_job(OTHER)
    desk.committed_job()
    desk.run("undo", JOB, "--table", TABLE)
    lost = next(key for key in desk.world.visible() if OTHER in key)
    desk.world.store.delete(kept.bucket, lost)
    found = desk.json("fsck", SALES, exit_code=1)
    assert [one["key"] for one in found["findings"]] == [lost]


@pytest.mark.parametrize("state", ["open_job", "aborted_job", "requested_job"])
def test_a_job_that_is_not_committed_is_refused(desk: Desk, state: str) -> None:
    directory = getattr(desk, state)()
    before = desk.world.all_keys()
    for typed in ([JOB, "--table", TABLE], [uri_of(directory)]):
        line = desk.fails("undo", *typed, exit_code=3)
        assert "nothing was changed" in line
    assert desk.world.all_keys() == before


def test_a_job_that_never_was_is_refused(desk: Desk) -> None:
    line = desk.fails("undo", JOB, "--destination", SALES, exit_code=3)
    assert f"job {JOB} is not committed at {SALES}" in line
