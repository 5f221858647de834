"""Each code that ends or stops a job has a line of advice, of which the page is made."""

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3commit.core.model.codes import CODES, LATE, STOPPED, UNKNOWN, advice_on, advice_on_execution
from s3commit.core.model.errors import DOCUMENT_CODES
from s3commit.core.model.locks import ItemKind
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.executions import Execution

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "s3commit" / "python" / "s3commit" / "core"

# Codes of errors that neither end a job nor, by what they say, its execution.
NEVER_AN_END = {
    "BAD_ID",  # of what a program is given, or the pipeline has put
    "COSTLY",
    "CONFLICT",
    "ERROR",
    "HELD",  # by another job: it is waited for
    "ILLEGAL_TRANSITION",
    "JOB_FAILED",
    "LOST_RACE",
    "NEEDS_OPERATOR",  # each is raised with a code of its own
    "NOT_PLANNED",
    "OUTCOME_UNKNOWN",
    "PRECONDITION_FAILED",
}
NO_CODES = {str(word) for words in (JobState, Outcome, ItemKind) for word in words}
NO_CODES |= {"RUNNING", "PENDING_REDRIVE", "FORGOTTEN"}  # statuses of executions


def words_of(tree: ast.AST) -> Iterator[str]:
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for value in constants:
        if isinstance(value, str) and re.fullmatch(r"[A-Z]{4,}(_[A-Z]+)*|[A-Z]+(_[A-Z]+)+", value):
            yield value


def codes_of_the_source() -> set[str]:
    """Every text in core/ that has the form of a code."""
    paths = set(CORE.rglob("*.py")) - {CORE / "model" / "codes.py"}
    words = {word for path in paths for word in words_of(ast.parse(path.read_text()))}
    return words - NO_CODES - NEVER_AN_END


def test_every_code_that_a_job_can_end_with_has_advice() -> None:
    found = codes_of_the_source()
    assert {"DESTINATION_BUSY", "ALREADY_COMMITTED", "BAD_JSON", "STALLED"} <= found
    assert found - set(CODES) == set(), "give these a line in core/model/codes.py"
    own = {code for code in CODES if not code.startswith("States.")}  # Step Functions' names
    assert own - found == set(), "nothing raises these any more"


def test_i12_codes_of_documents_that_no_writer_of_ours_makes_are_counted_as_such() -> None:
    of_others = {code for code, advice in CODES.items() if "Find out who wrote it" in advice.do}
    assert of_others < DOCUMENT_CODES < set(CODES)


def test_the_page_is_made_from_the_table() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "codes.py"))["page"]()
    assert (ROOT / "docs" / "codes.md").read_text() == page, "python docs/codes.py > docs/codes.md"


def test_advice_is_one_line_each() -> None:
    every = (*CODES.values(), UNKNOWN, STOPPED)
    texts = [LATE, *(text for advice in every for text in (advice.means, advice.do))]
    assert [text for text in texts if text.strip(" .|") != text or "\n" in text] == []
    assert [text for text in texts if len(text) > 160] == []


def test_a_newer_pipelines_code_gets_what_holds_of_all() -> None:
    assert advice_on("FROM_THE_FUTURE") is UNKNOWN


def test_what_an_execution_failed_with_never_says_to_run_the_job_again() -> None:
    """The job has not ended: what it wrote may be visible already."""
    for code in (*CODES, "FROM_THE_FUTURE"):
        assert "run the job again" not in advice_on_execution(code).do.lower()


# What an execution failed with


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("", "States.Timeout"),
        ("The state took too long", "States.Timeout: The state took too long"),
        ('{"errorMessage": "two\\nlines", "stackTrace": []}', "States.Timeout: two lines"),
        ('{"errorMessage": "a \\"cut\\" one", "stackTr', 'States.Timeout: a "cut" one'),
        ("[1]", "States.Timeout: [1]"),
        ("[Errno 2] no file", "States.Timeout: [Errno 2] no file"),  # not a code of ours
        ("x" * 9999, f"States.Timeout: {'x' * 600}..."),
    ],
)
def test_any_cause_is_one_line(cause: str, message: str) -> None:
    failure = Execution("TIMED_OUT", "States.Timeout", cause).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("States.Timeout", message)
