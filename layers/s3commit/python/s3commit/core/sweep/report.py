"""What a sweep did, in numbers that add up over its calls, and in a few words on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from s3commit.core.formats.strict_json import member_name, one_line
from s3commit.core.model.amounts import size

# S3 Standard, first 50 TB a month, us-east-1: https://aws.amazon.com/s3/pricing/ (November 2026).
# Other regions cost up to twice that; parts of open uploads are charged as objects are.
USD_A_GIB_MONTH: Final = 0.023
MOST_NOTES: Final = 50  # the report travels through the state machine, which carries 256 KiB


@dataclass(slots=True)
class Report:
    """Counts of a sweep; bytes are those that S3 no longer charges for.

    ``asked`` jobs were given up for dead by an abort request, ``started`` executions go on with a
    job, ``forgotten`` records were of jobs that left nothing behind. ``tidied`` and ``retired`` are
    job directories, ``s3a`` those of Hadoop's committer that somebody has to decide about.
    ``postponed`` counts what would have cost too much, and was left for later.
    """

    looked: int = 0
    asked: int = 0
    started: int = 0
    forgotten: int = 0
    uploads: int = 0
    upload_bytes: int = 0
    foreign: int = 0
    tidied: int = 0
    retired: int = 0
    objects: int = 0
    object_bytes: int = 0
    s3a: int = 0
    s3a_bytes: int = 0
    postponed: int = 0
    failed: int = 0
    unsaid: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def freed_bytes(self) -> int:
        """The bytes of aborted uploads and deleted objects."""
        return self.upload_bytes + self.object_bytes

    def note(self, text: str) -> None:
        """Keep a line for people, if there is room; ``unsaid`` counts those for which was none."""
        self.notes.append(one_line(text, 500))
        self._make_room()

    def note_failure(self, text: str) -> None:
        """Keep the line before all others: it is what somebody has to see."""
        self.notes.insert(0, one_line(text, 500))
        self._make_room()

    def _make_room(self) -> None:
        if len(self.notes) > MOST_NOTES:
            self.notes.pop()
            self.unsaid += 1


def monthly_usd(count: int) -> float:
    """What so many bytes cost a month in S3 Standard, in US dollars."""
    return round(count / 2**30 * USD_A_GIB_MONTH, 4)


def priced(count: int) -> str:
    """So many bytes and what they cost, for people: ``2.9 GiB (0.07 USD a month)``."""
    usd = monthly_usd(count)
    price = f"{usd:.2f}" if usd >= 0.01 else "under 0.01"
    return f"{size(count)} ({price} USD a month)" if count else size(count)


def encode_report(report: Report) -> dict[str, Any]:
    """The report as JSON."""
    return {
        **{member_name(name): getattr(report, name) for name in _COUNTS},
        "freedBytes": report.freed_bytes,
        "freedUsdMonth": monthly_usd(report.freed_bytes),
        "s3aUsdMonth": monthly_usd(report.s3a_bytes),
        "notes": list(report.notes),
    }


def decode_report(value: Mapping[str, Any]) -> Report:
    """The inverse of `encode_report`; what is not there is 0."""
    counts = {name: int(value.get(member_name(name), 0)) for name in _COUNTS}
    return Report(**counts, notes=[str(note) for note in value.get("notes", [])][:MOST_NOTES])


_COUNTS = tuple(one.name for one in fields(Report) if one.name != "notes")
