"""docs/invariants.md names what holds each invariant; test_docs.py sees that the tests exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.engines.mutants.kill import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "invariants.md").read_text()
INTRODUCTION = PAGE.split("\n## ")[0]
NUMBERS = [f"I{number}" for number in range(1, 13)]
ASSUMPTIONS = {f"A{number}" for number in range(1, 8)}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def section(invariant: str) -> str:
    """The part of the page below the invariant's heading; exactly one has to be there."""
    found = re.findall(rf"^## {invariant} .+?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"{invariant} has {len(found)} sections"
    return str(found[0])


def entries(invariant: str, kind: str) -> list[str]:
    """The texts of the section's list items that begin with ``kind``, each on one line."""
    pattern = rf"^- {kind}: (.+?)(?=^- |\Z)"
    found = re.findall(pattern, section(invariant), re.MULTILINE | re.DOTALL)
    return [" ".join(text.split()) for text in found]


def judged_together(invariant: str) -> list[str]:
    """The suites of several invariants whose names have this one: `_i9_`, or `_i1_to_i11_`."""
    number = int(invariant[1:])
    found = []
    for _, name in TEST.findall(INTRODUCTION):
        ranges = re.findall(r"i(\d+)(?:_to_i(\d+))?_", name)
        if any(int(first) <= number <= int(last or first) for first, last in ranges):
            found.append(name)
    return found


@pytest.mark.parametrize("invariant", NUMBERS)
def test_an_invariant_has_one_canonical_test_and_a_suite(invariant: str) -> None:
    assert len(entries(invariant, "Test")) == 1
    suites = entries(invariant, "Suite")
    assert suites or judged_together(invariant)
    for entry in (*entries(invariant, "Test"), *suites):
        assert TEST.fullmatch(entry), f"{entry} is no test"


@pytest.mark.parametrize("invariant", NUMBERS)
def test_the_canonical_test_carries_the_invariants_number(invariant: str) -> None:
    (entry,) = entries(invariant, "Test")
    assert f"_{invariant.lower()}_" in entry


@pytest.mark.parametrize("invariant", NUMBERS)
def test_the_mutants_of_an_invariant_are_in_the_list(invariant: str) -> None:
    (text,) = entries(invariant, "Mutants")
    named = re.findall(r'"([^"]+)"', text)
    assert named
    assert set(named) - {mutant.name for mutant in MUTANTS} == set()


@pytest.mark.parametrize("invariant", NUMBERS)
def test_the_assumptions_of_an_invariant_are_switched_off_in_a_test(invariant: str) -> None:
    (text,) = entries(invariant, "Assumptions")
    needed = set() if text == "none" else set(text.split(", "))
    assert needed <= ASSUMPTIONS


def test_each_assumption_is_switched_off_by_a_test() -> None:
    rows = re.findall(r"^\| (A\d)[^|]* \|[^|]+\| (.+) \|$", PAGE, re.MULTILINE)
    assert {assumption for assumption, _ in rows} == ASSUMPTIONS
    for assumption, entry in rows:
        assert TEST.fullmatch(entry), f"{assumption}: {entry} is no test"


def test_the_invariants_are_the_guarantees() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    stated = re.findall(r"^\| (I\d+ [^|]+?) \| .+? \|$", page, re.MULTILINE)
    assert re.findall(r"^## (I\d+ .+)$", PAGE, re.MULTILINE) == stated
    assert [one.split()[0] for one in stated] == NUMBERS


def test_the_number_of_mutants_in_the_proof_is_the_lists() -> None:
    proof = (ROOT / "docs" / "proof.md").read_text()
    (total, simulated) = re.findall(r"(\d+) in the list, (\d+) for the simulation", proof)[0]
    assert int(total) == len(MUTANTS)
    assert int(simulated) == sum(mutant.by in {"sim", "adversary"} for mutant in MUTANTS)
