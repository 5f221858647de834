"""docs/proof.md names the probes of each assumption, and each probe what relies on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from s3commit.cli.probe.model import Probe
from s3commit.cli.probe.run import PROBES
from s3commit.cli.verbs.doctor import doctor

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "s3commit" / "python" / "s3commit"
PAGE = (ROOT / "docs" / "proof.md").read_text()
GUIDE = (ROOT / "docs" / "operations.md").read_text()
ASSUMPTIONS = [f"A{number}" for number in range(1, 7)]


def named(assumption: str) -> list[str]:
    """The probes in the assumption's row."""
    (cell,) = re.findall(rf"^\| {assumption} \|[^|]+\|[^|]+\|([^|]+)\|$", PAGE, re.MULTILINE)
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_an_assumption_names_exactly_the_probes_that_say_so(assumption: str) -> None:
    assert sorted(named(assumption)) == sorted(
        each.name for each in PROBES if assumption in each.relies
    )


def test_all_but_the_rights_are_probed() -> None:
    assert [each for each in ASSUMPTIONS if not named(each)] == ["A6"]


def test_the_other_probes_are_named_too() -> None:
    (line,) = re.findall(r"^Others show what single modules rely on: (.+)\.$", PAGE, re.MULTILINE)
    others = [each.name for each in PROBES if not set(each.relies) & set(ASSUMPTIONS)]
    assert sorted(re.findall(r"`([^`]+)`", line)) == sorted(others)


@pytest.mark.parametrize("one", PROBES, ids=lambda one: one.name)
def test_a_probe_says_what_relies_on_it_and_where_aws_says_so(one: Probe) -> None:
    assert one.relies
    for each in one.relies:
        adr = re.fullmatch(r"ADR (\d+)", each)
        if adr:
            assert list((ROOT / "docs" / "adr").glob(f"{int(adr[1]):04}-*.md")), each
        elif each not in ASSUMPTIONS:
            assert (ROOT / each).exists() or (PACKAGE / each).exists(), each
    assert one.source.startswith("https://docs.aws.amazon.com/")
    assert one.cases
    assert any(case.matters for case in one.cases)


def test_every_option_is_described_and_every_described_one_exists() -> None:
    section = GUIDE.split("## Does AWS keep its promises here?\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    described = {option for row in rows for option in re.findall(r"`(--[\w-]+)`", row)}
    options = {option for parameter in doctor.params for option in parameter.opts}
    assert described == {each for each in options if each.startswith("--")} - {
        "--name",
        "--bucket",
        "--role",
        "--prefix",
        "--probe",
        "--output",
        "--verbose",
    }
