"""A desk whose page is in a real browser."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from flask import Response, request, request_finished
from playwright.sync_api import Browser, Page, expect, sync_playwright

from s3commit.cli.page.server import served
from tests.chromium import launch
from tests.cli.support import TABLE, Desk, WorldEnvironment

PATIENCE = 20_000  # ms; for what comes, whenever it comes
Answer = tuple[str | None, int]  # to which origin, which status


class Real(WorldEnvironment):
    """A stream looks again and again; the world's clock stands still meanwhile."""

    def sleep(self, seconds: float) -> None:
        time.sleep(0.1)


@dataclass
class Shown:
    """A desk, its page, and what browsers that show it have asked, or met as errors."""

    desk: Desk
    address: str
    browser: Browser
    answers: list[Answer]
    asked: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home, _, self.token = self.address.partition("/?")

    @contextmanager
    def page(self, path: str = "/", **how: Any) -> Iterator[Page]:
        """A view in a browser of its own, which is told of changes by then."""
        how = {"reduced_motion": "reduce", **how}
        with closing(self.browser.new_page(**how)) as page:
            context = page.context
            context.set_default_timeout(PATIENCE)
            context.on("request", lambda one: self.asked.add(one.url.split("/")[2]))
            context.on("weberror", lambda one: self.wrong.append(str(one.error)))
            context.on("console", lambda one: self.wrong.append(one.text))
            page.goto(f"{self.home}{path}{'&' if '?' in path else '?'}{self.token}")
            page.locator("#live:not(:empty)").wait_for()
            yield page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield launch(playwright, "--host-resolver-rules=MAP *.example 127.0.0.1")


@pytest.fixture
def shown(browser: Browser) -> Iterator[Shown]:
    """The page of an empty world. None may ask another host, or have an error of a script."""
    desk = Desk()
    desk.session.typed["table"] = TABLE
    desk.session.environment = Real(desk.world.clock)
    answers = list[Answer]()

    def note(_page: Any, response: Response) -> None:
        answers.append((request.headers.get("Origin"), response.status_code))

    with request_finished.connected_to(note), served(desk.session, 0) as address:
        yield (page := Shown(desk, address, browser, answers))
    assert (page.asked - {page.home.partition("//")[2]}, page.wrong) == (set(), [])
