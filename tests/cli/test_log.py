"""``s3commit log``: what happened at a table."""

import json
from functools import partial
from unittest.mock import patch

import pytest

from s3commit.cli import log
from s3commit.cli.log import LONGEST_WHY, log_document
from s3commit.core.documents.job_json import MAX_NOTE, MAX_WHO, Who
from s3commit.core.formats.layout import MAGIC_PREFIX
from s3commit.core.model.destination import Conflict
from s3commit.core.model.locks import key_digest
from tests.cli.browser import Browser
from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk
from tests.core.world import BUCKET, NO_MOMENTS, job_directory

KEY = key_digest("2026-11-21")  # as _job.json has it
WHO = Who("application_1_7", "sales", "ops", "node-7", "daily/run/write/-1/2")


def test_what_happened_last_comes_last_with_who_and_why_however_it_ended(desk: Desk) -> None:
    began = desk.world.clock.now()
    desk.requested_job(THIRD, who=Who(user="ops"))
    desk.world.clock.advance(60)
    desk.committed_job(JOB, who=WHO, idempotency_key=KEY, created_at=began)
    desk.world.clock.advance(60)
    desk.committed_job(OTHER, idempotency_key=KEY)
    text = desk.run("log", SALES).stdout.splitlines()
    assert text[0].split() == ["ENDED", "KIND", "STATE", "FILES", "ROWS", "REPLACED", "GONE", "JOB"]
    first, under, other, why, *_, third, who = text[1:]
    assert first.split()[2:5] == ["append", "COMMITTED", "2"]
    assert first.startswith("2026-11-21 22:01:00Z") and first.endswith(JOB)
    by = "who sales (application_1_7), ops@node-7, daily/run/write/-1/2"
    assert under == f"  {by}; key {KEY[:8]}; size 8 B; took 1m"
    assert other.split()[2:4] == ["append", "ABORTED"]
    assert why.startswith("  why not ALREADY_COMMITTED: job ")
    assert (third.split(), who) == (["append", "REQUESTED", THIRD], "  who ops")
    document = desk.json("log", SALES)
    assert document["complete"] is True
    assert document["jobs"][0]["who"] == {
        "applicationId": "application_1_7",
        "application": "sales",
        "user": "ops",
        "host": "node-7",
        "airflow": "daily/run/write/-1/2",
    }
    assert document["jobs"][1]["error"]["code"] == "ALREADY_COMMITTED"


def test_of_the_longest_values_no_line_is_wider_than_120(desk: Desk) -> None:
    """Other jobs' ids are shortened, the one of the row is whole: it is typed."""
    name = "x" * MAX_WHO
    desk.committed_job(JOB, who=Who(name, name, name, name, name), idempotency_key=KEY)
    documents = log_document(desk.session, job_directory(JOB).destination, [], limit=1)
    (job,) = documents["jobs"]
    most = {"files": 99_999, "rows": 999_999_999, "replaced": 99_999, "gone": 99_999}
    said = {"kind": "overwrite", "state": "ROLLING_BACK", "undoes": OTHER, "undoneBy": THIRD}
    told = {"why": "w" * LONGEST_WHY, "problems": ["p" * LONGEST_WHY] * 3, "bytes": 2**50}
    documents["jobs"] = [job | most | said | told]
    with patch("s3commit.cli.log.log_document", lambda *_, **__: documents):
        lines = desk.run("log", SALES).stdout.splitlines()
    assert (max(map(len, lines)) <= 120, JOB in lines[1]) == (True, True), lines
    assert f"undoes {OTHER[:8]}; undone by {THIRD[:8]}; key {KEY[:8]}" in " ".join(
        " ".join(lines).split()
    )


def test_a_key_finds_its_jobs_and_a_limit_says_that_there_are_more(desk: Desk) -> None:
    desk.committed_job(JOB, idempotency_key=KEY)
    desk.world.clock.advance(60)
    desk.committed_job(OTHER)
    (job,) = desk.json("log", SALES, "--key", "2026-11-21", "--limit", "1")["jobs"]
    assert (job["jobId"], job["idempotencyKey"], job["key"]) == (JOB, KEY, KEY[:8])
    assert desk.json("log", SALES, "--key", "2026-11")["jobs"] == []
    for key in ("nope", ""):
        told = desk.run("log", SALES, "--key", key).stderr
        assert told == f"no jobs at {SALES} with the idempotency key {key!r}\n"
    result = desk.run("log", SALES, "--limit", "1")
    assert OTHER in result.stdout
    assert JOB not in result.stdout
    assert result.stderr == "there are older ones: raise --limit\n"
    assert desk.run("log", "s3://lake/sale/").stderr == "no jobs at s3://lake/sale/\n"


def test_what_is_gone_from_s3_is_known_by_the_manifest_or_the_ledger(desk: Desk) -> None:
    """The sweep retires documents, and the jar deletes those of an undone job."""
    for directory in (desk.committed_job(JOB), desk.aborted_job(OTHER)):
        desk.world.delete_documents(directory)
    (kept,) = desk.json("log", SALES)["jobs"]
    assert (kept["jobId"], kept["state"], kept["files"]) == (JOB, "COMMITTED", 2)
    jobs = {one["jobId"]: one for one in desk.json("log", SALES, "--table", TABLE)["jobs"]}
    assert jobs[OTHER]["error"]["code"] == "ABORTED_BY_CLIENT"
    assert jobs.keys() == {JOB, OTHER}


def test_what_others_put_there_is_no_job_and_what_they_say_is_shown_harmlessly(desk: Desk) -> None:
    store, mark = desk.world.store, "\x1b[2J"
    desk.requested_job(JOB, who=Who(application=f"{mark}{'x' * 200}", airflow=mark))
    store.put(BUCKET, "sales/__magic_job-x/_job.json", b"{}")
    store.put(BUCKET, f"sales/__magic_job-{OTHER}/_tasks/t/_a.pendingset", b"{}")
    store.put(BUCKET, "sales/_commits/_x.jsonl", b"{}")
    store.put(BUCKET, job_directory(THIRD).job, b"{}")
    output = desk.run("log", SALES).stdout
    assert mark not in output
    assert max(map(len, output.splitlines())) <= 120
    assert {one["jobId"] for one in desk.json("log", SALES)["jobs"]} == {JOB, THIRD}


def says(desk: Desk, key: str, member: str, text: str) -> None:
    """The first line of the job's document there says so."""
    first, *rest = desk.world.store.get(BUCKET, key, max_bytes=10_000).body.splitlines()
    changed = json.dumps({**json.loads(first), member: text}).encode()
    desk.world.store.put(BUCKET, key, b"\n".join([changed, *rest]))


@pytest.mark.parametrize("text", NO_MOMENTS)
@pytest.mark.parametrize("member", ["createdAt", "finishedAt", "decidedAt"])
def test_a_time_that_is_none_hides_no_other_job(desk: Desk, member: str, text: str) -> None:
    """A client puts ``_job.json``, and, where no policy protects it, what the pipeline puts."""
    directory = desk.committed_job(JOB, created_at=desk.world.clock.now())
    desk.committed_job(OTHER, created_at=desk.world.clock.now())
    if member == "decidedAt":  # it counts where the documents are past their time
        desk.world.delete_documents(directory)
    keys = {"createdAt": directory.job, "finishedAt": directory.result}
    says(desk, keys.get(member, directory.commits), member, text)
    jobs = {one["jobId"]: one for one in desk.json("log", SALES)["jobs"]}
    assert jobs[JOB]["startedAt"].startswith("2026-11-21T22:00")  # as S3 has it
    assert (jobs[JOB]["endedAt"] is None) == (member == "decidedAt")
    assert jobs[JOB]["tookSeconds"] == (0 if member == "finishedAt" else None)
    assert jobs[OTHER]["tookSeconds"] == 0
    assert desk.run("log", SALES).stdout.count("COMMITTED") == 2


def test_of_requests_it_reads_that_they_stand(desk: Desk) -> None:
    """They have up to 64 MiB, and it reads sixteen jobs at once."""
    directories = [desk.committed_job(JOB), desk.requested_job(OTHER)]
    desk.world.plan.forget_calls()
    assert {one["state"] for one in desk.json("log", SALES)["jobs"]} == {"COMMITTED", "REQUESTED"}
    read = {call.key for call in desk.world.plan.calls if call.verb == "get"}
    assert directories[0].job in read
    assert not {directory.request for directory in directories} & read


def test_a_committed_job_takes_a_listing_and_three_documents(desk: Desk) -> None:
    """And its record; a page may show fifty."""
    desk.committed_job(JOB)
    desk.world.plan.forget_calls()
    desk.json("log", SALES)
    calls = [call.verb for call in desk.world.plan.calls if JOB in call.key]
    assert sorted(calls) == ["below", "first_bytes", "get", "get"]


def test_a_job_that_is_deleted_meanwhile_hides_no_other(desk: Desk) -> None:
    """As the jar does with an undone job, and the sweep with an old one."""
    gone, world = desk.aborted_job(JOB), desk.world
    desk.committed_job(OTHER)
    delete = partial(world.delete_documents, gone)
    world.plan.run_after("list", delete, where=lambda call: MAGIC_PREFIX in call.key)
    assert [one["jobId"] for one in desk.json("log", SALES)["jobs"]] == [OTHER]


def test_an_overwrite_that_came_late_stands_where_its_effect_does(desk: Desk) -> None:
    """Begun first, and committed last: by then it has replaced the other's files."""
    late, other = desk.requested_job(JOB, conflict=Conflict.REPLACE), job_directory(OTHER)
    desk.world.commit(other)
    desk.world.clock.advance(60)
    desk.world.run(late)
    rows = desk.json("log", SALES)["jobs"]
    counts = [(row["jobId"], row["replaced"], row["gone"]) for row in rows]
    assert counts == [(OTHER, 0, 1), (JOB, 1, 0)]
    assert [row["jobId"] for row in desk.json("ls", SALES)["jobs"]] == [OTHER, JOB]
    (row,) = desk.json("log", SALES, "--limit", "1")["jobs"]
    assert row["jobId"] == JOB


def test_of_very_many_files_none_is_said_gone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.committed_job(JOB)
    monkeypatch.setattr(log, "MOST_LISTED", 2)
    assert desk.json("log", SALES)["jobs"][0]["gone"] is None
    assert "GONE is unknown: there are more than 2 objects" in desk.run("log", SALES).stderr


def test_a_note_and_labels_are_shown_and_found_wherever_a_job_is(
    desk: Desk, browser: Browser
) -> None:
    """With its documents and without; what a stranger says is shown as text."""
    note, labels = "<b>\u202e&7", ("dag=sales", "at=<i>", "runAt=7")
    desk.committed_job(JOB, note=note, labels=labels)
    desk.world.clock.advance(60)
    desk.committed_job(OTHER, note="x" * MAX_NOTE, labels=("dag=other",))
    said = {"note": note, "labels": [*labels]}
    for _ in ("with documents", "without"):
        (row,) = desk.json("log", SALES, "--label", "dag=sales", "--label", "runAt=7")["jobs"]
        shown = desk.json("show", JOB, "--table", TABLE)
        for asked in ("SALES", "&7"):
            assert desk.json("log", SALES, "--note", asked)["jobs"] == [row]
        (listed,) = [one for one in desk.listed("--all") if one["jobId"] == JOB]
        for one in (row, shown, desk.json("show", job_directory(JOB).uri), listed):
            assert {name: one[name] for name in said} == said
        for typed in (["log", SALES], ["show", JOB, "--table", TABLE]):
            text = desk.text(*typed)
            assert "<b>\\u202e&7" in text and "\u202e" not in text
            assert all(label in text for label in labels)
        for page in (
            browser.get("/"),
            browser.get("/table", table=SALES),
            browser.get("/job", job=JOB),
        ):
            assert "&lt;b&gt;\\u202e&amp;7" in page and "at=&lt;i&gt;" in page
        for asked in ("SALES", "&7"):
            page = browser.get("/", note=asked)
            assert (JOB in page, OTHER in page) == (True, False)
        desk.world.delete_documents(job_directory(JOB))
    assert "x" * 80 in desk.text("log", SALES) and "x" * MAX_NOTE not in desk.text("log", SALES)
    assert "'OPS-7' is not NAME=VALUE" in desk.fails("log", SALES, "--label", "OPS-7", exit_code=2)
    told = desk.run("log", SALES, "--label", "dag=x", "--key", "k", "--note", "n").stderr
    wanted = "the idempotency key 'k' and the label 'dag=x' and the note 'n'"
    assert told == f"no jobs at {SALES} with {wanted}\n"
