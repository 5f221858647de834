"""What is printed: before it begins, and the table at the end."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from s3commit.cli.printer import Printer
from s3commit.cli.probe.model import Cost, Report, Row, Verdict
from s3commit.cli.probe.target import Target
from s3commit.cli.text import size
from s3commit.version import __version__

WIDTH = 100
_VERDICT, _CASE = 11, 44


def announce(printer: Printer, target: Target, cost: Cost, lacking: dict[str, str]) -> None:
    """What will be done, where, and for how much."""
    for at in target.prefixes:
        printer.note(f"probes in s3://{at.bucket}/{at.prefix}")
    given = target.given
    if given.table:
        printer.note(f"probes with items PROBE#{target.name} in table {given.table}")
    if given.machine_role:
        printer.note(f"probes with state machine {target.name}")
    if given.alarm:
        printer.note(f"sets off alarm {given.alarm}: whoever it notifies hears of it")
    if lacking.get("job") == "":
        printer.note("probes with one small job through the pipeline behind the bucket")
    printer.note(
        f"takes some minutes and at most {cost.requests:,} S3 requests and {cost.deletes:,}"
        f" deletes; sends {size(cost.sent)},"
        f" copies {size(cost.copied)} within S3; costs less than {cost.price:.4f} USD (us-east-1)"
    )
    printer.note("deletes all of it at the end, also if interrupted")


def document(target: Target, reports: Sequence[Report], left: list[str]) -> dict[str, Any]:
    """The table for programs."""
    return {
        "version": __version__,
        "region": target.s3.meta.region_name,
        "endpoint": target.s3.meta.endpoint_url,
        "name": target.name,
        "requests": target.requests,
        "verdicts": dict(_counts(reports)),
        "probes": [
            {
                "name": report.probe.name,
                "what": report.probe.what,
                "relies": list(report.probe.relies),
                "source": report.probe.source,
                "cases": [asdict(row) for row in report.rows],
            }
            for report in reports
        ],
        "left": left,
    }


def table(printer: Printer, target: Target, reports: Sequence[Report]) -> None:
    """The table for people, 100 columns wide."""
    printer.line(
        f"s3commit {__version__} at {target.s3.meta.endpoint_url}, {target.s3.meta.region_name}"
    )
    for report in reports:
        probe = report.probe
        printer.line("")
        for line in _wrapped(f"{probe.name}: {probe.what} (for {', '.join(probe.relies)})", ""):
            printer.line(line)
        printer.line(f"  {probe.source}")
        first = report.rows[0]
        if all(row.verdict is Verdict.NOT_PROBED for row in report.rows):
            printer.line(f"  {Verdict.NOT_PROBED:<{_VERDICT}}{first.seen}")
            continue
        why = ""
        for row in report.rows:
            same = row.verdict is Verdict.FAILED and row.seen == why
            for line in _lines(replace(row, seen="as above") if same else row):
                printer.line(line)
            why = row.seen
    counts = _counts(reports)
    printer.line("")
    printer.line(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def _lines(row: Row) -> list[str]:
    head = f"  {row.verdict:<{_VERDICT}}{row.case:<{_CASE}}"
    lines = _wrapped(row.seen, head)
    if not row.says_all:
        expected = f"{'':<{_VERDICT + 2}}expected: "
        lines += _wrapped(" or ".join(row.expected), expected)
    return lines


def _wrapped(text: str, head: str) -> list[str]:
    return textwrap.wrap(
        text or "nothing", WIDTH, initial_indent=head, subsequent_indent=" " * (len(head) or 2)
    )


def _counts(reports: Sequence[Report]) -> dict[str, int]:
    found = Counter(row.verdict for report in reports for row in report.rows)
    return {str(verdict): found[verdict] for verdict in Verdict if found[verdict]}
