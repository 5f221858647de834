"""All probes, one after the other: what is said before, how they are run, the table at the end."""

from __future__ import annotations

import signal
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import reduce
from typing import Any

from s3commit.aws.failures import translated
from s3commit.cli.printer import Printer
from s3commit.cli.probe import conditions, listings, machines, pipeline, tables, uploads
from s3commit.cli.probe.model import BAD, Cost, Probe, Report, Row, Verdict, judge
from s3commit.cli.probe.target import Given, Target
from s3commit.cli.session import Session
from s3commit.cli.text import many, one_line, size
from s3commit.cli.verb import FAILED, USAGE, Problem
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Destination
from s3commit.version import __version__

PROBES: tuple[Probe, ...] = (
    *conditions.PROBES,
    *uploads.PROBES,
    *listings.PROBES,
    *tables.PROBES,
    *machines.PROBES,
    *pipeline.PROBES,
)
LISTINGS = 20  # of what is to be deleted, and of what is left


def lacking_in(target: Target) -> dict[str, str]:
    """Why each probe can't be run there, by its name; nothing for those that can."""
    return {probe.name: probe.lacks(target) for probe in PROBES}


def cost_of(target: Target, lacking: dict[str, str]) -> Cost:
    """What the probes that can be run take at most, with the listings and deletes of the end."""
    run = [probe for probe in PROBES if not lacking[probe.name]]
    made = reduce(
        Cost.__add__, [probe.cost + probe.each_round * target.rounds for probe in run], Cost()
    )
    return made + Cost(requests=LISTINGS, deletes=made.requests // 2)


def run_probes(
    target: Target, lacking: dict[str, str], told: Callable[[Probe], None]
) -> list[Report]:
    """Run each; ``told`` hears of each before. Cleaning up is the caller's."""
    reports = []
    for probe in PROBES:
        why = lacking[probe.name]
        if why:
            reports.append(_report(probe, {}, why, Verdict.NOT_PROBED))
        else:
            told(probe)
            reports.append(_probed(probe, target))
    return reports


def bad(reports: Iterable[Report]) -> str:
    """The probes with cases on which correctness can't rest here; empty if there are none."""
    told = []
    for verdict in BAD:
        found = [each for each in reports if verdict in {row.verdict for row in each.rows}]
        if found:
            told.append(f"{verdict}: {', '.join(each.probe.name for each in found)}")
    return "; ".join(told)


def _probed(probe: Probe, target: Target) -> Report:
    """What was seen of every case. An error ends the probe, and the cases before it count."""
    rows: dict[str, Row] = {}
    why = "it was not looked at"
    try:
        with translated(probe.name):
            for seen in probe.run(target):
                rows[seen.case] = judge(probe.cases[seen.case], seen)
    except S3CommitError as error:
        why = error.message
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    return _report(probe, rows, one_line(why), Verdict.FAILED)


def _report(probe: Probe, rows: dict[str, Row], why: str, verdict: Verdict) -> Report:
    """The rows in the order of the cases; those that lack have the verdict, and say why."""
    every = [
        rows.get(name) or Row(name, case.expected, why, verdict)
        for name, case in probe.cases.items()
    ]
    return Report(probe, tuple(every))


WIDTH = 100
_VERDICT, _CASE = 11, 44


def announce(printer: Printer, target: Target, lacking: dict[str, str]) -> None:
    """Say what will be done, where, and for how much."""
    cost = cost_of(target, lacking)
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
    if row.verdict is not Verdict.OK or len(row.expected) > 1:
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


ROLE_COLONS = 5  # of a role's ARN: the state machine's has its partition and account


def probe(session: Session, printer: Printer, destination: Destination, **given: Any) -> None:
    """Announce, probe, clean up and tell. Raises `Problem` if anything is not as needed."""
    target = Target(Given(destination, **given), session.environment)
    _refuse_halves(target.given)
    left: list[str] = []
    with translated("looking at the buckets"):
        for at in target.prefixes:
            target.s3.head_bucket(Bucket=at.bucket)
        _require_versions(target)
        lacking = lacking_in(target)
        announce(printer, target, lacking)
    with _terminable():
        try:
            reports = run_probes(
                target, lacking, lambda probe: printer.note(f"{probe.name}: {probe.what}")
            )
        finally:
            printer.note("cleaning up")
            left += target.clean()
            for line in left:
                printer.note(f"left: {line}")
    if printer.json:
        printer.document(document(target, reports, left))
    else:
        table(printer, target, reports)
    if found := bad(reports):
        raise Problem(f"not as correctness needs it: {found}", FAILED)
    if left:
        things = many(len(left), "thing")
        raise Problem(f"{things} could not be deleted; delete by hand: {'; '.join(left)}", FAILED)


def _refuse_halves(given: Given) -> None:
    if (given.key_role is None) != (given.key is None):
        raise Problem("--key-role and --key belong together: give both or none", USAGE)
    if given.machine_role and given.machine_role.count(":") < ROLE_COLONS:
        raise Problem("--machine-role is an ARN, arn:aws:iam::111122223333:role/NAME", USAGE)


def _require_versions(target: Target) -> None:
    bucket = target.given.versioned_bucket
    if bucket is None:
        return
    found = target.s3.get_bucket_versioning(Bucket=bucket)
    if found.get("Status") != "Enabled":
        raise Problem(f"bucket {bucket} has no versioning: give one that has, or none", USAGE)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM interrupts as SIGINT does, so that what was made is deleted then too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
