"""``s3commit show``: everything about one job, from the ledger and S3, or from S3 alone."""

import pytest

from s3commit.cli.job_facts import REQUESTED
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.documents.ticket import decode_ticket, execution_input
from s3commit.core.model.codes import CODES
from s3commit.core.model.states import JobState
from s3commit.core.ports.executions import Reason
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk, arn_of
from tests.core.world import job_directory

ARN = arn_of(JOB)
PRINCIPAL = "AWS:AROAEXAMPLEID:etl-nightly"


def test_an_open_job_says_what_it_waits_for(desk: Desk) -> None:
    desk.open_job()
    text = desk.text("show", JOB, "--table", TABLE)
    assert text.startswith(f"job id {JOB}\ndestination s3://lake/sales/\n")
    assert "\nstate OPEN\nmeans tasks are writing" in text
    assert "created 2026-11-21 22:00:00Z\n" in text
    assert "client test/1\n" in text
    assert "manifests 2\nnoted attempts 2, tasks 2, files 2, bytes 8 B" in text
    assert "open uploads 2" in text
    assert "next nothing while its driver lives" in text
    assert f"s3commit commit {JOB} --table {TABLE} --dry-run" in text
    # A driver that died between its tasks and its request: what a person may do, and what is done.
    assert "run the job again; the sweep aborts this one" in text
    assert f"to abort it now: s3commit abort {JOB} --table {TABLE}" in text


def test_who_requested_a_job_by_s3s_event_stands_beside_what_its_client_claims(desk: Desk) -> None:
    ticket = decode_ticket(execution_input(desk.requested_job(), Reason(requested_by=PRINCIPAL)))
    seal_job(desk.world.ports, ticket)
    shown = desk.json("show", JOB, "--table", TABLE)
    assert (shown["requestedBy"], shown["who"]) == (PRINCIPAL, None)
    assert f"\nrequested by {PRINCIPAL}\n" in desk.text("show", JOB, "--table", TABLE)


@pytest.mark.parametrize("by", ["id", "URI"])
@pytest.mark.parametrize("begin", ["open_job", "requested_job", "committed_job", "aborted_job"])
def test_that_who_requested_a_job_is_not_known_is_said(desk: Desk, begin: str, by: str) -> None:
    directory = getattr(desk, begin)()
    how = [JOB, "--table", TABLE] if by == "id" else [directory.uri]
    assert ("requested by not known: " in desk.text("show", *how)) is (begin != "open_job")
    assert desk.json("show", *how)["requestedBy"] is None


@pytest.mark.parametrize("deeper", ["", "_request.json", "_tasks/0/_a0.pendingset"])
def test_a_uri_in_the_job_directory_does_without_a_table(desk: Desk, deeper: str) -> None:
    directory = desk.requested_job()
    document = desk.json("show", directory.uri + deeper)
    assert (document["state"], document["noted"]) == (REQUESTED, None)
    (line,) = document["next"]
    assert line == "the ledger knows how far it is: name its table with --table, or --name"


def test_an_ended_job_whose_documents_were_deleted_needs_nothing(desk: Desk) -> None:
    for directory in (desk.committed_job(JOB), desk.aborted_job(OTHER)):
        desk.world.delete_documents(directory)
    for job, means in ((JOB, "nothing: it is done."), (OTHER, "nothing for this job, it has")):
        line, *_ = desk.json("show", job, "--table", TABLE)["next"]
        assert line.startswith(means)
        desk.run("show", job, "--follow", "--table", TABLE, exit_code=0 if job == JOB else 3)
    state = desk.json("show", job_directory(JOB).uri)["state"]
    assert state == "COMMITTED"  # by S3 alone: its list is there, and no request
    assert "COMMITTED" in desk.run("show", job_directory(JOB).uri, "--follow").stdout


@pytest.mark.parametrize("asked_for", [True, False])
def test_a_bucket_without_a_pipeline_is_said_if_it_is_seen(desk: Desk, asked_for: bool) -> None:
    directory = desk.requested_job() if asked_for else desk.open_job()
    desk.has_pipeline = False
    (line,) = desk.json("show", directory.uri)["next"]
    assert line.startswith("bucket lake has no s3commit pipeline, so this job will never commit")
    desk.has_pipeline = True
    assert "pipeline" not in str(desk.json("show", directory.uri)["next"])


def test_counted_attempts_stand_beside_the_noted_ones(desk: Desk) -> None:
    directory = desk.open_job(tasks=3)
    world = desk.world
    world.request(directory, world.attempt(directory, "9"))
    document = desk.shown()
    assert document["request"] == {"action": "commit", "attempts": 1, "files": 1, "bytes": 4}
    assert document["noted"] == {"attempts": 3, "tasks": 3, "files": 3, "bytes": 12}
    assert document["manifests"] == 4
    assert document["openUploads"] == 4
    assert document["next"][0].startswith("wait a few seconds")
    assert f"start it: s3commit commit {JOB}" in document["next"][1]
    world.clock.advance(1200)
    look, redrive, *_ = desk.shown()["next"]
    assert look == "its request has waited 20m: s3commit doctor says why"
    assert redrive.endswith("if the request was put aside: s3commit redrive")


def test_a_committed_job_names_its_files(desk: Desk) -> None:
    desk.committed_job()
    text = desk.text("show", JOB, "--table", TABLE)
    assert "state COMMITTED\nmeans ended: all files were made visible" in text
    assert "result outcome COMMITTED, files 2, bytes 8 B, rows 8, replaced 0, decided 2026" in text
    assert "plan units 1, files 2, bytes 8 B, rows 8" in text
    assert f"s3commit ls {SALES} --files {JOB}" in text
    assert ("\nmanifests " in text, desk.shown()["manifests"]) == (False, 0)


def test_a_job_of_the_jar_says_what_a_catalog_may_lack(desk: Desk) -> None:
    """Spark's driver writes to the catalog after the commit, if it hears of it."""
    desk.committed_job(client="s3commit-native/0.1.0")
    text = desk.text("show", JOB, "--table", TABLE)
    assert "MSCK REPAIR TABLE" in text
    assert "CREATE TABLE ... LOCATION 's3a://lake/sales/'" in text
    desk.committed_job(OTHER, client="s3commit-spark/0.1.0")
    assert "MSCK" not in desk.text("show", OTHER, "--table", TABLE)


def test_an_aborted_job_says_why_and_what_is_left(desk: Desk) -> None:
    directory = desk.aborted_job()
    desk.world.upload(directory, f"part-9-{JOB}.parquet", b"late", task="9", attempt="a9")
    document = desk.shown()
    code, advice = "ABORTED_BY_CLIENT", CODES["ABORTED_BY_CLIENT"]
    says = {"code": code, "message": "driver gave up", "means": advice.means, "do": advice.do}
    assert document["error"] == says
    assert document["request"] == {"action": "abort", "reason": "driver gave up"}
    assert document["openUploads"] == 1


def test_a_job_at_work_that_is_silent_sends_to_its_execution(desk: Desk) -> None:
    directory = desk.job_at("DecideCommit")
    document = desk.shown()
    assert document["state"] == "COMMITTING"
    assert document["next"] == ["nothing: its execution is at work"]
    desk.world.clock.advance(2 * 3600)
    document = desk.shown()
    assert "no progress for too long: if its execution failed" in document["next"][0]
    assert document["console"].endswith(f"/v2/executions/details/{ARN}")
    desk.has_console = False
    assert desk.shown()["console"] is None
    assert document["generation"] == desk.world.record(directory).generation
    assert document["directory"] == directory.uri


@pytest.mark.parametrize(
    ("where", "told"),
    [(["--table", TABLE], "in table ledger"), (["--destination", SALES], f"at {SALES}")],
)
def test_an_unknown_id_is_one_line(desk: Desk, where: list[str], told: str) -> None:
    assert f"no job {OTHER} {told}" in desk.fails("show", OTHER, *where, exit_code=1)


@pytest.mark.parametrize("verb", ["show", "commit", "abort"])
def test_an_id_alone_or_a_part_of_one_says_what_to_name(desk: Desk, verb: str) -> None:
    line = desk.fails(verb, JOB, exit_code=1)
    assert "no stack S3CommitStorage in this account and region names the" in line
    assert "--table or S3COMMIT_TABLE, or the job's place with --destination" in line
    line = desk.fails(verb, JOB, "--table", "", exit_code=2)
    assert f"without a table, job {JOB} can only be found with --destination" in line
    desk.open_job()
    assert "or its first 8 digits" in desk.fails(verb, JOB[:7], "--table", TABLE, exit_code=2)


def test_an_id_elsewhere_is_not_mixed_up_and_at_two_places_asks_for_one(desk: Desk) -> None:
    desk.open_job()
    line = desk.fails("show", JOB, "--destination", "s3://lake/b/", "--table", TABLE, exit_code=1)
    assert f"no job {JOB} at s3://lake/b/" in line
    other = job_directory(JOB, "orders/")
    desk.world.open(other)
    desk.world.announce(other, desk.world.attempt(other, "t0"))
    line = desk.fails("show", JOB, "--table", TABLE, exit_code=2)
    assert "at s3://lake/orders/, s3://lake/sales/: name one with --destination" in line
    desk.run("show", JOB, "--table", TABLE, "--destination", "s3://lake/orders/")


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.OPEN])
def test_every_state_has_a_next_step(desk: Desk, state: JobState) -> None:
    desk.change(desk.requested_job(), state=state)
    assert all(desk.shown()["next"])
