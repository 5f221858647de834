"""Prints the decision tables of docs/fsck.md, from the tables in the code."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any

from s3commit.core.fsck.file_rules import FILE_TABLE
from s3commit.core.fsck.job_rules import JOB_TABLE
from s3commit.core.fsck.other_rules import OTHER_RULES
from s3commit.core.fsck.verdict import DecisionTable, Verdict


def file_table() -> str:
    """The table of a file."""
    return _decisions(FILE_TABLE)


def job_table() -> str:
    """The table of a job, with the record by which a row has the files judged."""
    return _decisions(JOB_TABLE, "files are", "as the record or the result")


def other_rules() -> str:
    """The table of all that is neither."""
    rows = [[what, *_words(one)] for what, verdicts in OTHER_RULES.items() for one in verdicts]
    return _table(["of", *_WORDS], rows)


_WORDS = ["name", "level", "what is true", "repair"]


def _decisions(table: DecisionTable[Any], answer: str = "", unless_said: str = "") -> str:
    """One line for each row; the last column counts the combinations that it decides."""
    rows = []
    counts = Counter(id(table.row(*one)) for one in table.combinations())
    for row in table.rows:
        values = [
            _set(values, domain)
            for values, domain in zip(row.values, table.columns.values(), strict=True)
        ]
        said = [str(row.answer or unless_said)] if answer else []
        rows.append([*values, *_words(row.verdict), *said, str(counts[id(row)])])
    return _table([*table.columns, *_WORDS, *filter(None, [answer]), "#"], rows)


def _words(verdict: Verdict) -> list[str]:
    do = f"{verdict.do} (`{verdict.action}`)" if verdict.action else verdict.do
    return [f"`{verdict.name}`", verdict.level, verdict.means, do]


def _set(values: Collection[StrEnum], domain: Collection[StrEnum]) -> str:
    if len(values) == len(domain):
        return "any"
    without = [one.value for one in domain if one not in values]
    if len(without) < len(values) and len(without) <= 2:
        return f"not {', not '.join(without)}"
    return ", ".join(one.value for one in domain if one in values)


def _table(headers: list[str], rows: Iterable[list[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write("\n".join([file_table(), job_table(), other_rules()]))
