"""``s3commit rescue``: S3A jobs whose driver died, from what was recorded (tests/golden/s3a)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.left_behind import DAYS, data, dead, jobs_of, runs, snapshot
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk, uri_of
from tests.core.world import BUCKET, NEIGHBOUR, job_directory

STAYS = ("request.json", "result.json", "/")


@pytest.mark.parametrize("case", ["plain", "partitioned", "in_memory", "halfway"])
def test_i2_a_dead_drivers_job_is_finished(desk: Desk, case: str) -> None:
    recorded = dead(desk, case)
    runs(desk, recorded.directory)
    result = desk.run("rescue", SALES, "--commit")
    files, job = recorded.files, recorded.directory.job_id
    assert result.stdout.startswith(f"job {job}: COMMITTED, {len(files)} files, ")
    assert data(desk.world) == files
    assert desk.world.open_uploads() == []
    assert desk.run("rescue", SALES).stderr == f"no job of S3A's is left behind at {SALES}\n"


def test_by_default_nothing_is_changed(desk: Desk) -> None:
    recorded = dead(desk, "halfway")
    before = snapshot(desk)
    result = desk.run("rescue", SALES)
    header, row = result.stdout.splitlines()
    assert header.split() == "JOB QUIET TASKS FILES SIZE VISIBLE UNFINISHED COMMIT".split()  # noqa: SIM905
    assert row.split()[0] == recorded.directory.job_id
    assert row.split()[-3:] == ["1", "0", "yes"]
    assert f"s3commit rescue {uri_of(recorded.directory)} --commit|--abort" in result.stderr
    for word in ("--commit", "--abort"):
        line = desk.run("rescue", uri_of(recorded.directory), word, "--dry-run").stderr
        assert f"nothing was changed; dry run: would {word[2:]}: s3commit rescue" in line
    assert snapshot(desk) == before


def test_programs_get_it_as_json(desk: Desk) -> None:
    recorded = dead(desk, "task_running")
    document = desk.json("rescue", SALES)
    (job,) = document["jobs"]
    assert (document["destination"], document["action"], document["dryRun"]) == (SALES, None, True)
    assert (job["jobId"], job["requested"]) == (recorded.directory.job_id, False)
    assert (job["tasks"], job["files"], job["visibleFiles"]) == (2, 6, 0)
    assert job["bytes"] == sum(map(len, recorded.files.values()))
    (task,) = job["tasksWithoutPendingset"]
    assert task.endswith("_m_000002")
    assert len(job["unfinishedUploads"]) == 3  # two .pending files, and one that is named nowhere
    assert [problem["code"] for problem in job["problems"]] == ["UNFINISHED"]
    assert 0 < job["quietSeconds"] <= DAYS


def test_a_job_with_unfinished_tasks_is_committed_only_when_told_so(desk: Desk) -> None:
    recorded = dead(desk, "task_running")
    before = snapshot(desk)
    line = desk.fails("rescue", SALES, "--commit", exit_code=3)
    assert "it has 1 task without a pendingset (task_" in line
    assert "3 open uploads that no pendingset names: data is missing" in line
    assert "add --partial" in line
    assert line.endswith("nothing was changed")
    assert snapshot(desk) == before
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, "--commit", "--partial")
    assert data(desk.world) == recorded.files
    assert desk.world.open_uploads() == []


@pytest.mark.parametrize("case", ["plain", "partitioned", "halfway", "task_running"])
def test_i4_a_job_that_is_given_up_leaves_nothing(desk: Desk, case: str) -> None:
    recorded = dead(desk, case)
    runs(desk, recorded.directory)
    result = desk.run("rescue", SALES, "--abort", "--reason", "wrong date")
    assert result.stdout == f"job {recorded.directory.job_id}: ABORTED\n"
    error = desk.world.result(recorded.directory).error
    assert error is not None
    assert error.message == "wrong date"
    assert data(desk.world) == {}
    assert desk.world.open_uploads() == []
    assert all(key.endswith(STAYS) for key in desk.world.all_keys())


@pytest.mark.parametrize("word", ["--commit", "--abort"])
def test_a_job_that_was_alive_lately_is_left_alone(desk: Desk, word: str) -> None:
    recorded = dead(desk, later=0.0)
    before = snapshot(desk)
    line = desk.fails("rescue", SALES, word, exit_code=3)
    assert f"job {recorded.directory.job_id} was alive" in line
    assert "nothing was changed" in line
    assert snapshot(desk) == before
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, word, "--older-than", "0s")
    assert desk.world.open_uploads() == []


def test_two_jobs_of_the_old_shared_directory_are_told_apart(desk: Desk) -> None:
    recorded = dead(desk, "shared")
    first, second = jobs_of(recorded)
    (running, done) = desk.json("rescue", SALES)["jobs"]
    assert (running["jobId"], running["tasks"], len(running["unfinishedUploads"])) == (
        first.job_id,
        2,
        3,
    )
    assert (done["jobId"], done["tasks"], done["unfinishedUploads"]) == (second.job_id, 3, [])
    assert done["directory"] == f"{SALES}__magic/job-{second.job_id}/"
    runs(desk, second)
    desk.run("rescue", done["directory"], "--commit")
    assert len(data(desk.world)) == 3
    assert {key.split("/")[2] for key in desk.world.all_keys("sales/__magic/")} == {
        f"job-{first.job_id}"
    }
    assert len(desk.world.open_uploads()) == 9
    runs(desk, first)
    desk.run("rescue", SALES, "--abort")
    assert desk.world.open_uploads() == []
    assert desk.world.all_keys("sales/__magic/") == []
    assert len(data(desk.world)) == 3


def test_a_rescue_that_is_cut_short_goes_on(desk: Desk) -> None:
    recorded = dead(desk, "shared")
    _, directory = jobs_of(recorded)
    uri = f"{SALES}__magic/job-{directory.job_id}/"
    result = desk.run("rescue", uri, "--commit", "--timeout", "0s")
    told = (
        f"job {directory.job_id}: commit requested; follow it: s3commit watch {uri_of(directory)}\n"
    )
    assert result.stdout == told
    assert desk.json("rescue", uri)["jobs"][0]["requested"]
    assert "its commit was requested first" in desk.fails("rescue", uri, "--abort", exit_code=3)
    assert desk.world.run(directory)
    desk.run("rescue", uri, "--commit")  # what is left is what lies in __magic/
    assert len(data(desk.world)) == 3
    assert desk.world.all_keys(f"sales/__magic/job-{directory.job_id}/") == []


def test_i5_a_job_in_the_shared_directory_must_say_its_own_id(desk: Desk) -> None:
    recorded = dead(desk, "shared")
    first, second = jobs_of(recorded)
    theirs = next(key for key in recorded.manifests if second.job_id in key)
    body = desk.world.store.get(BUCKET, theirs, max_bytes=10**6).body
    at = f"sales/__magic/job-{first.job_id}/{theirs.rsplit('/', 1)[-1]}"
    for claim in (body, body.replace(f'"{second.job_id}"'.encode(), b'""')):
        desk.world.store.put(BUCKET, at, claim)
        line = desk.fails("rescue", f"{SALES}__magic/job-{first.job_id}", "--commit", exit_code=3)
        assert "[WRONG_JOB]" in line


def test_an_unknown_outcome_is_4(desk: Desk) -> None:
    recorded = dead(desk)
    line = desk.fails("rescue", SALES, "--commit", "--timeout", "5s", exit_code=4)
    assert f"job {recorded.directory.job_id} has not ended after 5s and goes on" in line
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, "--commit")
    assert data(desk.world) == recorded.files


def test_i2_a_job_whose_uploads_have_gone_is_not_committed(desk: Desk) -> None:
    dead(desk)
    upload = next(iter(desk.world.store.list_uploads(BUCKET, "sales/")))
    desk.world.store.abort_upload(BUCKET, upload.key, upload.upload_id)
    before = snapshot(desk)
    line = desk.fails("rescue", SALES, "--commit", exit_code=3)
    assert "1 upload that its manifests name can not be completed any more" in line
    assert "[UPLOAD_GONE]" in line
    assert desk.run("rescue", SALES).stdout.splitlines()[1].endswith("no: UPLOAD_GONE")
    assert snapshot(desk) == before


def test_a_job_that_ends_otherwise_than_asked_is_3(desk: Desk) -> None:
    recorded = dead(desk)
    directory = recorded.directory

    def lose_and_run() -> None:
        upload = next(iter(desk.world.store.list_uploads(BUCKET, "sales/")))
        desk.world.store.abort_upload(BUCKET, upload.key, upload.upload_id)
        desk.world.run(directory)

    desk.while_it_waits(lose_and_run)
    result = desk.run("rescue", SALES, "--commit", exit_code=3)
    assert result.stdout == f"job {directory.job_id}: ABORTED\n"
    assert f"job {directory.job_id} ended ABORTED, none of its files is visible" in result.stderr


def test_exact_names_that_are_taken_are_not_committed(desk: Desk) -> None:
    recorded = dead(desk)
    key = next(iter(recorded.files))
    plain = "sales/part-r-00000"
    upload_id = desk.world.store.create_upload(BUCKET, plain, metadata={}, content_type="")
    etag = desk.world.store.upload_part(BUCKET, plain, upload_id, 1, b"x")
    manifest, body = next(
        (name, json.loads(desk.world.store.get(BUCKET, name, max_bytes=10**6).body))
        for name, text in recorded.manifests.items()
        if key.encode() in text
    )
    change: dict[str, Any] = {"destinationKey": plain, "uploadId": upload_id, "length": 1}
    body["commits"][0].update(change, etags=[{"etag": etag}])
    desk.world.store.put(BUCKET, manifest, json.dumps(body).encode())
    desk.world.store.put(BUCKET, plain, b"of another run")
    line = desk.fails("rescue", SALES, "--commit", "--partial", exit_code=3)
    assert f"{plain} is there already" in line
    assert "[KEY_EXISTS]" in line


def test_i5_other_jobs_at_the_destination_are_left_alone(desk: Desk) -> None:
    ours = desk.open_job()
    committed = desk.committed_job(OTHER)
    recorded = dead(desk)
    assert [job["jobId"] for job in desk.json("rescue", SALES)["jobs"]] == [
        recorded.directory.job_id
    ]
    before = desk.world.all_keys(ours.prefix)
    mine = [key for key in desk.world.open_uploads() if JOB in key]
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, "--abort")
    assert desk.world.all_keys(ours.prefix) == before
    assert desk.world.open_uploads() == mine
    assert all(committed.job_id in key for key in data(desk.world))
    assert "none of S3A's" in desk.fails("rescue", uri_of(ours), "--commit", exit_code=1)


def test_i5_a_manifest_that_names_another_jobs_file_is_not_committed(desk: Desk) -> None:
    recorded = dead(desk)
    desk.world.open(job_directory(NEIGHBOUR))
    key = f"sales/part-0-{NEIGHBOUR}.c000.parquet"
    manifest = next(iter(recorded.manifests))
    body = json.loads(desk.world.store.get(BUCKET, manifest, max_bytes=10**6).body)
    body["commits"][0]["destinationKey"] = key
    desk.world.store.put(BUCKET, manifest, json.dumps(body).encode())
    line = desk.fails("rescue", SALES, "--commit", "--partial", exit_code=3)
    assert f"it names {key}, by the name another job's" in line


def test_a_directory_of_mapreduces_is_named_and_left_out(desk: Desk) -> None:
    for name in ("__magic_job-job_2026_0001", "__magic/app-attempt-0000"):
        desk.world.store.put(BUCKET, f"sales/{name}/x.pendingset", b"{}")
    result = desk.run("rescue", SALES)
    assert result.stdout == ""
    assert "__magic_job-job_2026_0001/ is left out: its id is no UUID" in result.stderr
    assert "__magic/app-attempt-0000/ is left out" in result.stderr
    assert len(desk.json("rescue", SALES)["leftOut"]) == 2


@pytest.mark.parametrize(
    "target",
    ["sales", "s3://lake", "s3://lake/sales/__magic_job-7/", "s3://lake/sales/__magic/job-7"],
)
def test_what_is_no_place_is_a_usage_error(desk: Desk, target: str) -> None:
    desk.fails("rescue", target, exit_code=2)


def test_one_word_at_a_time(desk: Desk) -> None:
    line = desk.fails("rescue", SALES, "--commit", "--abort", exit_code=2)
    assert "exclude each other" in line


def test_a_rescued_job_shows_like_any_other(desk: Desk) -> None:
    recorded = dead(desk)
    runs(desk, recorded.directory)
    desk.run("rescue", SALES, "--commit")
    assert desk.json("show", uri_of(recorded.directory))["state"] == "COMMITTED"
    assert desk.json("status", "--table", TABLE, "--all")["counts"] == {"COMMITTED": 1}
