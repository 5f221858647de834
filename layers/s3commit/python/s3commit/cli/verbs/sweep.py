"""``s3commit sweep``."""

from __future__ import annotations

from itertools import islice

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
from s3commit.core.sweep.report import Report, encode_report
from s3commit.core.sweep.run import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep

LOOKED_AT = 100  # records of each state, to learn the state machine from


@verb(changes=True)
@table_option
@state_machine_option
@age_option("--stuck-after", "stuck", default="15m", told="As stuckMinutes deploys it.")
@age_option("--abandoned-after", "abandoned", default="24h", told="As abandonedHours.")
@age_option("--retention", default="30d", told="retentionDays.")
@dry_run_option
def sweep(
    session: Session,
    printer: Printer,
    *,
    table: str | None,
    machine: str | None,
    dry_run: bool,
    **limits: int,
) -> None:
    """Run the scheduled sweep now.

    Continues stuck jobs, aborts dead ones, and deletes documents that are past their time, with
    the rights of the caller and the limits of the deployment. Never aborts a job of which a task
    has ended lately.
    """
    if not table:
        raise Problem("sweep reads the ledger: name its table with --table", USAGE)
    machine = machine or _machine(session.ledger(table))
    sweeper = session.sweeper(table, machine)
    report = run_sweep(Sweep(sweeper.ports, sweeper.executions, Limits(**limits), dry_run=dry_run))
    _tell(printer, report, dry_run)


def _machine(ledger: Ledger) -> str:
    """The state machine, by the records of jobs."""
    for state in JobState:
        for record in islice(ledger.jobs_in(state, before="9"), LOOKED_AT):
            machine = machine_of(record.execution)
            if machine:
                return machine
    raise Problem(
        "the ledger has no job that names the state machine: give --state-machine (the stack's"
        " output StateMachineArn)",
        USAGE,
    )


def _tell(printer: Printer, report: Report, dry_run: bool) -> None:
    if printer.json:
        printer.document({"dryRun": dry_run, **encode_report(report)})
    else:
        for note in report.notes:
            printer.line(f"dry run: {note}" if dry_run else note)
        if report.unsaid:
            printer.line(f"and {report.unsaid} more")
        printer.note(_summary(report, dry_run))
    if report.failed:
        first = next((note for note in report.notes if note.startswith("failed")), "see the log")
        raise Problem(
            f"{many(report.failed, 'thing')} could not be swept, {first}; run it again",
            FAILED,
        )


def _summary(report: Report, dry_run: bool) -> str:
    done = [
        many(report.started, "execution") + " started",
        many(report.aborted, "job") + " aborted",
        many(report.retired, "job") + " retired",
    ]
    return f"{'would be done' if dry_run else 'swept'}: {', '.join(done)}"
