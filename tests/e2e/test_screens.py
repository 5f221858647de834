"""The page of screens against the command of today."""

from __future__ import annotations

import re

from docs import screens
from tests.e2e.conftest import Deployed
from tests.guide import GUIDE


def labels(page: str) -> list[list[str]]:
    """The columns of the jobs of a table, and the labels of each job; `status` may have others."""
    _, log, *shows = re.findall(r"^```\n\$ .+\n((?:.+\n)+)```$", page, re.M)
    columns = re.split(r"  +", log.splitlines()[0])
    return [columns, *([line.split("  ")[0] for line in show.splitlines()] for show in shows)]


def test_the_screens_are_those_of_the_command(environment: Deployed) -> None:
    with screens.jobs(environment.bucket) as names:
        today = labels(screens.fill(names))
    assert today == labels((GUIDE / "screens.md").read_text())
    assert len(today) == 3
