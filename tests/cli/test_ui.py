"""``s3commit ui``: who may look, and that what strangers name is text."""

import json
from collections import Counter
from html.parser import HTMLParser
from unittest.mock import Mock
from urllib.parse import quote

import pytest

from s3commit.cli.page.server import make_page
from s3commit.cli.show import console_url
from s3commit.core.documents.job_json import Who
from s3commit.core.formats.layout import UNSPEAKABLE, JobDirectory
from s3commit.core.model.destination import Destination
from tests.cli.browser import PORT, Browser, inside
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk, arn_of

ROUTES = [
    *("/", "/job", "/table", "/log", "/changes/jobs", "/changes/job", "/static/page.js"),
    *("/nowhere", "//evil.example"),
]
HERE = f"127.0.0.1:{PORT}"
WRONG_HOSTS = ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"{HERE}.evil.example", ""]
WRONG_ORIGINS = ["https://evil.example", "null", "http://127.0.0.1", f"https://{HERE}", ""]


def test_the_port_of_web_pages_is_in_no_address(desk: Desk) -> None:
    application, address = make_page(desk.session, 80)
    desk.session.typed["table"] = TABLE
    assert address.startswith("http://127.0.0.1/?token=")
    browser = application.test_client()
    assert browser.get(address, follow_redirects=True).status_code == 200
    assert browser.get("http://127.0.0.1:80/", headers={"Host": "evil.example"}).status_code == 403


def test_a_port_of_the_system_is_one_line(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = PermissionError(13, "Permission denied")
    monkeypatch.setattr("socket.create_server", Mock(side_effect=refused))
    assert desk.fails("ui", "--port", "80", exit_code=1).startswith(
        "Error: port 80 can't be used: Permission denied; choose another one, of 1024 or above"
    )


@pytest.mark.parametrize("path", ROUTES)
def test_i12_only_who_has_the_address_sees_a_page_and_nobody_writes(
    browser: Browser, path: str
) -> None:
    ask, token = browser.ask, browser.token
    refused = {
        "no token": ask(path, Cookie=""),
        "another token": ask(f"{path}?token={token[:-1]}", Cookie=""),
        "no text": ask(f"{path}?token=%ff%00%C3%A9", Cookie=""),
        "another cookie": ask(path, Cookie=f"s3commit-{PORT}={token[:-1]}"),
        "another port's": ask(path, Cookie=f"s3commit-{PORT + 1}={token}"),
        **{f"host {host}": ask(path, Host=host) for host in WRONG_HOSTS},
        **{f"origin {origin}": ask(path, Origin=origin) for origin in WRONG_ORIGINS},
    }
    statuses = {why: answer.status_code for why, answer in refused.items()}
    assert statuses == dict.fromkeys(refused, 403)
    methods = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")
    wrote = {method: ask(path, method).status_code for method in methods}
    assert wrote == dict.fromkeys(methods, 405)
    assert all("<" not in answer.text for answer in refused.values())
    for answer in (*refused.values(), ask(path)):
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


def test_the_token_is_exchanged_for_a_cookie_that_no_script_and_no_other_site_has(
    browser: Browser,
) -> None:
    """Another site can link to a page, and neither frame it nor ask for what it says."""
    ask, token = browser.ask, browser.token
    places = {"/": "/", "//evil.example/": "/evil.example/", "/\\evil.example": "/evil.example"}
    for path, place in places.items():
        answer = ask(f"{path}?token={token}&who=a%26b", Cookie="")
        assert (answer.status_code, answer.headers["Location"]) == (303, f"{place}?who=a%26b")
        cookie = answer.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Lax"} <= {part.strip() for part in cookie.split(";")}
    for host in ("127.0.0.1", "localhost"):
        same = ask("/", Host=f"{host}:{PORT}", Origin=f"http://{host}:{PORT}")
        assert same.status_code == 200


def test_i12_another_sites_link_begins_nothing_dear(desk: Desk, browser: Browser) -> None:
    desk.committed_job(JOB)
    paths = {"/": 200, f"/job?job={JOB}": 200, f"/table?table={SALES}": 200}
    paths |= {f"/log?job={JOB}": 403, f"/table?table={SALES}&fsck=1": 403}
    for path, status in paths.items():
        for site in ("cross-site", "same-site"):
            assert browser.ask(path, **{"Sec-Fetch-Site": site}).status_code == status, path
        for site in ("same-origin", "none"):
            assert browser.ask(path, **{"Sec-Fetch-Site": site}).status_code == 200


# Values of strangers


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "</title></svg>&amp;&#60;b&#62;",
    "\u202egnp.exe\u2066\x1b[2J\x9b",
    "a" * 500,
]


class Markup(HTMLParser):
    """The elements of a page, and what could run or lead elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shape: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape[tag] += 1
        for name, value in attrs:
            leads = name in {"href", "src", "action"} and not (value or "").startswith(("/", "#"))
            if leads or name.startswith("on") or name == "style" or (tag, name) == ("script", ""):
                self.wrong.append(f"{tag} {name}={value}")


@pytest.mark.parametrize("text", HOSTILE)
def test_i12_whatever_strangers_name_is_text_in_each_view(desk: Desk, text: str) -> None:
    """The page has the same elements as one of a harmless name, and nothing more to run."""
    shapes = []
    for named in ("harmless", text):
        desk = Desk()
        browser = Browser(desk)
        place = Destination("lake", f"{UNSPEAKABLE.sub('', named)}/")
        who = Who(application=named, user=named, airflow=named)
        for job_id in (JOB, OTHER):
            desk.world.open(JobDirectory(place, job_id), who=who)
        aborted = JobDirectory(place, OTHER)
        desk.world.request_abort(aborted, reason=named)
        desk.world.run(aborted)
        desk.stacks.logged = [f"{OTHER} {named}", json.dumps({"message": named, named: OTHER})]
        pages = [
            browser.get("/log", job=aborted.uri),
            browser.get("/"),
            browser.get("/", who=named, state=named),
            browser.get("/job", job=aborted.uri),
            browser.get("/table", table=place.uri),
            browser.get("/table", table=place.uri, fsck="1", view=named, _external="1"),
            inside(next(browser.told("/changes/job", job=aborted.uri))),
        ]
        read = [Markup(page) for page in pages]
        assert [one.wrong for one in read] == [[]] * len(pages)
        assert not any(char in page for page in pages for char in "\u202e\u2066\x1b\x9b")
        shapes.append([(set(one.shape), one.shape["script"], one.shape["form"]) for one in read])
        for path in ("/job", "/table", "/nowhere"):
            answer = browser.ask(f"{path}?job={quote(named)}&table={quote(named)}")
            assert (answer.status_code in {400, 404}, Markup(answer.text).wrong) == (True, [])
            assert (">All jobs</a>" in answer.text, "page.css" in answer.text) == (True, True)
            shapes[-1].append((set((shape := Markup(answer.text).shape)), shape["script"], 0))
    assert shapes[0] == shapes[1]


def test_i12_a_result_leads_to_no_other_host() -> None:
    for region in ("evil.example/", "evil.example#", "a@evil.example", "", "eu central"):
        assert console_url(f"arn:aws:states:{region}:1:execution:Machine:x") is None
    assert console_url("arn:aws-iso:states:us-iso-east-1:1:execution:Machine:x") is None
    assert console_url(arn_of(JOB)) is not None
