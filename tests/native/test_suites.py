"""How the suites of Spark's own are judged: ``make spark-suites`` runs them."""

import json
from pathlib import Path

import pytest

from tests.engines.suites.report import Suite
from tests.native.case import GUIDE
from tests.native.s3a import ROOT

KNOWN = json.loads(Path(ROOT, "tests", "engines", "suites", "differences.json").read_text())


@pytest.mark.parametrize("name", KNOWN)
def test_what_the_jar_alone_does_otherwise_is_on_its_page(name: str) -> None:
    suite = Suite(name, **KNOWN[name])
    assert suite.tests > len(suite.both) + len(suite.jar)
    assert all(f"`{code}`" in GUIDE.read_text() for code in suite.jar.values())
