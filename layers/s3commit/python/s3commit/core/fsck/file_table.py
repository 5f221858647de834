"""The truth table of a file: record by where it is named by open upload by object.

The first row that fits says what is true. Every combination has one; a test looks at each.
"""

from __future__ import annotations

from itertools import product
from typing import Final

from s3commit.core.fsck.file_row import NOTHING, Combination, FileRow
from s3commit.core.fsck.listed_rows import LISTED_ROWS
from s3commit.core.fsck.unlisted_rows import UNLISTED_ROWS
from s3commit.core.fsck.words import Named, Standing, Thing, Upload, Verdict

FILE_TABLE: Final[tuple[FileRow, ...]] = (*LISTED_ROWS, *UNLISTED_ROWS)


def judge_file(standing: Standing, named: Named, upload: Upload, thing: Thing) -> Verdict:
    """What is true of a file."""
    combination = (standing, named, upload, thing)
    return next(row for row in FILE_TABLE if row.fits(combination)).verdict


def thing_matters(standing: Standing, named: Named, upload: Upload) -> bool:
    """Whether what lies at the key makes a difference: if not, nobody has to look at it."""
    verdicts = {
        judge_file(standing, named, upload, thing) for thing in Thing if thing not in NOTHING
    }
    return len(verdicts) > 1


def file_combinations() -> list[Combination]:
    """All combinations, in the order of the words."""
    return list(product(Standing, Named, Upload, Thing))
