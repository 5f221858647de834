"""How the suites of Spark's own are judged: ``make spark-suites`` runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engines.suites.report import GONE, Suite, problems, read
from tests.native.case import GUIDE
from tests.native.s3a import ROOT

KNOWN = json.loads(Path(ROOT, "tests", "engines", "suites", "differences.json").read_text())
SUITE = Suite("a.Suite", 3, jar={"elsewhere": "A_CODE"}, both={"local": "looks for a file"})
AS_IT_SHOULD: dict[str, str | None] = {"works": None, "elsewhere": "no [A_CODE]", "local": "null"}
REPORT = """<testsuite>
  <testcase name="works"/>
  <testcase name="local"><failure message="null"/></testcase>
  <testcase name="elsewhere"><error message="no [A_CODE]">at line 1</error></testcase>
  <testcase name="not run"><skipped/></testcase>
</testsuite>"""


def test_a_report_says_what_ran_and_why_it_failed(tmp_path: Path) -> None:
    Path(tmp_path, "TEST-a.Suite.xml").write_text(REPORT)
    assert read(tmp_path) == AS_IT_SHOULD
    assert read(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    ("ended", "own", "wrong"),
    [
        ({}, False, []),
        ({"works": "Boom\n  at line 1"}, False, ["works: Boom at line 1"]),
        ({"elsewhere": "Boom"}, False, ["elsewhere: Boom"]),
        ({"elsewhere": None}, False, [f"elsewhere: {GONE}"]),
        ({"local": None}, False, [f"local: {GONE}"]),
        ({"elsewhere": None}, True, []),
        ({}, True, ["elsewhere: no [A_CODE]"]),
    ],
)
def test_each_end_that_is_not_as_it_should_be_is_a_problem(
    ended: dict[str, str | None], own: bool, wrong: list[str]
) -> None:
    assert list(problems(SUITE, AS_IT_SHOULD | ended, own=own)) == wrong


def test_a_suite_that_does_not_run_is_a_problem() -> None:
    assert list(problems(SUITE, {}, own=False)) == [
        "only 0 of 3 tests ran",
        f"local: {GONE}",
        f"elsewhere: {GONE}",
    ]


@pytest.mark.parametrize("name", KNOWN)
def test_what_the_jar_alone_does_otherwise_is_on_its_page(name: str) -> None:
    suite = Suite(name, **KNOWN[name])
    assert suite.tests > len(suite.both) + len(suite.jar)
    assert all(f"`{code}`" in GUIDE.read_text() for code in suite.jar.values())
