"""``s3commit fsck``: what is said, what is planned, what is repaired, and the exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import boto3
import pytest

from s3commit.aws import env
from s3commit.core.model.errors import AccessError, InvalidInputError, TransientError
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.writer.job import open_job
from tests.cli.support import JOB, MACHINE, OTHER, REF, SALES, TABLE, Desk, arn_of, run, uri_of
from tests.contract.conftest import create_table
from tests.core.fsck_world import Checked, start_upload
from tests.core.world import BUCKET, job_directory
from tests.fakes.execution import run_execution

FSCK = ("fsck", SALES, "--table", TABLE)


def upload(desk: Desk, job_id: str) -> str:
    key = f"sales/part-late-{job_id}.csv"
    start_upload(desk.world, key)
    return key


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_clean_destination_is_0_and_says_so(desk: Desk) -> None:
    desk.committed_job()
    result = desk.run(*FSCK)
    assert result.stdout == ""
    assert result.stderr == "nothing found at s3://lake/sales/ (1 job)\n"


def test_findings_are_1_and_nothing_is_changed(desk: Desk) -> None:
    desk.aborted_job()
    key = upload(desk, JOB)
    result = desk.run(*FSCK, exit_code=1)
    assert result.stdout == f"UPLOAD_LEFT  {key.removeprefix('sales/')}  -> abort-upload\n"
    meaning, summary = result.stderr.splitlines()
    assert meaning.startswith("UPLOAD_LEFT: The upload is open and its job has ended")
    assert summary == "1 finding at s3://lake/sales/ (1 job); nothing was changed"
    assert desk.world.open_uploads() == [key]


def test_as_json_each_finding_is_a_line_and_the_last_one_sums_up(desk: Desk) -> None:
    desk.aborted_job()
    key = upload(desk, JOB)
    finding, summary = records(desk.run(*FSCK, "--output", "json", exit_code=1).stdout)
    assert finding == {
        "finding": "UPLOAD_LEFT",
        "level": "finding",
        "bucket": BUCKET,
        "key": key,
        "jobId": JOB,
        "detail": None,
        "restoreVersion": None,
        "repairs": ["abort-upload"],
    }
    assert (summary["findings"], summary["left"], summary["byName"]) == (1, 1, {"UPLOAD_LEFT": 1})


def test_i4_a_plan_is_written_and_done(desk: Desk, tmp_path: Path) -> None:
    desk.aborted_job()
    upload(desk, JOB)
    plan = tmp_path / "plan.jsonl"
    told = desk.run(*FSCK, "--plan", str(plan), exit_code=1).stderr
    assert f"s3commit fsck {SALES} --repair --plan {plan}" in told
    head, repair = records(plan.read_text())
    assert head == {"version": 1, "destination": SALES}
    assert repair["action"] == "abort-upload"
    later = upload(desk, JOB).replace("late", "later")
    start_upload(desk.world, later)
    result = desk.run(*FSCK, "--repair", "--plan", str(plan), exit_code=1)
    assert "not in the plan" in result.stdout
    result = desk.run(*FSCK, "--repair")
    assert result.stderr.splitlines()[-1] == "2 repaired, 0 left at s3://lake/sales/ (1 job)"
    assert desk.world.open_uploads() == []
    desk.run(*FSCK)


def test_a_repair_of_which_nobody_knows_is_4(desk: Desk) -> None:
    desk.aborted_job()
    upload(desk, JOB)
    desk.world.plan.lose_response("abort_upload")
    result = desk.run(*FSCK, "--repair", exit_code=4)
    assert result.stderr.splitlines()[-1].startswith("error: of 1 repair nobody knows")
    desk.run(*FSCK, "--repair")


def test_a_check_that_can_not_look_is_1_in_one_line(desk: Desk) -> None:
    desk.world.plan.fail("list", TransientError("s3 is away"), times=None)
    assert "s3 is away" in desk.fails(*FSCK, exit_code=1)


def test_an_execution_is_started_for_a_job_whose_own_has_died(desk: Desk) -> None:
    desk.job_at("DecideCommit")
    desk.run(*FSCK)
    desk.dies(JOB)
    assert "NOT_GOING_ON" in desk.run(*FSCK, exit_code=1).stdout
    desk.run(*FSCK, "--repair")
    (started,) = desk.executions.started
    record = desk.world.ledger.job(REF)
    assert record is not None
    assert started.startswith(arn_of(JOB, f"{REF}-fsck-{record.generation}-"))
    desk.executions.statuses[arn_of(JOB)] = "RUNNING"
    desk.run(*FSCK)


def test_without_a_state_machine_a_request_that_nobody_heard_is_left(desk: Desk) -> None:
    desk.requested_job()
    result = desk.run(*FSCK, "--repair", exit_code=1)
    assert "-> failed: to go on with job" in result.stdout
    desk.run(*FSCK, "--repair", "--state-machine", MACHINE)
    assert len(desk.executions.started) == 1


def test_a_first_execution_that_the_ledger_has_not_heard_of_is_seen(desk: Desk) -> None:
    desk.requested_job()
    desk.executions.statuses[arn_of(JOB)] = "RUNNING"
    desk.run(*FSCK, "--state-machine", MACHINE)


def test_many_findings_of_a_kind_are_told_in_short(desk: Desk) -> None:
    desk.aborted_job()
    for number in range(25):
        start_upload(desk.world, f"sales/part-{number}-{JOB}.csv")
    result = desk.run(*FSCK, exit_code=1)
    assert len(result.stdout.splitlines()) == 20
    assert "UPLOAD_LEFT (5 more): " in result.stderr
    assert len(records(desk.run(*FSCK, "--output", "json", exit_code=1).stdout)) == 26


@pytest.mark.parametrize(
    "arguments",
    [
        ("fsck", SALES),
        (*FSCK, "--repair", "--dry-run"),
        (*FSCK, "--rebuild-ledger", "--repair"),
        (*FSCK, "--rebuild-ledger", "--plan", "x"),
        (*FSCK, "--repair", "--plan", "/does/not/exist"),
        (*FSCK, "--plan", "/does/not/exist"),
        ("fsck", "nowhere", "--table", TABLE),
        ("fsck", "s3://lake/", "--table", TABLE),
        ("fsck", "s3://lake", "--table", TABLE, "--repair"),
    ],
)
def test_what_can_not_be_meant_is_2(desk: Desk, arguments: tuple[str, ...]) -> None:
    desk.fails(*arguments, exit_code=2)


def test_a_plan_of_another_destination_is_2(desk: Desk, tmp_path: Path) -> None:
    plan = tmp_path / "plan.jsonl"
    plan.write_text('{"version":1,"destination":"s3://lake/orders/"}\n')
    assert "is of s3://lake/orders/" in desk.fails(
        *FSCK, "--repair", "--plan", str(plan), exit_code=2
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00\xff\xfe",
        b"{",
        b"[]\n",
        b'{"version":1,"destination":"s3://lake/sales/"}\n\n',
        b'{"version":1,"destination":"s3://lake/sales/"}\n{"action":"delete-bucket"}\n',
        b'{"version":2,"destination":"s3://lake/sales/"}\n',
        b'{"version":1,"destination":"elsewhere"}\n',
        b'{"version":1,"destination":"s3://lake/sales/"}\n' + b"x" * 20_000,
    ],
)
def test_a_plan_of_garbage_is_2_in_one_line_and_nothing_is_done(
    desk: Desk, tmp_path: Path, body: bytes
) -> None:
    desk.aborted_job()
    key = upload(desk, JOB)
    plan = tmp_path / "plan.jsonl"
    plan.write_bytes(body)
    assert str(plan) in desk.fails(*FSCK, "--repair", "--plan", str(plan), exit_code=2)
    assert desk.world.open_uploads() == [key]


def test_a_destination_where_no_job_ever_was_is_doubted(desk: Desk) -> None:
    desk.committed_job()
    told = desk.run("fsck", "s3://lake/slaes/", "--table", TABLE).stderr
    assert told == (
        "nothing found at s3://lake/slaes/; no job has left a trace there: is it the right one?\n"
    )
    (summary,) = records(
        desk.run("fsck", "s3://lake/slaes/", "--table", TABLE, "--output", "json").stdout
    )
    assert summary["jobs"] == 0


def test_a_check_without_the_right_to_list_uploads_says_so_and_leaves_no_half_plan(
    desk: Desk, tmp_path: Path
) -> None:
    desk.aborted_job()
    desk.world.plan.fail("list_uploads", AccessError("listing uploads: no"), times=None)
    plan = tmp_path / "plan.jsonl"
    told = desk.fails(*FSCK, "--plan", str(plan), exit_code=1)
    assert told.startswith("error: listing uploads: no [ACCESS_DENIED]")
    assert "aws sts get-caller-identity" in told
    assert not plan.exists()


def test_a_repair_that_has_to_stop_does_not_say_that_nothing_was_changed(desk: Desk) -> None:
    desk.requested_job()
    desk.world.plan.fail("list_uploads", AccessError("listing uploads: no"), times=None)
    result = desk.run(*FSCK, "--repair", "--state-machine", MACHINE, exit_code=1)
    told = result.stderr.splitlines()[-1]
    assert "stopped there, with 1 finding repaired" in told
    assert "nothing was changed" not in told
    assert len(desk.executions.started) == 1


def test_a_rebuild_that_has_to_stop_does_not_say_that_nothing_was_changed(desk: Desk) -> None:
    desk.committed_job()
    desk.requested_job(OTHER)
    Checked(desk.world).lose_ledger()
    directory = job_directory(OTHER).prefix
    away = TransientError("listing: no")
    desk.world.plan.fail("list", away, where=lambda call: call.key == directory)
    result = desk.run(*FSCK, "--rebuild-ledger", "--state-machine", MACHINE, exit_code=1)
    assert "stopped there, with 1 job directory told" in result.stderr.splitlines()[-1]


def test_a_list_in_an_archive_is_a_finding_of_its_job_alone(desk: Desk) -> None:
    """S3 answers InvalidObjectState, which is no matter of rights."""
    desk.committed_job()
    list_key = job_directory(JOB).commits
    archived = InvalidInputError("it has to be restored first")
    desk.world.plan.fail(
        "first_bytes", archived, times=None, where=lambda call: call.key == list_key
    )
    assert "UNREADABLE" in desk.run(*FSCK, exit_code=1).stdout


def test_long_listings_say_how_far_they_are(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3commit.cli.fsck_ports.TELL_EVERY", 5)
    desk.committed_job()
    result = desk.run(*FSCK, "--output", "json")
    assert result.stderr.splitlines()[0] == "... 5 keys listed"
    assert len(records(result.stdout)) == 1


# The ledger made again.


def test_i8_a_whole_bucket_is_made_again(desk: Desk) -> None:
    desk.committed_job()
    Checked(desk.world).lose_ledger()
    for bucket in ("s3://lake", "s3a://lake/"):
        result = desk.run("fsck", bucket, "--table", TABLE, "--rebuild-ledger")
        assert f"__magic_job-{JOB}/: COMMITTED" in result.stdout
    assert "below s3://lake/: 0 records made" in result.stderr


def test_i8_a_job_that_was_decided_holds_its_locks_again_and_is_told_so(desk: Desk) -> None:
    desk.job_at("BeginPublish")
    Checked(desk.world).lose_ledger()
    result = desk.run(*FSCK, "--rebuild-ledger", "--state-machine", MACHINE)
    assert "was decided and holds its locks again, an execution was started" in result.stdout


def test_i8_a_lost_ledger_is_made_again(desk: Desk) -> None:
    desk.committed_job()
    desk.requested_job(OTHER)
    Checked(desk.world).lose_ledger()
    looked = desk.run(*FSCK, "--rebuild-ledger", "--dry-run", "--state-machine", MACHINE)
    assert "would make" in looked.stdout
    assert desk.world.ledger.job(REF) is None
    result = desk.run(*FSCK, "--rebuild-ledger", "--state-machine", MACHINE)
    assert result.stdout.splitlines() == [
        f"made  s3://lake/sales/__magic_job-{JOB}/: COMMITTED",
        f"made  s3://lake/sales/__magic_job-{OTHER}/: OPEN, 2 attempts noted, an execution was"
        " started",
    ]
    assert desk.world.record(job_directory(JOB)).state is JobState.COMMITTED
    assert len(desk.executions.started) == 1
    desk.world.run(job_directory(OTHER), "execution-2")
    desk.run(*FSCK)


def test_i8_without_a_state_machine_it_says_what_has_to_go_on(desk: Desk) -> None:
    desk.requested_job()
    Checked(desk.world).lose_ledger()
    result = desk.run(*FSCK, "--rebuild-ledger", exit_code=1)
    assert "needs an execution: to go on with job" in result.stdout
    assert "or: s3commit commit s3://lake/sales/__magic_job-" in result.stdout
    (record,) = records(desk.run(*FSCK, "--rebuild-ledger", "--output", "json", exit_code=1).stdout)
    assert (record["made"], record["goesOn"], record["started"]) == (False, True, False)


# Against a server: versions, ranges and conditions as S3 has them.


def test_on_s3_it_finds_repairs_and_makes_the_ledger_again(
    ports: Ports, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, bucket = ports.store, os.environ[env.TABLE]
    destination = f"s3://{bucket}/sales/"
    versions: Any = {"Status": "Enabled"}
    boto3.client("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration=versions)
    written, given_up = (open_job(destination, store=store) for _ in range(2))
    for job in (written, given_up):
        with job.task("t0", task_count=1) as task, task.open("a.csv") as file:
            file.write(b"hello")
    run("commit", uri_of(written.directory))
    run("abort", uri_of(given_up.directory))
    for job in (written, given_up):
        run_execution(ports, job.directory)
    run("fsck", destination)
    (line,) = run("ls", destination, "--files", written.job_id).stdout.splitlines()[1:]
    key = f"sales/{line.split()[-1]}"
    facts = store.head(bucket, key)
    assert facts is not None
    store.put(bucket, key, b"other bytes")
    store.put(bucket, f"{key}.of another name", b"x")
    left = store.create_upload(
        bucket, f"sales/a-{given_up.job_id}.csv", metadata={}, content_type=""
    )
    assert store.upload_is_open(bucket, f"sales/a-{given_up.job_id}.csv", left)
    found = run("fsck", destination, exit_code=1).stdout
    assert f"CHANGED  {key[6:]} (restore version {facts.version_id})" in found
    plan = str(tmp_path / "plan.jsonl")
    run("fsck", destination, "--plan", plan, exit_code=1)
    run("fsck", destination, "--repair", "--plan", plan, exit_code=1)
    assert not store.upload_is_open(bucket, f"sales/a-{given_up.job_id}.csv", left)
    store.delete(bucket, key, version_id=store.head(bucket, key).version_id)  # type: ignore[union-attr]
    run("fsck", destination)
    store.put(bucket, f"sales/_commits/{given_up.job_id}.jsonl", b"")
    assert "UNREADABLE" in run("fsck", destination, exit_code=1).stdout
    monkeypatch.setenv(env.TABLE, f"{bucket}-new")
    create_table(f"{bucket}-new", moto_endpoint)
    made = run("fsck", destination, "--rebuild-ledger").stdout
    assert sorted(line.rsplit(" ", 1)[-1] for line in made.splitlines()) == ["ABORTED", "COMMITTED"]
