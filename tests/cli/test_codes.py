"""Every code with which a job may be refused has one line of advice, here and in the document."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from s3commit.cli.codes import CODES, UNKNOWN, advice_on
from s3commit.core.locks import LockMode
from s3commit.core.model import Outcome
from s3commit.core.states import JobState

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "s3commit" / "python" / "s3commit" / "core"

# Codes of errors that never become a job's: the step is run again, the execution ends or fails.
NEVER_A_JOBS = {
    "ACCESS_DENIED",
    "CONFLICT",
    "ERROR",
    "IDENTITY_UNKNOWN",
    "ILLEGAL_TRANSITION",
    "JOB_FAILED",
    "LEDGER_SET_BACK",
    "LOST_RACE",
    "NOT_DECIDED",
    "NOT_FOUND",
    "OUTCOME_UNKNOWN",
    "PLAN_NOT_READ",
    "PRECONDITION_FAILED",
    "TRANSIENT",
}
NO_CODES = {str(word) for words in (JobState, Outcome, LockMode) for word in words}


def words_of(tree: ast.AST) -> Iterator[str]:
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for value in constants:
        if isinstance(value, str) and re.fullmatch(r"[A-Z]{4,}(_[A-Z]+)*|[A-Z]+(_[A-Z]+)+", value):
            yield value


def codes_of_the_source() -> set[str]:
    """Every text in core/ that has the form of a code; fsck's are names of what it finds."""
    paths = [path for path in CORE.rglob("*.py") if path.parent.name != "fsck"]
    words = {word for path in paths for word in words_of(ast.parse(path.read_text()))}
    return words - NO_CODES - NEVER_A_JOBS


def test_every_code_that_a_job_can_end_with_has_advice() -> None:
    found = codes_of_the_source()
    assert {"DESTINATION_BUSY", "ALREADY_COMMITTED", "BAD_JSON", "STALLED"} <= found
    assert found - set(CODES) == set(), "give these a line in cli/codes.py"
    assert set(CODES) - found == set(), "nothing raises these any more"


def test_the_document_has_the_same_table() -> None:
    document = (ROOT / "docs" / "operations.md").read_text()
    rows = {f"| `{code}` | {advice.means} | {advice.do} |" for code, advice in CODES.items()}
    missing = sorted(row for row in rows if f"\n{row}\n" not in document)
    assert not missing, "put these into docs/operations.md:\n" + "\n".join(missing)
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", document, re.MULTILINE)) == set(CODES)


def test_advice_is_one_line_each() -> None:
    texts = [text for advice in (*CODES.values(), UNKNOWN) for text in (advice.means, advice.do)]
    assert [text for text in texts if text.strip(" .|") != text or "\n" in text] == []
    assert [text for text in texts if len(text) > 160] == []


def test_a_newer_pipelines_code_gets_what_holds_of_all() -> None:
    assert advice_on("FROM_THE_FUTURE") is UNKNOWN
