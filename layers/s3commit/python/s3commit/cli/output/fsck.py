"""What a check found, and what came of it, line by line, for people and for programs."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from s3commit.cli.printer import Printer
from s3commit.cli.text import fields, many
from s3commit.core.fsck.findings import Finding, Tally
from s3commit.core.fsck.rebuild import Rebuilt
from s3commit.core.fsck.repair import Repaired
from s3commit.core.fsck.verdict import Level, Verdict
from s3commit.core.model.job import Destination

SHOWN: Final = 20  # lines of one kind, for people; programs and plans get all


class Teller:
    """Prints findings as they come, with memory for their counts alone.

    ``repaired`` counts those that are no longer so, ``left`` the others; notes don't count.
    """

    def __init__(self, printer: Printer, destination: Destination) -> None:
        self._printer = printer
        self._destination = destination
        self._counts: Counter[Verdict] = Counter()
        self.left = 0
        self.repaired = 0
        self.tally = Tally()

    def tell(self, finding: Finding, repaired: Repaired | None = None) -> None:
        """Print one finding, and what became of its repairs if there was to be any."""
        verdict = finding.verdict
        self._counts[verdict] += 1
        done = repaired is not None and not repaired.is_left
        if verdict.level is Level.FINDING:
            self.left += not done
            self.repaired += done
        if self._printer.json:
            self._printer.record(_document(finding, repaired))
        elif self._counts[verdict] <= SHOWN:
            self._printer.line(self._line(finding, repaired))

    def sum_up(self, *, repairing: bool) -> None:
        """Say what each kind means, and what there is in all; to stderr, but as JSON to stdout."""
        if self._printer.json:
            self._printer.record(
                {
                    "destination": self._destination.uri,
                    "jobs": self.tally.jobs,
                    "findings": self.left + self.repaired,
                    "left": self.left,
                    "repaired": self.repaired,
                    "byName": {one.name: count for one, count in self._counts.items()},
                }
            )
            return
        for verdict, count in self._counts.items():
            more = f" ({count - SHOWN} more)" if count > SHOWN else ""
            self._printer.note(f"{verdict.name}{more}: {verdict.means}. {verdict.do}.")
        self._printer.note(self._summary(repairing))

    def _summary(self, repairing: bool) -> str:
        where = self._destination.uri
        notes = sum(n for one, n in self._counts.items() if one.level is Level.NOTE)
        besides = f", {many(notes, 'note')}" if notes else ""
        jobs = self.tally.jobs
        of = f" ({many(jobs, 'job')})"
        if not jobs:
            of = "; no job has left a trace there: is it the right one?"
        if repairing:
            return f"{self.repaired} repaired, {self.left} left at {where}{besides}{of}"
        nothing = "; nothing was changed" if self.left else ""
        found = many(self.left, "finding") if self.left else "nothing found"
        return f"{found} at {where}{besides}{of}{nothing}"

    def _line(self, finding: Finding, repaired: Repaired | None) -> str:
        key = finding.key.removeprefix(self._destination.prefix)
        facts = [finding.detail, f"restore version {finding.restore}" if finding.restore else ""]
        what = ", ".join(filter(None, facts))
        return f"{finding.name}  {key}{f' ({what})' if what else ''}{_outcome(finding, repaired)}"


def _outcome(finding: Finding, repaired: Repaired | None) -> str:
    if repaired is not None:
        counts = Counter(repaired.outcomes)
        each = ", ".join(f"{n} {one}" if len(counts) > 1 else one for one, n in counts.items())
        why = f": {repaired.why}" if repaired.why else ""
        return f"  -> {each}{why}" if each else ""
    actions = dict.fromkeys(one.action.value for one in finding.repairs)
    return f"  -> {', '.join(actions)}" if actions else ""


def _document(finding: Finding, repaired: Repaired | None) -> dict[str, Any]:
    outcomes = {"outcomes": repaired.outcomes, "why": repaired.why or None} if repaired else {}
    return {
        "finding": finding.name,
        "level": finding.verdict.level,
        **fields(finding, "bucket", "key"),
        "jobId": finding.job_id or None,
        "detail": finding.detail or None,
        "restoreVersion": finding.restore or None,
        "repairs": [one.action for one in finding.repairs],
        **outcomes,
    }


def tell_rebuilt(printer: Printer, one: Rebuilt, *, dry_run: bool) -> None:
    """Print what became of one job directory."""
    if printer.json:
        printer.record(
            {
                "jobId": one.directory.job_id,
                "directory": one.directory.uri,
                **fields(one, "state", "attempts", "locks", "goes_on", "started", "running"),
                "made": one.made and not dry_run,
                "why": one.why or None,
            }
        )
        return
    if one.state is None:
        printer.line(f"left out  {one.directory.uri}: {one.why}")
        return
    word = "had it" if not one.made else "would make" if dry_run else "made"
    printer.line(f"{word}  {one.directory.uri}: {one.state}{_hands_on(one, dry_run)}")


def _hands_on(one: Rebuilt, dry_run: bool) -> str:
    noted = f", {many(one.attempts, 'attempt')} noted" if one.attempts else ""
    if one.locks:
        noted += ", was decided and holds its locks again"
    if not one.goes_on:
        return noted
    if one.running:
        return f"{noted}, an execution works on it"
    if one.started or dry_run:
        return f"{noted}, {'an execution was started' if one.started else 'needs an execution'}"
    return f"{noted}, needs an execution: {one.why}"
