"""Writes docs/codes.md from the table in the code."""

from __future__ import annotations

import sys

from s3commit.core.model.codes import CODES

PAGE = """# Codes

Made by `python docs/codes.py > docs/codes.md` from `core/model/codes.py`; a test compares them.
`s3commit show JOB` prints the same lines for a job.

## Codes of failed executions

A failed execution has not ended its job: the job has no result, keeps its state, and its visible
files stay visible. After following the advice, `s3commit commit JOB` starts another execution,
which continues. An execution that failed with a [result code](#result-codes) stopped after the
decision, when the job can no longer be refused: restore what its message names.

{stops}
## Result codes

No file of a job that ended with one of these is visible.

{ends}"""


def page() -> str:
    """The whole page."""
    return PAGE.format(stops=_table(stops=True), ends=_table(stops=False))


def _table(*, stops: bool) -> str:
    rows = [
        f"| `{code}` | {advice.means} | {advice.do} |"
        for code, advice in sorted(CODES.items())
        if advice.stops is stops
    ]
    head = ["| code | what is true | what to do |", "|---|---|---|"]
    return "".join(f"{line}\n" for line in [*head, *rows])


if __name__ == "__main__":
    sys.stdout.write(page())
