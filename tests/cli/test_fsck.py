"""``s3commit fsck``: what it prints, and how it ends. The facts are tested in tests/core."""

from __future__ import annotations

from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk, uri_of
from tests.core.world import BUCKET


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
