"""How the suites of Spark's own are judged: ``make spark-suites`` runs them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.conftest import Deployed
from tests.engines.suites.__main__ import results
from tests.engines.suites.report import Results, Suite, problems, read, shared
from tests.native.case import GUIDE
from tests.native.s3a import ROOT

PROOF = Path(ROOT, "docs", "proof.md")
KNOWN = json.loads(Path(ROOT, "tests", "engines", "suites", "differences.json").read_text())
TEXT = """Run starting. Expected test count is: 6
SomeSuite:
- passes (in brackets)
- has its code *** FAILED ***
  io.s3commit.WriteException: PARTITION_ELSEWHERE: the partition
  is at s3a://other
  at org.apache.spark.Some.method(Some.scala:1)
  ...
- looks at local files *** FAILED ***
  0 did not equal 5 (SomeSuite.scala:74)
- is left out !!! IGNORED !!!
- has no ground !!! CANCELED !!!
  No such server (SomeSuite.scala:80)
"""
CODE = {"has its code": "PARTITION_ELSEWHERE"}
LOCAL = {"looks at local files": "local files"}
ENDED = f"{TEXT}- comes last\nRun completed in 1 second.\n"


@pytest.mark.parametrize("name", KNOWN)
def test_what_the_jar_alone_does_otherwise_is_on_its_page(name: str) -> None:
    suite = Suite(name, **KNOWN[name])
    assert suite.tests > len(suite.both) + len(suite.jar)
    for test, why in suite.jar.items():
        assert f"`{why}`" in GUIDE.read_text() or test.partition(":")[0] in PROOF.read_text()


def test_a_report_has_what_had_run_when_its_suite_was_cut() -> None:
    cut = {
        "passes (in brackets)": None,
        "has its code": "io.s3commit.WriteException: PARTITION_ELSEWHERE: the partition"
        " is at s3a://other ...",
        "looks at local files": "0 did not equal 5 (SomeSuite.scala:74)",
    }
    assert read(TEXT) == cut == read(TEXT + "- comes last *** FA")
    assert read(ENDED) == cut | {"comes last": None}
    assert read("") == {}


OTHERS = {"comes last": "local files"}


@pytest.mark.parametrize(
    ("text", "suite", "own", "said"),
    [
        (ENDED, Suite("S", 4, CODE, LOCAL), False, []),
        (TEXT, Suite("S", 4, CODE, LOCAL), False, ["1 of 4 tests were not run"]),
        (TEXT, Suite("S", 3, CODE, LOCAL | OTHERS), False, ["comes last: was not run"]),
        (ENDED, Suite("S", 4, CODE, LOCAL | OTHERS), False, ["comes last: does not differ"]),
        (ENDED, Suite("S", 4, {}, LOCAL), False, ["has its code: io.s3commit"]),
        (ENDED, Suite("S", 4, dict.fromkeys(CODE, "GLOBS"), LOCAL), False, ["has its code: io"]),
        (ENDED, Suite("S", 4, CODE, LOCAL), True, ["has its code: io.s3commit"]),
        (
            "",
            Suite("S", 4, CODE, LOCAL),
            False,
            ["4 of 4 tests were not run", "looks at local files: was not", "has its code: was not"],
        ),
    ],
)
def test_what_did_not_run_is_not_said_to_differ_no_more(
    text: str, suite: Suite, own: bool, said: Sequence[str]
) -> None:
    found = list(problems(suite, read(text), own=own))
    assert len(found) == len(said)
    assert all(map(str.startswith, found, said))


SAME_HERE = "io.s3commit.WriteException: PARTITION_ELSEWHERE: the partition is at s3a://other ..."
SAME = SAME_HERE.replace("s3a://other", "s3a://another/7")


@pytest.mark.parametrize(
    ("control", "fault", "excused"),
    [
        ({"has its code": None}, "has its code, by the jar alone: io.s3commit", None),
        ({"has its code": SAME}, None, f"has its code, by Spark's own too: {SAME_HERE}"),
        ({"has its code": "0 is not 5"}, "has its code, by Spark's own for another reason", None),
        ({"has its code": ""}, "has its code, by Spark's own for another reason", None),
        ({"passes": None}, "has its code, not run by Spark's own: io.s3commit", None),
    ],
)
def test_only_what_spark_s_own_protocol_passes_is_a_fault(
    control: Results, fault: str | None, excused: str | None
) -> None:
    suite, found = Suite("S", 4, both=LOCAL), read(ENDED)
    faults = list(problems(suite, found, own=False, control=control))
    assert [one[: len(fault or "")] for one in faults] == [fault] * (fault is not None)
    assert list(shared(suite, found, control)) == [excused] * (excused is not None)


def test_no_suite_runs_in_a_hidden_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written there is Spark's own to commit."""
    (hidden := tmp_path / ".work").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(hidden))
    with pytest.raises(AssertionError, match="hidden"):
        results(Deployed("", "", "", "", "", "", ""), "", 1, Suite("S", 1), own=False)
