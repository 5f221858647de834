"""The page as people meet it: in a real browser, live, by keyboard, in both colours, on a phone."""

import json
import re
from contextlib import closing
from itertools import takewhile
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from s3commit.cli.page.jobs_view import SORTED
from s3commit.core.documents.job_json import MAX_NOTE, MAX_WHO, Who
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Destination
from s3commit.core.model.locks import key_digest
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import PlanFacts, Waits
from s3commit.core.model.states import JobState
from s3commit.local.serving import Serving
from tests.browser.conftest import Shown
from tests.cli.support import JOB, OTHER, SALES, THIRD, arn_of
from tests.core.world import job_directory
from tests.fakes.execution import walk_execution

PHONE: Any = {"width": 390, "height": 844}
JOB_PAGE = f"/job?job={JOB}"
RTL = "\u202egnp.exe \u05d0\u05d1\u05d2"
HOSTILE = "</title><script>hacked=1</script>\"'><img src=x onerror=hacked=1> {{ 7*7 }}"


def run_until(shown: Shown, job_id: str, state: str) -> None:
    """The job's execution up to that state, which it has entered, by its history too."""
    ports, stacks = shown.desk.world.ports, shown.desk.stacks
    steps = walk_execution(ports, job_directory(job_id), execution=arn_of(job_id))
    passed = list(takewhile(lambda name: name != state, steps))
    shown.desk.executions.statuses[arn_of(job_id)] = "RUNNING"
    events = [(f"TaskState{how}", name) for name in passed for how in ("Entered", "Exited")]
    stacks.history(*events, ("TaskStateEntered", state))


def width_over(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_a_job_is_seen_from_its_first_task_to_its_end(shown: Shown) -> None:
    """On one page, which is never loaded again."""
    desk, directory = shown.desk, shown.desk.open_job(tasks=1)
    with shown.page() as page:
        page.get_by_role("link", name=JOB).click()
        state, files = page.locator("h1 .state"), page.locator("#progress")
        expect(state).to_have_text("OPEN")
        expect(files).to_contain_text(re.compile(r"1 task noted\.\s+0 of 1 file visible"))
        expect(page.locator("#states")).to_contain_text("No execution has begun")
        page.evaluate("loadedOnce = true")
        attempts = [desk.world.attempt(directory, task) for task in "123"]
        assert all(desk.world.announce(directory, attempt) for attempt in attempts)
        expect(files).to_contain_text("4 tasks noted")
        desk.world.request(directory, *attempts)
        run_until(shown, JOB, "BeginPublish")
        expect(state).to_have_text("COMMITTING")
        expect(page.locator("#progress progress")).to_have_attribute(
            "value", "2"
        )  # one more is open
        expect(page.locator(".machine .now title")).to_have_text("BeginPublish: now")
        desk.world.run(directory, arn_of(JOB))
        desk.stacks.history(("TaskStateEntered", "TidyUp"), ("ExecutionSucceeded", ""))
        expect(state).to_have_text("COMMITTED")
        expect(files).to_contain_text("3 of 3 files made visible")
        expect(page.locator("#documents")).to_contain_text("_result.json")
        expect(page.locator("#live")).to_have_text("ended")
        assert page.evaluate("loadedOnce")


def test_a_refused_job_says_why_and_what_to_do(shown: Shown) -> None:
    shown.desk.committed_job(OTHER)
    shown.desk.committed_job(JOB, conflict=Conflict.FAIL)
    with shown.page() as page:
        refused = page.get_by_role("row").filter(has_text="ABORTED")
        expect(refused).to_contain_text("DESTINATION_NOT_EMPTY")
        refused.get_by_role("link", name=JOB).click()
        expect(page.locator("#head .problem")).to_contain_text("DESTINATION_NOT_EMPTY")
        expect(page.locator("#head")).to_contain_text("Do:")


def test_a_stuck_job_is_on_top_and_the_keyboard_alone_copies_its_command(shown: Shown) -> None:
    shown.desk.requested_job(JOB)
    run_until(shown, JOB, "BeginPublish")
    shown.desk.dies(JOB)
    shown.desk.world.clock.advance(60)
    shown.desk.committed_job(OTHER)
    with shown.page() as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        focused = page.locator(":focus")

        def tab_to(name: str) -> list[str]:
            """Tab until what is focused has that name; what was passed."""
            page.wait_for_load_state()  # else its stylesheet may not be there yet
            passed: list[str] = []
            while not passed or name not in passed[-1]:
                page.keyboard.press("Tab")
                passed.append(focused.evaluate("it => it.ariaLabel || it.name || it.innerText"))
                assert focused.evaluate("it => getComputedStyle(it).outlineStyle") == "solid"
                assert len(passed) < 40, passed
            return passed

        expect(page.locator("tbody tr").first).to_contain_text("needs a person")
        assert tab_to("Skip") == ["Skip to the content"]
        assert (focused.bounding_box() or {"x": -1})["x"] >= 0
        page.keyboard.press("Enter")
        fields = ["table", "state", "who", "note", "key", "since", "before"]
        headings = [name.capitalize() for name in SORTED]
        assert tab_to(JOB) == [*fields, "Filter", "Jobs", *headings, JOB]
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text("COMMITTING")
        command = tab_to("Copy s3commit")[-1].removeprefix("Copy ")
        page.keyboard.press("Enter")
        expect(focused).to_have_text("copied")
        assert page.evaluate("navigator.clipboard.readText()") == command
        run_until(shown, JOB, "TidyUp")
        expect(page.locator("h1")).to_contain_text("COMMITTED")
        expect(focused).to_contain_text("copy")  # what was sent has left it where it was


@pytest.mark.parametrize(
    "view", ["/", "/job?job={job}", "/log?job={job}", "/table?table={table}&fsck=1"]
)
def test_i12_whatever_strangers_name_is_shown_and_never_run(shown: Shown, view: str) -> None:
    place = Destination("lake", f"{HOSTILE}{'k' * 500}/")
    job = JobDirectory(place, JOB)
    shown.desk.world.open(job, who=Who(application=RTL, user=HOSTILE), note=HOSTILE)
    shown.desk.world.announce(job, shown.desk.world.attempt(job, "0"))
    shown.desk.stacks.logged = [f"{JOB} {HOSTILE}"]
    asked = view.format(job=quote(job.uri), table=quote(place.uri))
    with shown.page(asked, viewport=PHONE) as page:
        text = page.locator("main").inner_text()
        assert ("<script>hacked" in text, RTL[0] in text) == (True, False)
        assert view != "/" or r"\u202egnp.exe" in text
        assert page.evaluate("typeof hacked") == "undefined"
        assert page.locator("main :is(script, img)").count() == width_over(page) == 0


OFF_SCREEN = """() => [...document.querySelectorAll(innerWidth > 640 ? "main :is(th, td)" :
    "main :is(th:has(a), td:not(.wide :empty))")].filter((it) => {
  const { left, right, width, height } = it.getBoundingClientRect();
  const fits = it.scrollWidth <= Math.ceil(width) && left >= 0 && right <= innerWidth;
  return !(width && height && fits && it.checkVisibility());
}).map((it) => it.tagName + " " + it.textContent.trim())"""
TALLEST = {390: 420, 1280: 220}  # px of a row of the list


@pytest.mark.parametrize("width", [390, 1280])
def test_the_longest_values_leave_headings_on_the_screen(shown: Shown, width: int) -> None:
    """Of each table of each view; the list's rows stay rows."""
    desk, name = shown.desk, "W" * MAX_WHO
    place = JobDirectory(Destination("lake", f"{'k' * 400}/"), JOB)
    who = Who(name, name, name, name, name)
    file = f"dt={'W' * 240}/h={'W' * 240}/part-{JOB}.csv"
    said: Any = {"note": "W" * MAX_NOTE, "labels": (f"{'W' * 64}={name}",)}
    desk.world.open(place, who=who, idempotency_key=key_digest("today"), **said)
    desk.world.request(place, desk.world.attempt(place, "0", files={file: b"1"}))
    desk.world.run(place)
    desk.open_job(OTHER)
    desk.open_job(THIRD)
    most = 2**53 - 1
    long: Any = {"plan": PlanFacts("", 1, most, most, most), "undoes": OTHER}
    long |= {"created_at": "1970-01-01T00:00:00.000Z", "failure": Failure("W" * 60, "W" * 900)}
    desk.change(place, **long)
    waits = Waits("2026-11-01T00:00:00.000Z", (job_directory(THIRD).ref, place.ref))
    sealed: Any = {"state": JobState.SEALED, "waits": waits, "execution": arn_of(OTHER)}
    desk.change(job_directory(OTHER), **sealed)
    desk.dies(OTHER, error="W" * 80, says="W" * 900)
    desk.stacks.history(("TaskStateEntered", "W" * 80), ("ExecutionFailed", "W" * 250))
    line = {"level": "CRITICAL", "message": "W" * 900, "job_id": JOB, "step": "W" * 40}
    desk.stacks.logged = [json.dumps(line)]
    table, job = f"/table?table={place.destination.uri}", f"/job?job={place.uri}"
    for path in ("/", table, job, f"/job?job={OTHER}", f"/log?job={place.uri}"):
        with shown.page(path, viewport={"width": width, "height": 844}) as page:
            assert (path, page.evaluate(OFF_SCREEN), width_over(page)) == (path, [], 0)
            assert page.locator("main th").count() > 2
            if path == "/":
                tall = "[...document.querySelectorAll('tbody tr')].map((it) => it.offsetHeight)"
                assert max(page.evaluate(tall)) <= TALLEST[width]


BROKEN = """() => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const broken = [], range = document.createRange();
  for (let text; (text = texts.nextNode());)
    for (const word of text.data.matchAll(/[a-z]{2,18}/gi)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const it = text.parentElement;
      const lines = new Set([...range.getClientRects()].map((box) => box.top));
      if (lines.size > 1 && it.checkVisibility() && !it.closest(".short, svg, #documents"))
        broken.push(word[0]);
    }
  return broken;
}"""


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_short_word_goes_over_two_lines(shown: Shown, width: int) -> None:
    desk, place = shown.desk, job_directory(JOB)
    said: Any = {"note": "backfill, ticket 7", "labels": ("dag=daily",)}
    desk.committed_job(OTHER, idempotency_key=key_digest("today"), **said)
    desk.committed_job(JOB, conflict=Conflict.REPLACE, who=Who("orders.py", "airflow", "worker-7"))
    desk.requested_job(THIRD, conflict=Conflict.FAIL)
    run_until(shown, THIRD, "TidyUp")
    table, job = f"/table?table={place.destination.uri}", f"/job?job={place.uri}"
    for path in ("/", table, job):
        with shown.page(path, viewport={"width": width, "height": 844}) as page:
            assert (path, page.evaluate(BROKEN)) == (path, [])
            assert page.locator("main tr").count() > 2


READ = """async ([to, how]) => {
  try { const answer = await fetch(to, how); return [answer.status, await answer.text()]; }
  catch { return [0]; }
}"""


def test_i12_no_other_site_and_nobody_without_the_token_sees_a_job(shown: Shown) -> None:
    """The browser has the cookie, and sends it from pages of other ports as well."""
    shown.desk.open_job(JOB)
    port = shown.home.rpartition(":")[2]

    def other(_asked: Any, start: Any) -> list[bytes]:
        start("200 OK", [("Content-Type", "text/html")])
        return [f"<iframe src='{shown.home}'></iframe>".encode()]

    with (
        closing(Serving(0, lambda _port: other, "other")) as site,
        closing(shown.browser.new_page()) as page,
    ):
        page.goto(shown.address)
        asked = [page.evaluate(READ, [shown.home, {"method": how}])[0] for how in ("GET", "POST")]
        assert asked == [200, 405]
        for host in ("127.0.0.1", "evil.example"):
            page.goto(f"http://{host}:{site.port}")
            page.frames[1].wait_for_url(re.compile("^chrome-error:"), wait_until="commit")
            assert page.evaluate(READ, [shown.home, {"mode": "no-cors"}]) == [0]
            for how in ({"credentials": "include"}, {"method": "POST", "mode": "no-cors"}):
                shown.answers.clear()
                assert page.evaluate(READ, [shown.home, how]) == [0]
                assert shown.answers == [(f"http://{host}:{site.port}", 403)]
    for address in (
        f"http://evil.example:{port}/?{shown.token}",
        *(f"{shown.home}{path}" for path in ("/", JOB_PAGE, "/changes/jobs", "/static/page.js")),
    ):
        with closing(shown.browser.new_page()) as page:
            answer = page.goto(address)
            assert (answer and answer.status, JOB in page.content()) == (403, False)


# Who can see it

CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const of = (it, name) => it && rgb(getComputedStyle(it)[name]);
  const behind = (it) => { const own = of(it, "backgroundColor");
    return own[3] === 255 ? own : behind(it.parentElement); };
  const light = (colour) => colour.slice(0, 3).map((part) => part / 255)
    .map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [.2126, .7152, .0722][at], 0);
  const said = (it) => [...it.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
  const texts = [...document.querySelectorAll("body :not(svg, svg *)")]
    .filter((it) => said(it) && it.checkVisibility())
    .map((it) => [it, of(it, "color"), behind(it)]);
  const boxes = [...document.querySelectorAll(".machine .node")].map((it) => [it,
    of(it.querySelector("text"), "fill"), of(it.querySelector("polygon, path, ellipse"), "fill")]);
  return [...texts, ...boxes].map(([it, ink, paper]) => { const both = [light(ink), light(paper)];
    return [it.textContent.trim(), (Math.max(...both) + .05) / (Math.min(...both) + .05)]; });
}"""
CROWDED = """() => {
  const all = (what) => [...document.querySelectorAll(what)].filter((it) => it.checkVisibility());
  const boxes = new Map(all(".machine text").map((it) => [it, it.getBoundingClientRect()]));
  const meet = (a, b) => a !== b && a.left < b.right && b.left < a.right && a.top < b.bottom
    && b.top < a.bottom;
  const upon = [...boxes].filter(([, box]) => [...boxes.values()].some((one) => meet(box, one)));
  const beyond = all(".machine .node").filter((it) => {
    const { x, y, width, height } = it.querySelector("text").getBBox();
    const shape = it.querySelector("polygon, path, ellipse");
    return ![[0, .2], [1, .2], [0, .8], [1, .8]].every(([across, down]) =>
      shape.isPointInFill({ x: x + width * across, y: y + height * down }));
  });
  const cut = all("input").filter((it) => { // a phone has no room for a whole job directory
    const { value } = it;
    it.value ||= it.placeholder;
    const fits = it.scrollWidth <= it.clientWidth;
    it.value = value;
    return !fits && (innerWidth > 640 || !value);
  });
  const holes = all(".wide td").filter((it) => innerWidth <= 640 && !it.textContent.trim());
  const lines = [".wide th", "[name=since], [name=before]"].map(all)
    .map((row) => new Set(row.map((it) => it.getBoundingClientRect().top)).size);
  return [...upon.map(([it]) => it), ...beyond, ...cut, ...holes]
    .map((it) => it.textContent.trim() || it.name).concat(lines.filter((count) => count > 1));
}"""
MARKS = """() => [...document.querySelectorAll(".line")].map((it) => {
  const { content, boxShadow, backgroundColor, color } = getComputedStyle(it, "::after");
  return [content + boxShadow, backgroundColor + color];
})"""
LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3, level AA: https://www.w3.org/TR/WCAG22/#contrast-minimum


@pytest.mark.parametrize(("colours", "paper"), [("light", 255), ("dark", 20)])
def test_each_view_is_legible_on_each_screen(shown: Shown, colours: Any, paper: int) -> None:
    shown.desk.committed_job(OTHER, who=Who(application="orders.py", user="etl"))
    shown.desk.committed_job(THIRD, conflict=Conflict.FAIL)
    shown.desk.requested_job(JOB)
    run_until(shown, JOB, "BeginPublish")
    shown.desk.dies(JOB, error="TransientError", says="S3 is busy")
    labels = [*JobState, "REQUESTED", "SUCCEEDED", "FAILED", "TIMED_OUT", "tried", "now"]
    made = "".join(f"<span class='state {one.lower()}'>{one}</span>" for one in labels)
    shown.desk.stacks.logged = [f'{{"message": "failed", "job_id": "{JOB}", "level": "ERROR"}}']
    views = (
        "/",
        JOB_PAGE,
        f"/job?job={job_directory(THIRD).uri}",
        f"/log?job={JOB}",
        f"/table?table={SALES}&fsck=1",
    )
    for path in views:
        with shown.page(path, color_scheme=colours) as page:
            page.evaluate("made => document.querySelector('h1').innerHTML += made", made)
            contrasts = page.evaluate(CONTRASTS)
            bad = [one for one in contrasts if one[1] < LEAST_CONTRAST]
            assert (len(contrasts) > 24, bad) == (True, [])
            back = "getComputedStyle(document.body).backgroundColor"
            assert page.evaluate(back).startswith(f"rgb({paper},")
            assert page.evaluate(CROWDED) == []
            page.set_viewport_size(PHONE)
            assert (width_over(page), page.locator("h1").is_visible()) == (0, True)
            assert page.evaluate(CROWDED) == []
            if path.startswith("/table"):  # by shape, and by colour
                marks = page.evaluate(MARKS)
                assert [len({*one}) for one in zip(*marks, strict=True)] == [3, 3]
