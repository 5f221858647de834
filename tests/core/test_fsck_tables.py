"""The truth tables: every combination has a row, and no row touches what is not a job's."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from s3commit.core.fsck.file_table import FILE_TABLE, file_combinations, judge_file
from s3commit.core.fsck.job_table import JOB_TABLE, job_combinations, judge_job
from s3commit.core.fsck.other_table import OTHER_TABLE
from s3commit.core.fsck.words import (
    Action,
    Level,
    Named,
    Record,
    Standing,
    Thing,
    Upload,
    Verdict,
)
from s3commit.core.model.states import ENDED, JobState

ROOT = Path(__file__).parents[2]
WORKING = {Standing(state.value) for state in JobState if state not in ENDED}


def verdicts() -> list[Verdict]:
    every = [row.verdict for row in FILE_TABLE] + [row.verdict for row in JOB_TABLE]
    return every + [verdict for _, rows in OTHER_TABLE for verdict in rows]


def test_every_combination_of_a_file_has_a_row_and_every_row_a_combination() -> None:
    reached = set()
    for combination in file_combinations():
        reached.add(next(n for n, row in enumerate(FILE_TABLE) if row.fits(combination)))
    assert reached == set(range(len(FILE_TABLE)))
    assert len(file_combinations()) == 12 * 3 * 2 * 6


def test_every_combination_of_a_job_has_a_row_and_every_row_a_combination() -> None:
    reached = set()
    for combination in job_combinations():
        judge_job(*combination)
        reached.add(next(n for n, row in enumerate(JOB_TABLE) if row.fits(combination)))
    assert reached == set(range(len(JOB_TABLE)))
    assert len(job_combinations()) == 10 * 3 * 5 * 2


def test_i5_nothing_is_repaired_of_a_job_that_has_not_ended_or_is_not_known() -> None:
    for combination in file_combinations():
        if combination[0] in WORKING | {Standing.UNKNOWN, Standing.UNRECORDED, Standing.IN_DOUBT}:
            assert judge_file(*combination).actions == ()


def test_i5_only_what_is_provably_the_jobs_is_deleted_and_never_a_listed_file() -> None:
    for combination in file_combinations():
        if Action.DELETE_OBJECT in judge_file(*combination).actions:
            assert combination[1] is not Named.LISTED
            assert combination[3] is Thing.OURS


def test_i4_each_open_upload_of_an_ended_job_is_aborted_or_a_finding() -> None:
    ended = {Standing(state.value) for state in ENDED}
    for combination in file_combinations():
        standing, _, upload, _ = combination
        if standing in ended and upload is Upload.OPEN:
            assert judge_file(*combination).level is Level.FINDING


def test_i2_each_file_of_an_undone_job_that_is_visible_is_a_finding() -> None:
    for combination in file_combinations():
        standing, _, _, thing = combination
        if standing in {Standing.ABORTED, Standing.ROLLED_BACK} and thing is Thing.OURS:
            assert judge_file(*combination).level is Level.FINDING


def test_what_contradicts_itself_leaves_its_files_alone() -> None:
    for combination in job_combinations():
        verdict, standing = judge_job(*combination)
        if verdict.level is Level.FINDING and not verdict.actions:
            assert standing is Standing.IN_DOUBT


def test_a_job_that_the_ledger_has_is_judged_by_its_state_or_is_in_doubt() -> None:
    for combination in job_combinations():
        record = combination[0]
        _, standing = judge_job(*combination)
        if record is not Record.ABSENT:
            assert standing in {Standing(record.value), Standing.IN_DOUBT}


def test_a_name_means_one_thing() -> None:
    by_name: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for one in verdicts():
        by_name[one.name].add((one.level, one.means, one.do, one.actions))
    assert {name for name, meanings in by_name.items() if len(meanings) > 1} == set()


@pytest.mark.parametrize("level", [Level.FINE, Level.NOTE])
def test_what_is_repaired_is_a_finding(level: Level) -> None:
    assert [one.name for one in verdicts() if one.level is level and one.actions] == []


def test_texts_are_one_line_without_an_end() -> None:
    texts: Sequence[str] = [text for one in verdicts() for text in (one.means, one.do)]
    assert [text for text in texts if text.strip(" .|") != text or "\n" in text] == []


@pytest.mark.parametrize("table", ["file_table", "job_table", "other_table"])
def test_the_tables_in_the_docs_are_the_codes(table: str) -> None:
    path = ROOT / "docs" / "fsck_tables.py"
    spec = importlib.util.spec_from_file_location("fsck_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = getattr(module, table)()
    assert f"-->\n{made}" in (ROOT / "docs" / "fsck.md").read_text()
