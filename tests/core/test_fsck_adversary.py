"""What somebody who means harm, or copies carelessly, makes a repair do: nothing (I5, I7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.formats.published import CommittedFile
from s3commit.core.model.job import Destination, Names, Outcome
from s3commit.core.model.pending import PendingSet
from tests.core.fsck_forgeries import (
    changed_by_repair,
    forge_list,
    forge_result,
)
from tests.core.fsck_world import (
    Checked,
    aborted,
    checked,
    make,
    rolled_back,
    start_upload,
)
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory


def test_i7_a_list_that_names_files_outside_its_places_is_not_believed() -> None:
    desk = checked()
    forge_list(desk.world, job_directory(), CommittedFile("orders/x.csv", 3, '"e"', None))
    assert desk.names() == ["UNREADABLE"]
    assert "orders/x.csv" in desk.findings()[0].detail


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
