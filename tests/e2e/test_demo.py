"""`make demo ARGS=--keep`: the whole story, and a page to look at the jobs as long as it stays."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.cookiejar import CookieJar
from itertools import takewhile
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from stacks.layers import ROOT

STAYS = "The pipeline and its page stay until Ctrl-C\n"


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "examples/demo.py", "--keep"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_the_demo_commits_both_jobs_and_its_page_shows_them(demo: subprocess.Popen[str]) -> None:
    assert demo.stdout is not None
    story = "".join(takewhile(lambda line: line != STAYS, demo.stdout))
    assert story.count("   ok: ") == 5, story
    (address,) = re.findall(r"In a browser: (http://127\.0\.0\.1:\d+/\S+)", story)

    with build_opener(HTTPCookieProcessor(CookieJar())).open(address) as answer:
        page = answer.read().decode()
    for table in ("flights/", "orphaned/"):
        assert table in page
    assert page.count("COMMITTED") >= 2

    demo.send_signal(signal.SIGINT)
    assert "Next: `.venv/bin/s3commit local up`" in demo.stdout.read()
    assert demo.wait() == 0
