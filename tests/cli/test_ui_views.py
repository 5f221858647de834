"""What the page of ``s3commit ui`` says, as the commands say it."""

import html
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pytest

from s3commit.cli import job_lists
from s3commit.cli.app import app
from s3commit.cli.page import jobs_view
from s3commit.core.documents.job_json import Who
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Destination
from s3commit.core.model.errors import TransientError
from s3commit.core.model.locks import key_digest
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from tests.cli.browser import Browser, inside
from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk, arn_of
from tests.core.world import job_directory

# Jobs


def test_no_parallel_map_is_used_within_another(desk: Desk, browser: Browser) -> None:
    """All views share the session's workers: those that wait for others would hold them all."""
    desk.committed_job(JOB)
    desk.open_job(OTHER)
    inside: list[object] = []

    def flat(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        assert not inside, f"{function} within {inside[0]}"
        for item in [*items]:
            inside.append(function)
            answer = function(item)
            inside.pop()
            yield answer

    desk.session.parallel = flat
    for view in ("/", f"/?table={SALES}", f"/table?table={SALES}", f"/job?job={JOB}"):
        assert JOB in browser.get(view)
    assert len(desk.json("status", "--all", "--table", TABLE)["jobs"]) == 2


def test_the_jobs_are_those_of_status_with_who_wrote_them(desk: Desk, browser: Browser) -> None:
    who = Who(application="orders.py", user="etl")
    directory = desk.requested_job(JOB, who=who, idempotency_key=key_digest("load 1"))
    desk.world.clock.advance(300)
    desk.world.run(directory)
    noon = desk.world.clock.now()
    desk.world.clock.advance(60)
    desk.open_job(OTHER)
    page = browser.get("/")
    assert page.index(OTHER) < page.index(JOB)  # the latest first
    for told in (
        "COMMITTED",
        "OPEN",
        "orders.py, etl",
        ">sales/<",
        "1m",
        "5m",
        "append",
        "21 22:05",
    ):
        assert told in page
    filters: list[tuple[dict[str, Any], set[str]]] = [
        ({"key": "load 1"}, {JOB}),
        ({"key": key_digest("load 1")[:8]}, {JOB}),
        ({"before": f"{noon[:16]}:30"}, {JOB}),
        ({"since": f"{noon[:16]}:30"}, {OTHER}),
        ({"key": "load"}, set()),
        ({"state": "OPEN"}, {OTHER}),
        ({"who": "ETL"}, {JOB}),
        ({"table": "s3://lake/other/"}, set()),
    ]
    for typed, jobs in filters:
        page = browser.get("/", **typed)
        assert (typed, {job for job in (JOB, OTHER) if job in page}) == (typed, jobs)
        assert ("No jobs like that" in page) is (jobs == set())
    refused = html.unescape(browser.get("/", 400, table="nowhere"))
    assert "path 's3://nowhere' is a whole bucket" in refused


@pytest.mark.parametrize("column", jobs_view.SORTED)
def test_the_list_is_sorted_by_its_headings(desk: Desk, browser: Browser, column: str) -> None:
    """Both ways; what is not known is last in both."""
    who = Who(application="a.py")
    desk.committed_job(JOB, who=who, conflict=Conflict.REPLACE)
    place, files = JobDirectory(Destination("lake", "zoo/"), OTHER), {f"p-{OTHER}.csv": b"1"}
    desk.world.open(place, who=Who(application="b.py"))
    attempt = desk.world.attempt(place, "0", files=files)
    desk.world.announce(place, attempt)
    desk.world.clock.advance(60)
    desk.world.request(place, attempt)
    desk.world.run(place)
    desk.world.clock.advance(60)
    desk.open_job(THIRD, tasks=1)
    pages = [browser.get("/")]
    for _ in "ab":
        [link] = re.findall(f'<a href="([^"]+)">{column.capitalize()}<', pages[-1])
        pages.append(browser.get(html.unescape(link)))
    orders = [re.findall(r'"id short" title="([^"]{36})"', page) for page in pages[1:]]
    known = 3 if column in {"state", "age", "table", "what"} else 2
    assert len(orders[0]) == 3
    assert orders[0] != orders[1] or column in {"what", "state"}
    assert orders[0][known:] == orders[1][known:] == [THIRD][: 3 - known]


def older(browser: Browser, page: str) -> list[str]:
    """The jobs of all pages behind the first one, by the beginnings of their ids."""
    found: list[str] = []
    while link := re.search(r'href="([^"]+)">Older jobs', page):
        page = browser.get(html.unescape(link[1]))
        found += re.findall(r">(\d{8})-0000-4000[^<]*</", page)
    return found


def test_of_ten_thousand_jobs_a_page_shows_some_and_asks_for_no_more(
    desk: Desk, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs a person comes first, however old it is; the others page after page."""
    monkeypatch.setattr(jobs_view, "PAGE", 5)
    monkeypatch.setattr(jobs_view, "OLDEST", 3)
    monkeypatch.setattr(job_lists, "FEW", 5)
    read, jobs_in = Counter[str](), desk.world.ledger.jobs_in

    def counted(state: JobState, **asked: Any) -> Iterator[JobRecord]:
        for record in jobs_in(state, **asked):
            read[state] += 1
            yield record

    monkeypatch.setattr(desk.world.ledger, "jobs_in", counted)
    desk.open_job(OTHER)
    desk.job_at("SealJob", THIRD)  # the only one in its state
    desk.world.clock.advance(2 * 86400)
    asked = []
    for number in range(24):
        desk.open_job(f"{number:08}-0000-4000-8000-000000000000", tasks=1)
        desk.world.clock.advance(1)
        if number in {11, 23}:
            before = len(desk.world.plan.calls)
            page = browser.get("/")
            asked.append(Counter(call.verb for call in desk.world.plan.calls[before:]))
            assert max(map(page.index, (OTHER, THIRD))) < page.index(f"{number:08}-0000")
            assert page.count('class="id short"') == 7
    assert asked[1] <= asked[0]  # of each verb
    assert asked[0].total() < 60
    assert read["OPEN"] == 2 * (5 + 1 + 3 + 1)  # of each listing one more, to know that it is cut
    assert older(browser, page) == [f"{number:08}" for number in range(18, -1, -1)]


def test_a_page_leads_to_the_jobs_of_a_table_behind_those_of_others(
    desk: Desk, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing in one state stops earlier than one in another: nothing in between is passed."""
    monkeypatch.setattr(job_lists, "LOOKED_AT", 3)
    for number in range(9):
        job_id = f"{number:08}-0000-4000-8000-000000000000"
        if number > 3:
            place = job_directory(job_id, "other/")
            desk.world.open(place)
            desk.world.announce(place, desk.world.attempt(place, "0"))
        elif number == 2:
            desk.aborted_job(job_id)
        else:
            desk.open_job(job_id)
        desk.world.clock.advance(1)
    page = browser.get("/", table=SALES)
    assert older(browser, page) == ["00000003", "00000002", "00000001", "00000000"]


# A job


def seen_states(page: str) -> dict[str, str]:
    """The boxes of the drawing that are marked, and how."""
    return dict(re.findall(r'class="node \w+">\n<title>(\w+): (\w+)</title>', page))


def test_a_job_shows_what_show_says_and_its_execution(desk: Desk, browser: Browser) -> None:
    directory = desk.job_at("DecideCommit")
    desk.stacks.history(
        ("TaskStateEntered", "SealJob"),
        ("TaskScheduled", ""),
        ("TaskFailed", "States.Timeout"),
        ("TaskScheduled", ""),
        ("TaskStateExited", "SealJob"),
        ("ChoiceStateEntered", "WhereItStands"),
        ("ChoiceStateExited", "WhereItStands"),
        ("MapStateEntered", "CompleteUploads"),
    )
    page = browser.get("/job", job=JOB)
    marked = {"SealJob": "tried", "WhereItStands": "done", "CompleteUploads": "now"}
    assert seen_states(page) == marked
    assert browser.get("/job", job=directory.uri).count("0 of 2 files visible") == 1
    assert ("2<td><td>manifests of tasks" in page, ".pendingset" in page) == (True, False)
    shown = desk.run("show", JOB, "--table", TABLE).stdout
    for label in ("means", "plan", "locks nodes", "execution"):
        assert (f"<dt>{label}</dt>" in page) is (f"\n{label} " in shown and label != "means")
    printed = desk.json("show", JOB, "--table", TABLE, "--history")["states"]
    assert {one["state"]: one["did"] for one in printed} == marked
    assert (printed[0]["tries"], printed[0]["error"]) == (2, "States.Timeout")
    desk.stacks.history(("TaskStateEntered", "SealJob"), ("ExecutionFailed", ""))
    assert seen_states(browser.get("/job", job=JOB)) == {"SealJob": "failed"}


def test_a_history_that_nobody_knows_is_said(desk: Desk) -> None:
    """As of a job whose record was swept: S3 alone does not know it."""
    directory = desk.job_at("DecideCommit")
    said = desk.run("show", directory.uri, "--history")
    assert said.stderr.startswith("no execution is known: ")


def test_a_job_shows_its_time_and_partitions_before_all(desk: Desk, browser: Browser) -> None:
    files = {f"dt={day}/part-{n}-{JOB}.csv": b"123" for day in "12" for n in range(2)}

    def spans() -> list[tuple[str, str]]:
        return re.findall(r"<tr><td>(\w+)<td class=\"number\">([\w ]+)<td><progress", page())

    def page() -> str:
        return browser.get("/job", job=JOB)

    directory = desk.requested_job(JOB, files=files)
    desk.world.clock.advance(60)
    assert spans() == [("tasks", "1m")]
    assert "Partitions touched" not in page()
    desk.world.run(directory, arn_of(JOB))
    moments = ("22:00:31", "22:02:01", "22:04:00")
    named = zip(("requested_at", "decided_at", "finished_at"), moments, strict=True)
    desk.change(directory, **{name: f"2026-11-21T{one}.000Z" for name, one in named})
    desk.world.store.delete(directory.bucket, directory.result)
    desk.world.store.delete(directory.bucket, directory.request)
    assert spans() == [("tasks", "30s"), ("decision", "1m 30s"), ("completing", "1m 59s")]
    desk.stacks.history(
        *(("TaskStateEntered", "WaitForDestination"), ("TaskStateExited", "WaitForDestination")),
        ("ExecutionSucceeded", ""),
    )
    queued = [("tasks", "30s"), ("queue", "1s"), ("decision", "1m 29s"), ("completing", "1m 59s")]
    assert spans() == queued
    assert 'dt=1/<td class="number">2<td class="number">6 B' in page()
    order = ["Where the time went", "Partitions touched", "States of its execution", "Documents"]
    assert sorted(order, key=page().index) == order


def test_what_stopped_a_job_stands_before_its_next_step(desk: Desk, browser: Browser) -> None:
    desk.job_at("DecideCommit")
    desk.dies(JOB, error="NeedsOperatorError", says="[PAGE_CHANGED] _s3commit/x.json is missing")
    head, _, _ = browser.get("/job", job=JOB).partition("<h2>Next</h2>")
    assert "Stopped: its execution is FAILED" in head
    assert "<strong>PAGE_CHANGED" in head
    assert "Do what the message says" in head


def test_the_page_of_an_undo_names_the_job_that_it_undoes(desk: Desk, browser: Browser) -> None:
    desk.committed_job(JOB)
    undo = job_directory(OTHER)
    desk.world.open(undo, conflict=Conflict.REPLACE, undoes=JOB)
    page = browser.get("/job", job=undo.uri)
    assert f'an undo of job <a class="id short" title="{JOB}"' in page


def test_each_command_of_a_next_step_is_one_that_can_be_typed(desk: Desk, browser: Browser) -> None:
    """Whatever the job's state, and however its table is named."""
    desk.open_job("a" * 8 + JOB[8:])
    desk.requested_job("b" * 8 + JOB[8:])
    desk.committed_job("c" * 8 + JOB[8:])
    desk.job_at("SealJob", "d" * 8 + JOB[8:])
    desk.dies("d" * 8 + JOB[8:])
    desk.job_at("DecideCommit", "e" * 8 + JOB[8:], conflict=Conflict.REPLACE)
    desk.dies("e" * 8 + JOB[8:])
    place = Destination("lake", "it's (ends it)/a b; starts /")
    desk.world.open(JobDirectory(place, OTHER))
    typed = []
    for job in [*(letter * 8 + JOB[8:] for letter in "abcde"), JobDirectory(place, OTHER).uri]:
        page = browser.get("/job", job=job)
        commands = re.findall('data-copy="(s3.+?)"', page)
        copied = [shlex.split(html.unescape(one)) for one in commands]
        assert len(copied) == len(re.findall("<li>[^<]*s3commit [a-z]+ ", page)) > 0
        typed += copied
    for _, verb, *arguments in typed:
        assert app.commands[verb].make_context(verb, arguments, obj=desk.session)
    assert {one[1] for one in typed} == {"abort", "commit", "doctor", "ls", "undo"}
    assert any(JobDirectory(place, OTHER).uri in one for one in typed)


def test_a_job_of_a_million_files_asks_for_no_more_than_one_of_two(
    desk: Desk, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are counted by its documents, and never listed."""
    monkeypatch.setattr("s3commit.cli.page.job_view.SCANNED_UPLOADS", 3)
    asked = []
    for job_id, count in ((JOB, 2), (OTHER, 500)):
        files = {f"part-{number:03}-{job_id}.csv": b"x" for number in range(count)}
        desk.job_at("DecideCommit", job_id, files=files)
        before = len(desk.world.plan.calls)
        page = browser.get("/job", job=job_id)
        asked.append(Counter(call.verb for call in desk.world.plan.calls[before:]))
        seen = "0" if count == 2 else "An unknown number"  # no number that was not counted
        assert f"{seen} of {count} files visible" in page
    assert asked[0] == asked[1]


def test_of_a_job_of_very_many_tasks_the_manifests_are_not_counted(
    desk: Desk, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s3commit.cli.page.job_view.LISTED_MANIFESTS", 3)
    desk.open_job(JOB, tasks=3)
    assert "3<td><td>manifests of tasks" in browser.get("/job", job=JOB)
    desk.open_job(OTHER, tasks=4)
    monkeypatch.setattr(desk.world.ledger, "attempts", None)  # nobody asks for what they say
    page = browser.get("/job", job=OTHER)
    assert "more than 3<td><td>manifests of tasks" in page
    assert "s3commit show</code> counts them" in page


def test_what_is_not_counted_is_not_shown_as_if(desk: Desk, browser: Browser) -> None:
    desk.change(desk.job_at("DecideCommit", OTHER), state=JobState.ROLLING_BACK)
    page = browser.get("/job", job=OTHER)
    assert "An unknown number of 2 files visible" in page  # some are still there
    desk.committed_job(JOB)
    assert 'data-changes=""' in browser.get("/log", job=JOB)
    page = browser.get("/job", job=JOB)
    assert ('data-changes=""' in page, "manifests" in page) == (True, False)  # its end deletes them
    assert 'data-changes=""' in browser.get("/table", table=SALES, fsck="1")
    assert 'data-changes=""' not in browser.get("/table", table=SALES)


def test_a_jobs_log_is_read_on_demand_and_says_its_end(desk: Desk, browser: Browser) -> None:
    desk.committed_job(JOB)
    line = {"level": "ERROR", "message": "step failed", "job_id": JOB, "step": "RollBack", "n": 7}
    desk.stacks.logged = [json.dumps(line), f"[ERROR] {JOB} <b>", "of another job"]
    assert "step failed" not in browser.get("/job", job=JOB)
    [link] = re.findall(r'href="([^"]+)">The log of its', browser.get("/job", job=JOB))
    page = browser.get(html.unescape(link))
    for told in ("step failed n=7", "RollBack", f"[ERROR] {JOB} &lt;b&gt;", ">EndLogs<"):
        assert told in page
    assert "another job" not in page and "There is more" not in page
    told_of = islice(browser.told("/changes/log", job=JOB), 3)
    kinds = [chunk.partition("\n")[0] for chunk in told_of]
    assert kinds == ["event: change", "event: end"]  # it is read once
    desk.stacks.pages_of_logs = 6
    assert "There is more" in browser.get(html.unescape(link))


# A table


def test_a_table_has_its_commits_and_fsck_on_demand(desk: Desk, browser: Browser) -> None:
    desk.committed_job(JOB, files={f"dt=1/part-{JOB}.csv": b"12345"})
    desk.world.clock.advance(60)
    desk.committed_job(OTHER, files={f"dt=2/part-{OTHER}.csv": b"123"}, conflict=Conflict.REPLACE)
    page = browser.get("/table", table=SALES)
    assert re.findall(r'<tr class="(\w+) committed">', page) == ["overwrite", "append"]
    assert "dt=2/" in page and "dt=1/" not in page
    for typed in (SALES.removeprefix("s3://"), SALES.replace("s3://", "s3a://")):
        assert f"<h1>Table {SALES}</h1>" in browser.get("/table", table=typed)
    assert "<dt>sound</dt>" not in page
    checked = browser.get("/table", table=SALES, fsck="1")
    assert "<dt>sound</dt><dd>yes</dd>" in checked


# What changes


def test_a_change_is_sent_until_the_job_has_ended(desk: Desk, browser: Browser) -> None:
    directory = desk.requested_job(JOB)
    desk.while_it_waits(list, lambda: desk.world.run(directory))
    told = [chunk for chunk in browser.told("/changes/job", job=JOB) if not chunk.startswith(":")]
    kinds = [re.findall("^event: (.+)$", chunk, re.M) for chunk in told]
    assert kinds == [["change"], ["change"], ["change"], ["end"]]
    before, later, after, _ = map(inside, told)
    assert "0 of 2 files visible" in before
    assert before != later and "0 of 2 files visible" in later  # the time has changed
    assert "2 of 2 files made visible" in after and "COMMITTED" in after


def test_what_has_not_changed_is_not_sent_again(browser: Browser) -> None:
    told = browser.told("/changes/jobs")
    assert next(told).startswith("event: change")
    assert [next(told) for _ in range(3)] == [": still here\n\n"] * 3


def test_a_stream_rests_and_outlives_an_error(desk: Desk, browser: Browser) -> None:
    job, busy = desk.open_job().job, TransientError("S3 is busy")
    slept: list[float] = []
    desk.environment.sleep = slept.append  # type: ignore[method-assign, assignment]
    desk.world.plan.run_before("list", lambda: desk.world.clock.advance(30), times=None)
    desk.world.plan.fail("get", busy, nth=2, where=lambda call: call.key == job)
    told = browser.told("/changes/job", job=JOB)
    kinds, still = [next(told).partition("\n")[0] for _ in range(5)], ": still here"
    assert kinds == ["event: change", still, "event: trouble", still, "event: change"]
    assert (slept[0], 1 <= slept[1] <= 60) == (60, True)  # longer than it asks, within bounds
