"""``s3commit ui``: who may look, and what the page says, as the commands say it."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from s3commit.cli.page import jobs as jobs_page
from s3commit.cli.page.server import make_page
from s3commit.core.model.job import Who
from tests.cli.support import JOB, OTHER, TABLE, Desk

PORT = 8473
HOME = f"http://127.0.0.1:{PORT}"
ROUTES = ["/", "/jobs", "/changes/jobs", "/static/page.js", "/nowhere", "//evil.example"]


class Browser:
    """A browser that was given the address, and one that was not."""

    def __init__(self, desk: Desk) -> None:
        desk.session.typed["table"] = TABLE
        self.application, self.address = make_page(desk.session, PORT)
        self.token = self.address.removeprefix(f"{HOME}/?token=")
        self.cookie = f"s3commit-{PORT}={self.token}"
        self.client = self.application.test_client(use_cookies=False)

    @property
    def known(self) -> Any:
        return {"base_url": HOME, "headers": {"Cookie": self.cookie}}

    def ask(self, path: str, method: str = "GET", **headers: str) -> Any:
        """One request with these headers; the cookie too, unless another is given."""
        path, _, query = path.partition("?")
        to = {"PATH_INFO": path, "QUERY_STRING": query}  # the client would read a host in it
        sent = {"Cookie": self.cookie, **headers}
        answer = self.client.open(method=method, base_url=HOME, headers=sent, environ_overrides=to)
        if answer.status_code == 200:
            answer.close()  # a stream has no end
        return answer

    def get(self, path: str, status: int = 200, **asked: Any) -> str:
        answer = self.client.get(path, **self.known, query_string=asked or None)
        assert answer.status_code == status, answer.text
        return answer.text

    def told(self, path: str, **asked: Any) -> Iterator[str]:
        """What a stream says, chunk by chunk."""
        answer = self.client.get(path, **self.known, query_string=asked)
        return (chunk if isinstance(chunk, str) else chunk.decode() for chunk in answer.response)


@pytest.fixture
def browser(desk: Desk) -> Browser:
    return Browser(desk)


# Who may look


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
        **{
            f"host {host}": ask(path, Host=host)
            for host in (
                "evil.example",
                f"evil.example:{PORT}",
                "127.0.0.1",
                f"127.0.0.1:{PORT}.evil.example",
                "",
            )
        },
        **{
            f"origin {origin}": ask(path, Origin=origin)
            for origin in (
                "https://evil.example",
                "null",
                "http://127.0.0.1",
                f"https://127.0.0.1:{PORT}",
                "",
            )
        },
    }
    assert {why: answer.status_code for why, answer in refused.items()} == dict.fromkeys(
        refused, 403
    )
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
    ask, token = browser.ask, browser.token
    for path, place in (
        ("/", "/"),
        ("//evil.example/", "/evil.example/"),
        ("/\\evil.example", "/evil.example"),
    ):
        answer = ask(f"{path}?token={token}&who=a%26b", Cookie="")
        assert (answer.status_code, answer.headers["Location"]) == (303, f"{place}?who=a%26b")
        cookie = answer.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    for host in ("127.0.0.1", "localhost"):
        same = ask("/", Host=f"{host}:{PORT}", Origin=f"http://{host}:{PORT}")
        assert same.status_code == 200


# Jobs


def test_the_jobs_are_those_of_status_with_who_wrote_them(desk: Desk, browser: Browser) -> None:
    desk.committed_job(JOB, who=Who(application="orders.py", user="etl"))
    desk.world.clock.advance(60)
    desk.open_job(OTHER)
    page = browser.get("/")
    assert page.index(OTHER) < page.index(JOB)  # the latest first
    for told in ("COMMITTED", "OPEN", "orders.py, etl", "lake/sales/", "1m"):
        assert told in page
    assert JOB not in browser.get("/", state="OPEN")
    assert OTHER not in browser.get("/", who="ETL")
    assert JOB not in browser.get("/", table="s3://lake/other/")
    assert "No jobs like that" in browser.get("/", table="s3://lake/other/")
    assert browser.get("/", 400, table="nowhere").startswith("400 Bad Request: path 'nowhere'")


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
    monkeypatch.setattr(jobs_page, "PAGE", 5)
    monkeypatch.setattr(jobs_page, "OLDEST", 3)
    desk.session.ledgers[TABLE] = desk.world.plan.wrap(desk.world.ledger)
    desk.open_job(OTHER)
    desk.world.clock.advance(2 * 86400)
    asked = []
    for number in range(24):
        desk.open_job(f"{number:08}-0000-4000-8000-000000000000", tasks=1)
        desk.world.clock.advance(1)
        if number in {11, 23}:
            before = len(desk.world.plan.calls)
            page = browser.get("/")
            asked.append(Counter(call.verb for call in desk.world.plan.calls[before:]))
            assert page.index(OTHER) < page.index(f"{number:08}-0000")
            assert page.count('class="id"') == 6
    assert asked[1] <= asked[0]  # of each verb
    assert asked[0].total() < 60
    assert older(browser, page) == [f"{number:08}" for number in range(18, -1, -1)]
