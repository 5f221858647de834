"""docs/invariants.md names what holds each invariant, ADR 46 each comparison of times."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3commit.core.model import limits
from tests.docs.test_docs import TESTS
from tests.engines.mutants.kill import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "invariants.md").read_text()
NUMBERS = [f"I{number}" for number in range(1, 13)]
ASSUMPTIONS = {f"A{number}" for number in range(1, 8)}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROWS = {
    name.split()[0]: cells
    for name, *cells in re.findall(
        r"^\| (I\d+ [^|]+?) \| (`[^|]+`) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE
    )
}
TOGETHER = PAGE.split("| judged | suite |")[1].split("\n\n")[0]


def judged_together(invariant: str) -> list[str]:
    """The suites of several invariants whose names have this one: `_i9_`, or `_i1_to_i11_`."""
    number = int(invariant[1:])
    found = []
    for _, name in TEST.findall(TOGETHER):
        ranges = re.findall(r"i(\d+)(?:_to_i(\d+))?_", name)
        if any(int(first) <= number <= int(last or first) for first, last in ranges):
            found.append(name)
    return found


@pytest.mark.parametrize("invariant", NUMBERS)
def test_an_invariant_has_a_test_of_its_number_a_suite_mutants_and_assumptions(
    invariant: str,
) -> None:
    test, mutants, assumptions = ROWS[invariant]
    assert TEST.fullmatch(test) and f"_{invariant.lower()}_" in test
    assert judged_together(invariant)
    named = set(re.findall(r'"([^"]+)"', mutants))
    assert named and named <= {mutant.name for mutant in MUTANTS}
    assert set(assumptions.split(", ")) <= ASSUMPTIONS | {"none"}


def test_each_assumption_is_switched_off_by_a_test() -> None:
    rows = re.findall(r"^\| (A\d)[^|]* \|[^|]+\| `(.+)` \|$", PAGE, re.MULTILINE)
    assert {assumption for assumption, _ in rows} == ASSUMPTIONS
    assert {f"test_{name}" for _, name in rows} <= TESTS


def test_the_invariants_are_the_guarantees() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    stated = re.findall(r"^\| (I\d+ [^|]+?) \| .+? \|$", page, re.MULTILINE)
    named = re.findall(r"^\| (I\d+ [^|]+?) \| `", PAGE.split("| judged |")[0], re.MULTILINE)
    assert named == stated
    assert [one.split()[0] for one in stated] == NUMBERS


def test_the_number_of_mutants_in_the_proof_is_the_lists() -> None:
    proof = (ROOT / "docs" / "proof.md").read_text()
    (total, simulated) = re.findall(r"(\d+) in the list, (\d+) for the simulation", proof)[0]
    assert int(total) == len(MUTANTS)
    assert int(simulated) == sum(mutant.by in {"sim", "adversary"} for mutant in MUTANTS)


# Each comparison of two times has its row in ADR 46


PACKAGE = ROOT / "layers" / "s3commit" / "python" / "s3commit"
PROOF = (ROOT / "docs" / "proof.md").read_text()
CLOCKS = (ROOT / "docs" / "adr" / "0046-clocks-within-two-bounds.md").read_text()
# What people see of ages and orders (cli/), what a client's process measures of its own waits
# (writer/, spark/), and what runs on one machine (local/) has one clock, or decides nothing.
PIPELINE = [*(PACKAGE / "core").rglob("*.py"), *(PACKAGE / "aws").rglob("*.py")]

# How the code names moments, and what makes them or reckons with them.
MOMENTS = {
    *("initiated", "modified", "put_at", "opened_at", "created_at", "updated_at", "decided_at"),
    *("finished_at", "locked_at", "since", "until", "newest", "last", "last_known", "due", "now"),
    *("moment", "seconds", "ago", "timestamp", "first_generation", "_waited", "_until"),
}
ORDERS = ast.Lt | ast.LtE | ast.Gt | ast.GtE
ASKED_BY_TIME = {"jobs_in", "count_in", "where_ended", "seconds", "seconds_after", "between"}
SORTED_BY_TIME = {"max", "min", "sorted", "merge"}
# Of one moment alone, or of a key. A process's own monotonic clock is nobody else's.
NONE_OF_TWO = {"_expiry", "_actions", "_next_page", "note_healing"}


def words(node: ast.AST) -> set[str]:
    nodes = list(ast.walk(node))
    names = {one.id for one in nodes if isinstance(one, ast.Name)}
    return names | {one.attr for one in nodes if isinstance(one, ast.Attribute)}


def compares(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        ordered = any(isinstance(one, ORDERS) for one in node.ops)
        return ordered and bool(words(node) & MOMENTS) and "monotonic" not in words(node)
    if isinstance(node, ast.Call):
        called = words(node.func)
        return bool(called & ASKED_BY_TIME) or bool(
            called & SORTED_BY_TIME and words(node) & MOMENTS
        )
    return False


def comparing(file: Path) -> Iterator[str]:
    for function in ast.walk(ast.parse(file.read_text())):
        if isinstance(function, ast.FunctionDef) and any(map(compares, ast.walk(function))):
            yield function.name


def rows() -> list[list[str]]:
    head = "| comparison | of | with | by how much it may be wrong |\n|---|---|---|---|\n"
    _, table = CLOCKS.split(head)
    return [line.strip("|").split(" | ") for line in table.split("\n\n")[0].splitlines()]


def test_a7_each_comparison_of_two_times_has_its_row() -> None:
    found = {name for file in PIPELINE for name in comparing(file)} - NONE_OF_TWO
    named = [name for row in rows() for name in re.findall(r"`(\w+)`", row[0])]
    assert len(named) == len(set(named))
    defined = {
        function.name
        for file in PIPELINE
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.FunctionDef)
    }
    assert found - set(named) == set()
    assert defined >= NONE_OF_TWO
    assert set(named) <= defined
    assert len(found) > 20


def test_a7_each_row_says_whose_clocks_and_which_tolerance() -> None:
    for _, one, other, tolerance in rows():
        assert one.strip() and other.strip() and tolerance.strip()
        for number in re.findall(r"`([A-Z0-9]+_[A-Z_]+)`", tolerance):
            assert hasattr(limits, number), number


def test_a7_the_page_says_the_numbers_of_the_code() -> None:
    words_of_a7 = next(line for line in PROOF.splitlines() if line.startswith("| A7 |"))
    assert f"differ by {limits.S3_CLOCKS} seconds at most" in words_of_a7
    assert f"by {limits.FUNCTION_CLOCKS // 60} minutes" in words_of_a7
    security = " ".join((ROOT / "docs" / "security.md").read_text().split())
    assert f"begun up to {limits.S3_CLOCKS} seconds before the job" in security
