"""Prints the truth tables of docs/fsck.md, from the tables in the code."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable
from enum import StrEnum

from s3commit.core.fsck.file_table import FILE_TABLE, file_combinations
from s3commit.core.fsck.job_table import JOB_TABLE, job_combinations
from s3commit.core.fsck.other_table import OTHER_TABLE
from s3commit.core.fsck.words import (
    Commits,
    Named,
    Record,
    Request,
    Result,
    Standing,
    Thing,
    Upload,
    Verdict,
)


def file_table() -> str:
    """The table of a file; the last column counts the combinations that a row decides."""
    counts = Counter(
        next(number for number, row in enumerate(FILE_TABLE) if row.fits(one))
        for one in file_combinations()
    )
    rows = [
        [
            _set(row.standing, Standing),
            _set(row.named, Named),
            _set(row.upload, Upload),
            _set(row.thing, Thing),
            *_words(row.verdict),
            str(counts[number]),
        ]
        for number, row in enumerate(FILE_TABLE)
    ]
    return _table(["record", "named", "upload", "object", *_WORDS, "#"], rows)


def job_table() -> str:
    """The table of a job; where a row says how files are judged, that is the last but one column.

    The last column counts the combinations that a row decides.
    """
    counts = Counter(
        next(number for number, row in enumerate(JOB_TABLE) if row.fits(one))
        for one in job_combinations()
    )
    rows = [
        [
            _set(row.record, Record),
            _set(row.commits, Commits),
            _set(row.result, Result),
            _set(row.request, Request),
            *_words(row.verdict),
            row.standing.value if row.standing else "as the record or the result",
            str(counts[number]),
        ]
        for number, row in enumerate(JOB_TABLE)
    ]
    headers = ["record", "`_commits/`", "result", "request", *_WORDS, "files are", "#"]
    return _table(headers, rows)


def other_table() -> str:
    """The table of all that is neither."""
    rows = [[what, *_words(verdict)] for what, verdicts in OTHER_TABLE for verdict in verdicts]
    return _table(["of", *_WORDS], rows)


_WORDS = ["name", "level", "what is true", "repair"]


def _words(verdict: Verdict) -> list[str]:
    actions = ", ".join(f"`{action}`" for action in verdict.actions)
    do = f"{verdict.do} ({actions})" if actions else verdict.do
    return [f"`{verdict.name}`", verdict.level, verdict.means, do]


def _set(values: Collection[StrEnum], kind: type[StrEnum]) -> str:
    everything = list(kind)
    if len(values) == len(everything):
        return "any"
    without = [one.value for one in everything if one not in values]
    if len(without) < len(values) and len(without) <= 2:
        return f"not {', not '.join(without)}"
    return ", ".join(one.value for one in everything if one in values)


def _table(headers: list[str], rows: Iterable[list[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write("\n".join([file_table(), job_table(), other_table()]))
