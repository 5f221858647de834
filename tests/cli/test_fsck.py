"""``s3commit fsck``: what it prints, and how it ends. The facts are tested in tests/core."""

from __future__ import annotations

from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk, uri_of
from tests.core.world import BUCKET


def test_a_sound_table_says_so(desk: Desk) -> None:
    desk.committed_job()
    assert desk.run("fsck", SALES).stdout == "sound: 1 job, 2 files, 8 B, as committed\n"


def test_what_is_gone_and_what_is_open_is_listed(desk: Desk) -> None:
    directory, waits = desk.committed_job(), desk.open_job(OTHER)
    key = min(desk.world.visible())
    desk.world.store.delete(BUCKET, key)
    result = desk.run("fsck", SALES, "--table", TABLE, exit_code=1)
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["WHAT", "FILE", "JOB"]
    assert lines[1].split()[:3] == ["gone", key, JOB]
    assert lines[3].split()[:3] == [OTHER, "OPEN", "no"]
    assert uri_of(waits) in lines[3]
    assert lines[4] == "1 finding, beside: 1 job, 1 file, 4 B, as committed"
    document = desk.json("fsck", SALES, exit_code=1)
    assert (document["sound"], document["files"]) == (False, 1)
    assert document["findings"][0]["jobId"] == directory.job_id
    assert document["openJobs"][0]["state"] is None


def test_it_changes_nothing(desk: Desk) -> None:
    desk.committed_job()
    desk.requested_job(OTHER)
    before = desk.world.all_keys(), desk.world.open_uploads()
    calls = len(desk.world.plan.calls)
    desk.run("fsck", SALES, "--table", TABLE)
    assert (desk.world.all_keys(), desk.world.open_uploads()) == before
    writes = {"put", "delete", "delete_seen", "abort_upload", "complete_upload", "advance"}
    assert not writes & {call.verb for call in desk.world.plan.calls[calls:]}


def test_a_whole_bucket_is_a_usage_error(desk: Desk) -> None:
    assert "name a destination in it" in desk.fails("fsck", "s3://lake/", exit_code=2)


def test_a_rebuild_needs_the_table(desk: Desk) -> None:
    assert "--table" in desk.fails("fsck", SALES, "--rebuild-ledger", exit_code=2)


def test_i8_a_ledger_is_rebuilt(desk: Desk) -> None:
    desk.committed_job()
    asked, waits = desk.requested_job(OTHER), desk.open_job(THIRD)
    desk.world.ledger._jobs.clear()
    arguments = ("fsck", "s3://lake", "--rebuild-ledger", "--table", TABLE)
    result = desk.run(*arguments, exit_code=1)
    assert result.stderr == "3 records made, 1 left to look at\n"
    assert f"{uri_of(asked)}: OPEN, to continue job {OTHER} name the state machine" in result.stdout
    assert f"{uri_of(waits)}: OPEN, made\n" in result.stdout
    result = desk.run(*arguments, "--state-machine", "arn:aws:states:x:1:stateMachine:M")
    assert result.stdout == f"{uri_of(asked)}: OPEN, started\n"
    assert len(desk.executions.started) == 1
