"""``s3commit ls`` and ``fsck``: the committed jobs of a table, their files, and what lacks."""

from s3commit.core.model.destination import Conflict, Scope
from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk
from tests.core.world import BUCKET

VISIBLE = "made visible, counting removed ones"


def test_committed_jobs_come_in_the_order_of_their_decisions(desk: Desk) -> None:
    desk.committed_job(JOB)
    desk.world.clock.advance(3600)
    desk.committed_job(OTHER)
    desk.requested_job(THIRD)
    result = desk.run("ls", SALES)
    header, first, second = result.stdout.splitlines()
    assert header.split() == ["DECIDED", "FILES", "SIZE", "ROWS", "JOB"]
    assert first.split() == ["2026-11-21", "22:00:00Z", "2", "8", "B", "8", JOB]
    assert second.split()[-1] == OTHER
    assert result.stderr == f"2 committed jobs at s3://lake/sales/: 4 files, 16 B {VISIBLE}\n"


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
    files = {f"dt=1/part-{OTHER}.csv": b"new"}
    desk.committed_job(OTHER, files=files, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
    result = desk.run("ls", SALES, "--files", JOB)
    header, first, second = (line.split() for line in result.stdout.splitlines())
    assert header == ["SIZE", "ROWS", "GONE", "FILE"]
    assert first[3:] == ["gone", f"dt=1/part-{JOB}.csv"]
    assert second[3:] == [f"dt=2/part-{JOB}.csv"]
    assert result.stderr.splitlines() == [
        f"2 files of job {JOB} at s3://lake/sales/",
        "1 of them missing: replaced by a later job, or deleted",
    ]
    document = desk.json("ls", SALES, "--files", JOB)
    assert [file["gone"] for file in document["files"]] == [True, False]
    assert "gone" not in desk.run("ls", SALES, "--files", OTHER).output


def test_where_the_list_of_a_committed_job_is_gone_fsck_is_named_and_says_more(desk: Desk) -> None:
    directory = desk.committed_job()
    desk.world.store.delete("lake", directory.commits)
    command = "s3commit fsck s3://lake/sales/"
    assert command in desk.fails("ls", SALES, "--files", JOB, exit_code=1)
    assert command in desk.fails("undo", directory.uri, exit_code=3)
    assert JOB in desk.run_any(*command.split()[1:]).stdout


def test_a_table_without_jobs_is_empty_and_an_aborted_job_has_no_files(desk: Desk) -> None:
    result = desk.run("ls", SALES)
    assert (result.stdout, result.stderr) == ("", "0 committed jobs at s3://lake/sales/\n")
    assert desk.json("ls", SALES) == {"destination": SALES, "jobs": []}
    desk.aborted_job(JOB)
    line = desk.fails("ls", SALES, "--files", JOB, exit_code=1)
    assert f"job {JOB} is not committed at s3://lake/sales/" in line


def test_a_manifest_that_can_not_be_read_is_a_row_that_says_so(desk: Desk) -> None:
    desk.committed_job(OTHER)
    desk.world.store.put(BUCKET, f"sales/_commits/_{JOB}.jsonl", b"no json")
    result = desk.run("ls", SALES)
    _, spoilt, sound = result.stdout.splitlines()
    assert spoilt.split()[0] == JOB
    assert f"_commits/_{JOB}.jsonl cannot be read: " in spoilt
    assert sound.split()[-1] == OTHER
    assert result.stderr.splitlines() == [
        f"1 committed job at s3://lake/sales/: 2 files, 8 B {VISIBLE}",
        "1 list cannot be read, or came with a copy of another table",
    ]
    assert [job["problem"] is None for job in desk.json("ls", SALES)["jobs"]] == [False, True]
    line = desk.fails("ls", SALES, "--files", JOB, exit_code=1)
    assert f"s3://lake/sales/_commits/_{JOB}.jsonl cannot be read" in line


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


def test_what_is_gone_and_what_is_open_is_listed(desk: Desk) -> None:
    directory, waits = desk.committed_job(), desk.open_job(OTHER)
    key = min(desk.world.visible())
    desk.world.store.delete(BUCKET, key)
    text = " ".join(desk.run("fsck", SALES, "--table", TABLE, exit_code=1).stdout.split())
    assert "sound no jobs 1 files 1" in text
    assert f"findings what gone, key {key}, job id {JOB}, fix no version of it is kept" in text
    assert f"open jobs job id {OTHER}, state OPEN, requested no, fix if its driver died" in text
    assert waits.uri in text
    document = desk.json("fsck", SALES, exit_code=1)
    assert (document["sound"], document["files"]) == (False, 1)
    assert document["findings"][0]["jobId"] == directory.job_id
    assert document["openJobs"][0]["state"] is None
    desk.world.request(waits)
    (waits_still,) = desk.json("fsck", SALES, exit_code=1)["openJobs"]
    assert waits_still["fix"] == f"if no execution works on it: s3commit commit {waits.typed}"


def test_a_rule_says_what_was_meant_and_a_name_of_no_table_is_an_error(desk: Desk) -> None:
    desk.committed_job()
    desk.world.store.delete(BUCKET, min(desk.world.visible()))
    desk.world.clock.advance(3 * 86_400)
    assert desk.json("fsck", SALES, "--expired", "sales/=2")["expiredFiles"] == 1
    desk.json("fsck", SALES, "--expired", "sales/=4", exit_code=1)
    for rule in ("sales/", "=2", "sales/=0", "sales/=x", f"{SALES}=2"):
        assert "sales/=400" in desk.fails("fsck", SALES, "--expired", rule, exit_code=2)
    assert "nothing was checked" in desk.fails("fsck", "s3://lake/sale/", exit_code=1)
    assert desk.json("fsck", "s3://lake/sale/2020/", "--expired", "sale/=2")["jobs"] == 0


def test_a_sound_table_says_so_and_nothing_is_changed(desk: Desk) -> None:
    desk.committed_job()
    desk.requested_job(OTHER)
    before = desk.world.all_keys(), desk.world.open_uploads()
    calls = len(desk.world.plan.calls)
    text = desk.text("fsck", SALES, "--table", TABLE).replace("\n", " ")
    assert text.startswith(f"destination {SALES} sound yes jobs 1 files 2 bytes 8 B")
    assert (desk.world.all_keys(), desk.world.open_uploads()) == before
    writes = {"put", "delete", "delete_seen", "abort_upload", "complete_upload", "advance"}
    assert not writes & {call.verb for call in desk.world.plan.calls[calls:]}
