"""``s3commit sweep``."""

from __future__ import annotations

from itertools import islice

import click

from s3commit.aws.arns import machine_of
from s3commit.cli.arguments import age_option
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import many
from s3commit.cli.verb import (
    FAILED,
    USAGE,
    Problem,
    dry_run_option,
    state_machine_option,
    table_option,
    verb,
)
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger
from s3commit.core.sweep.report import Report, encode_report, priced
from s3commit.core.sweep.steps import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep

LOOKED_AT = 100  # records of each state, to learn the bucket and the state machine from


@verb(changes=True)
@table_option
@state_machine_option
@click.option("--bucket", metavar="NAME", help="The data bucket, if no job of the ledger names it.")
@age_option("--stuck-after", "stuck", default="15m", told="As stuckMinutes deploys it.")
@age_option("--abandoned-after", "abandoned", default="24h", told="As abandonedHours.")
@age_option("--orphaned-after", "orphaned", default="7d", told="orphanedDays.")
@age_option("--retention", default="30d", told="retentionDays.")
@dry_run_option
def sweep(
    session: Session,
    printer: Printer,
    *,
    table: str | None,
    machine: str | None,
    bucket: str | None,
    dry_run: bool,
    **limits: int,
) -> None:
    """Run one pass of the scheduled sweep now.

    Continues stuck jobs, aborts dead ones, and removes what ended jobs left behind, with the
    rights of the caller and the limits of the deployment. Never touches jobs that give signs of
    life, uploads that are not provably of an ended job, or anything that S3A left behind.
    """
    if not table:
        raise Problem("sweep reads the ledger: name its table with --table", USAGE)
    bucket, machine = _deployment(session.ledger(table), bucket, machine)
    sweeper = session.sweeper(table, machine)
    told: set[str] = set()
    ports = (sweeper.ports, sweeper.executions)
    report = run_sweep(
        lambda report: Sweep(bucket, *ports, Limits(**limits), report, dry_run=dry_run, told=told)
    )
    _tell(printer, bucket, report, dry_run)


def _deployment(ledger: Ledger, bucket: str | None, machine: str | None) -> tuple[str, str]:
    """The data bucket and the state machine, by the records of jobs if they were not given."""
    for state in JobState:
        for record in islice(ledger.jobs_in(state, before="9"), LOOKED_AT):
            if bucket and machine:
                break
            bucket = bucket or record.destination.bucket
            machine = machine or machine_of(record.execution)
    if not bucket or not machine:
        raise Problem(
            "the ledger has no job that names bucket and state machine: give --bucket and"
            " --state-machine (the stacks' outputs BucketName and StateMachineArn)",
            USAGE,
        )
    return bucket, machine


def _tell(printer: Printer, bucket: str, report: Report, dry_run: bool) -> None:
    if printer.json:
        printer.document({"bucket": bucket, "dryRun": dry_run, **encode_report(report)})
    else:
        for note in report.notes:
            printer.line(f"dry run: {note}" if dry_run else note)
        if report.unsaid:
            printer.line(f"and {report.unsaid} more")
        printer.note(_summary(bucket, report, dry_run))
    if report.failed:
        first = next((note for note in report.notes if note.startswith("failed")), "see the log")
        raise Problem(
            f"{many(report.failed, 'thing')} could not be swept, {first}; run it again",
            FAILED,
        )


def _summary(bucket: str, report: Report, dry_run: bool) -> str:
    done = [
        many(report.started, "execution") + " started",
        many(report.asked, "job") + " aborted",
        many(report.uploads, "upload") + " aborted",
        many(report.objects, "object") + " deleted",
        f"{priced(report.freed_bytes)} freed",
    ]
    if report.s3a:
        done.append(f"{many(report.s3a, 'job')} of S3A left behind, {priced(report.s3a_bytes)}")
    return f"{'would be done' if dry_run else 'swept'} in {bucket}: {', '.join(done)}"
