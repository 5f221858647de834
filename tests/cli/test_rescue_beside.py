"""What other verbs make of a job that waits for its rescue; the guide's commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from s3commit.core.model.job import Names
from tests.cli.left_behind import data, dead, jobs_of, runs
from tests.cli.support import JOB, SALES, Desk, uri_of
from tests.core.world import BUCKET, job_directory


@pytest.mark.parametrize("case", ["plain", "task_running", "shared"])
def test_i5_uploads_of_jobs_that_wait_for_a_rescue_are_not_aborted_as_unknown(
    desk: Desk, case: str
) -> None:
    recorded = dead(desk, case)
    uploads = desk.json("uploads", SALES, "--abort", "--older-than", "0s")["uploads"]
    assert {(one["owner"], one["done"]) for one in uploads} == {("under way", "kept")}
    assert len(desk.world.open_uploads()) == len(recorded.uploads)
    directories = jobs_of(recorded)
    runs(desk, *directories)
    desk.run("rescue", SALES, "--abort")
    assert desk.json("uploads", SALES)["uploads"] == []


def test_commit_and_show_lead_to_the_rescue(desk: Desk) -> None:
    uri = uri_of(dead(desk).directory)
    line = desk.fails("commit", uri, exit_code=3)
    assert f"see what can be done: s3commit rescue {uri} [S3A_JOB]; nothing was changed" in line
    assert f"if the driver died: s3commit rescue {uri}" in desk.run("show", uri).stdout


def test_a_job_with_exact_names_of_the_programs_own_is_committed_like_any_other(desk: Desk) -> None:
    directory = job_directory(JOB)
    desk.world.open(directory, names=Names.EXACT)
    desk.world.attempt(directory, "t0", files={"report.csv": b"ours"})
    stranger = desk.world.store.create_upload(BUCKET, "sales/x", metadata={}, content_type="")
    assert desk.json("commit", uri_of(directory), "--tasks", "1")["unfinishedUploads"] == 0
    desk.world.run(directory)
    assert data(desk.world) == {"sales/report.csv": b"ours"}
    assert [one.upload_id for one in desk.world.store.list_uploads(BUCKET, "")] == [stranger]


def test_i4_of_a_job_with_exact_names_the_losers_uploads_are_aborted_by_their_manifests(
    desk: Desk,
) -> None:
    directory = job_directory(JOB)
    desk.world.open(directory, names=Names.EXACT)
    winner = desk.world.attempt(directory, "t0", "a0", files={"report.csv": b"first"})
    desk.world.attempt(directory, "t0", "a1", files={"report.csv": b"second"})
    desk.world.request(directory, winner)
    desk.world.run(directory)
    assert data(desk.world) == {"sales/report.csv": b"first"}
    assert desk.world.open_uploads() == []


GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "s3a.md"
COMMANDS = re.findall(r"^s3commit (rescue .*)$", GUIDE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_guides_commands_do_what_the_guide_says(desk: Desk, command: str) -> None:
    recorded = dead(desk, "partitioned")
    directory = recorded.directory
    runs(desk, directory)
    typed = re.sub(r"__magic_job-[0-9a-f-]+", f"__magic_job-{directory.job_id}", command)
    result = desk.run(*typed.replace("s3://bucket/table/", SALES).split())
    if "--" not in command:
        header, row = result.stdout.splitlines()
        assert header.split() == next(
            line.split() for line in GUIDE.read_text().splitlines() if line.startswith("JOB ")
        )
        assert row.endswith("yes")
    assert data(desk.world) == (recorded.files if "--commit" in command else {})
    assert (desk.world.open_uploads() == []) is ("--" in command)


def test_the_guide_shows_a_look_a_commit_and_an_abort() -> None:
    assert [command.split()[2:] for command in COMMANDS] == [[], ["--commit"], ["--abort"]]
