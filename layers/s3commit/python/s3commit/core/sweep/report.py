"""What a sweep did: counts, and a line for people on each action."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final

from s3commit.core.formats.strict_json import member_name, one_line

MOST_NOTES: Final = 50
LINE: Final = 500  # characters
FAILED: Final = "failed: "  # how the line of a failure begins


@dataclass(slots=True)
class Report:
    """Counts of a sweep.

    ``looked``: jobs and destinations that were looked at. ``started``: executions. ``aborted``:
    abort requests put. ``retired``: jobs whose documents were deleted, and ``objects`` are those.
    ``broken``: a question could not be asked at all.
    """

    looked: int = 0
    started: int = 0
    aborted: int = 0
    retired: int = 0
    objects: int = 0
    failed: int = 0
    unsaid: int = 0
    broken: bool = False
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep a line for people, if there is room; ``unsaid`` counts those without."""
        self.notes.append(one_line(text, LINE))
        self._make_room()

    def fail(self, what: str, message: str) -> None:
        """Count a failure; its line comes before all others."""
        self.failed += 1
        self.notes.insert(0, one_line(f"{FAILED}{what}: {message}", LINE))
        self._make_room()

    def _make_room(self) -> None:
        if len(self.notes) > MOST_NOTES:
            self.notes.pop()
            self.unsaid += 1


def encode_report(report: Report) -> dict[str, Any]:
    """The report as JSON."""
    return {member_name(one.name): getattr(report, one.name) for one in fields(report)}
