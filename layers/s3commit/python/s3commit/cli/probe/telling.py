"""What is printed: before it begins, and the table at the end."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from s3commit.cli.printer import Printer
from s3commit.cli.probe.model import BAD, Cost, Report, Verdict
from s3commit.cli.probe.world import World
from s3commit.cli.text import many, size
from s3commit.version import __version__

WIDTH = 100
_VERDICT, _CASE = 11, 44


def announce(printer: Printer, world: World, cost: Cost, lacking: dict[str, str]) -> None:
    """What will be done, where, and for how much."""
    for place in world.places:
        printer.note(f"probes in s3://{place.bucket}/{place.prefix}")
    given = world.given
    if given.table:
        printer.note(f"probes with items PROBE#{world.name} in table {given.table}")
    if given.machine_role:
        printer.note(f"probes with state machine {world.name}")
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


def document(world: World, reports: Sequence[Report], left: list[str]) -> dict[str, Any]:
    """The table for programs."""
    return {
        "version": __version__,
        "region": world.s3.meta.region_name,
        "endpoint": world.s3.meta.endpoint_url,
        "name": world.name,
        "requests": world.requests,
        "verdicts": _counts(reports),
        "probes": [
            {
                **{name: getattr(probe, name) for name in ("name", "what", "relies", "source")},
                "cases": [row._asdict() for row in rows],
            }
            for probe, rows in reports
        ],
        "left": left,
    }


def table(printer: Printer, world: World, reports: Sequence[Report]) -> None:
    """The table for people, 100 columns wide."""
    printer.line(
        f"s3commit {__version__} at {world.s3.meta.endpoint_url}, {world.s3.meta.region_name}"
    )
    for probe, rows in reports:
        printer.line("")
        _say(printer, f"{probe.name}: {probe.what} (for {', '.join(probe.relies)})")
        printer.line(f"  {probe.source}")
        if rows[0].verdict is Verdict.NOT_PROBED:
            printer.line(f"  {Verdict.NOT_PROBED:<{_VERDICT}}{rows[0].seen}")
            continue
        why = ""
        for row in rows:
            same = row.verdict is Verdict.FAILED and row.seen == why
            why = row.seen
            seen = "as above" if same else row.seen
            _say(printer, seen, f"  {row.verdict:<{_VERDICT}}{row.case:<{_CASE}}")
            if row.verdict is not Verdict.OK or len(row.expected) > 1:
                _say(printer, " or ".join(row.expected), f"  {'':<{_VERDICT}}expected: ")
    printer.line("")
    printer.line(", ".join(f"{count} {verdict}" for verdict, count in _counts(reports).items()))


def summary(reports: Sequence[Report]) -> str:
    """The names of the probes with cases on which correctness can't rest; empty without any."""
    told = []
    for verdict in BAD:
        names = [probe.name for probe, rows in reports if verdict in {row.verdict for row in rows}]
        if names:
            told.append(f"{verdict}: {', '.join(names)}")
    return "; ".join(told)


def _say(printer: Printer, text: str, head: str = "") -> None:
    """Wrapped, with what follows the first line below what follows the head."""
    below = " " * (len(head) or 2)
    for line in textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=below):
        printer.line(line)


def _counts(reports: Sequence[Report]) -> dict[str, int]:
    found = Counter(row.verdict for report in reports for row in report.rows)
    return {str(verdict): found[verdict] for verdict in Verdict if found[verdict]}


def left_behind(left: list[str]) -> str:
    """What is said of things that could not be deleted."""
    return f"{many(len(left), 'thing')} could not be deleted; delete by hand: {'; '.join(left)}"
