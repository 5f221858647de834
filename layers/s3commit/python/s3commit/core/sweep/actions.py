"""The actions of a sweep: start an execution, request an abort, delete documents. Nothing else.

An action knows all that it needs, so a dry run is the list of the actions that the sweep would
carry out. The report counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import member_name, one_line
from s3commit.core.model.errors import S3CommitError

MOST_NOTES: Final = 50
LINE: Final = 500  # characters


@dataclass(slots=True)
class SweepReport:
    """Counts of a sweep.

    ``visited``: jobs and destinations. ``started``: executions, and ``tidied`` are those for what
    ended jobs have left. ``aborted``: abort requests put. ``expired``: jobs whose documents were
    deleted, and ``documents_deleted`` are those. ``incomplete``: a question could not be asked at
    all. ``notes`` and ``failures`` are lines for people, 50 of each at most; ``lines_left_out``
    counts those without room. ``first`` is the first failure itself, which no document has.
    """

    visited: int = 0
    started: int = 0
    tidied: int = 0
    aborted: int = 0
    expired: int = 0
    documents_deleted: int = 0
    failed: int = 0
    lines_left_out: int = 0
    incomplete: bool = False
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first: S3CommitError | None = None

    def add(self, done: SweepReport) -> None:
        """Count what was done for one job."""
        for name in ("started", "tidied", "aborted", "expired", "documents_deleted"):
            setattr(self, name, getattr(self, name) + getattr(done, name))

    def note(self, text: str) -> None:
        """Keep a line of what was done, if there is room."""
        self._keep(self.notes, text)

    def fail(self, what: str, error: S3CommitError) -> None:
        """Count a failure, and keep its line."""
        self.failed += 1
        self.first = self.first or error
        self._keep(self.failures, f"{what}: {error.message}")

    def _keep(self, lines: list[str], text: str) -> None:
        lines.append(one_line(text, LINE))
        self.lines_left_out += len(lines) > MOST_NOTES
        del lines[MOST_NOTES:]


def encode_report(report: SweepReport) -> dict[str, Any]:
    """The report as JSON."""
    names = (one.name for one in fields(report) if one.name != "first")
    return {member_name(name): getattr(report, name) for name in names}


@dataclass(frozen=True, slots=True)
class Action:
    """Something to be done for one job; two are equal if they do the same for the same job.

    ``line`` is the action and its reason, for people; ``counts`` is what it adds to the report.
    ``carry_out`` does it, and says False if another sweep was faster.
    """

    what: str
    directory: JobDirectory
    line: str = field(compare=False)
    counts: SweepReport = field(compare=False)
    carry_out: Callable[[], bool] = field(compare=False)
