"""Writes docs/codes.md from the table in the code."""

import re
import sys
from collections.abc import Iterable
from typing import Final

from s3commit.core.model.codes import CODES, Advice

PAGE: Final = """# Codes

Why a job failed, and what to do, as `s3commit show JOB` says. Other errors explain themselves.

## Codes of failed executions

The job has not ended. Do what the last column says, then `s3commit commit JOB`. An execution that
failed with a [result code](#result-codes) stopped after the decision: restore what its message
names.

{stops}
## Result codes

No file of a job that ended with one of these is visible, except with `LISTS_LOST`. Do what the last
column says, then run the job again.

{ends}
No writer of this package makes a document that leads to one of these. Find out who wrote it, then
run the job again.

{others}"""
AGAIN: Final = re.compile(r"(, then|\. Then|\.) run the job again$", re.IGNORECASE)
OTHERS: Final = "Find out who wrote it"


def page() -> str:
    """The whole page. What is said of all codes of a table is not said of each."""
    stops = _table((f"`{code}`", one.means, one.do) for code, one in _codes(stops=True))
    ends = [one for one in _codes(stops=False) if OTHERS not in one[1].do]
    others = [one for one in _codes(stops=False) if OTHERS in one[1].do]
    first = {one.do: code for code, one in reversed(ends)}
    return PAGE.format(
        stops=stops,
        ends=_table(
            (
                f"`{code}`",
                one.means,
                AGAIN.sub("", one.do) if first[one.do] == code else f"As for `{first[one.do]}`",
            )
            for code, one in ends
        ),
        others=_table((f"`{code}`", one.means) for code, one in others),
    )


def _codes(*, stops: bool) -> list[tuple[str, Advice]]:
    return [one for one in sorted(CODES.items()) if one[1].stops is stops]


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |\n" for row in rows]
    heads = ("code", "what is true", "what to do")[: lines[0].count(" | ") + 1]
    return f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n{''.join(lines)}"


if __name__ == "__main__":
    sys.stdout.write(page())
