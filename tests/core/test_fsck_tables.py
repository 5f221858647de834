"""The decision tables: every combination has a row, and no row touches what is not a job's."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from s3commit.core.fsck.file_rules import FILE_TABLE, KnownFrom, ObjectState
from s3commit.core.fsck.job_rules import JOB_TABLE, UNDONE, WithoutState
from s3commit.core.fsck.other_rules import OTHER_RULES
from s3commit.core.fsck.verdict import Action, DecisionTable, Level, Verdict
from s3commit.core.job.stored_job import Presence
from s3commit.core.model.states import JobState

ROOT = Path(__file__).parents[2]
FILES: list[tuple[tuple[StrEnum, ...], Verdict]] = [
    (one, FILE_TABLE.row(*one).verdict) for one in FILE_TABLE.combinations()
]


def verdicts() -> list[Verdict]:
    every = [row.verdict for row in FILE_TABLE.rows] + [row.verdict for row in JOB_TABLE.rows]
    return every + [verdict for rules in OTHER_RULES.values() for verdict in rules]


@pytest.mark.parametrize(
    ("table", "combinations"), [(FILE_TABLE, 11 * 3 * 7), (JOB_TABLE, 10 * 3 * 5 * 2)]
)
def test_every_combination_has_a_row_and_every_row_a_combination(
    table: DecisionTable[Any], combinations: int
) -> None:
    reached = {id(table.row(*one)) for one in table.combinations()}
    assert reached == {id(row) for row in table.rows}
    assert len(table.combinations()) == combinations


def test_i5_only_what_is_provably_a_rolled_back_jobs_is_deleted_and_never_a_listed_file() -> None:
    """Of a job that has not ended, or is in doubt, nothing is repaired."""
    for (phase, known, found), verdict in FILES:
        if verdict.action is not None:
            assert verdict.action is Action.DELETE_OBJECT
            assert phase is JobState.ROLLED_BACK
            assert known is not KnownFrom.COMMIT_MANIFEST
            assert found is ObjectState.OURS


def test_i2_each_file_of_an_undone_job_that_is_visible_is_a_finding() -> None:
    for (phase, _, found), verdict in FILES:
        if phase in UNDONE and found is ObjectState.OURS:
            assert verdict.level is Level.FINDING


def test_what_contradicts_itself_leaves_its_files_alone_and_the_ledger_says_the_rest() -> None:
    for combination in JOB_TABLE.combinations():
        row = JOB_TABLE.row(*combination)
        if row.verdict.level is Level.FINDING and row.verdict.action is None:
            assert row.answer is WithoutState.IN_DOUBT
        if combination[0] is not Presence.ABSENT:
            assert row.answer in {None, WithoutState.IN_DOUBT}


def test_a_name_means_one_thing() -> None:
    by_name: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for one in verdicts():
        by_name[one.name].add((one.level, one.means, one.do, one.action))
    assert {name for name, meanings in by_name.items() if len(meanings) > 1} == set()


@pytest.mark.parametrize("level", [Level.FINE, Level.NOTE])
def test_what_is_repaired_is_a_finding(level: Level) -> None:
    assert [one.name for one in verdicts() if one.level is level and one.action] == []


def test_texts_are_one_line_without_an_end() -> None:
    texts: Sequence[str] = [text for one in verdicts() for text in (one.means, one.do)]
    assert [text for text in texts if text.strip(" .|") != text or "\n" in text] == []


@pytest.mark.parametrize("table", ["file_table", "job_table", "other_rules"])
def test_the_tables_in_the_docs_are_the_codes(table: str) -> None:
    path = ROOT / "docs" / "fsck_tables.py"
    spec = importlib.util.spec_from_file_location("fsck_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = getattr(module, table)()
    assert f"-->\n{made}" in (ROOT / "docs" / "fsck.md").read_text()
