"""``s3commit abort``."""

from __future__ import annotations

import click

from s3commit.cli.arguments import JOB, JobName, destination_option
from s3commit.cli.job.locate import locate
from s3commit.cli.job.requests import is_aborting, refuse_second_request
from s3commit.cli.job.restart import read_execution_of, restart, state_machine_option
from s3commit.cli.job.snapshot import JobSnapshot, read_snapshot
from s3commit.cli.output.actions import print_restart
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.verb import dry_run_option, table_option, verb
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.job import AbortRequest, Destination
from s3commit.writer.requests import request_abort


@verb(changes=True)
@click.argument("job", type=JOB)
@table_option
@destination_option
@state_machine_option
@click.option(
    "--reason", default="s3commit abort", show_default=True, help="Stands in the job's result."
)
@dry_run_option
def abort(
    session: Session,
    printer: Printer,
    *,
    job: JobName,
    table: str | None,
    destination: Destination | None,
    machine: str | None,
    reason: str,
    dry_run: bool,
) -> None:
    """Abort a job: none of its files becomes visible.

    Writes the abort request in place of the job's driver. A request is written once and never
    changes, so a driver that is still alive cannot commit any more. Refused (exit 3) if a commit
    was requested before. JOB is a job id or the s3:// URI of a job directory.

    If the abort was requested before and its execution failed (the ledger has its name), starts
    another execution, which continues the abort.
    """
    snapshot = read_snapshot(session, locate(session, job, table, destination))
    last = read_execution_of(session, snapshot, machine)
    gives_up = isinstance(snapshot.request, AbortRequest)
    if gives_up and last is not None and last.machine is not None and not last.is_running:
        started = restart(session, snapshot, last, dry_run)
        print_restart(printer, snapshot, last, started)
        return
    if is_aborting(snapshot):
        _tell(printer, snapshot, False, dry_run, f"job {job.job_id} is given up already")
        return
    refuse_second_request(snapshot)
    if not dry_run:
        answer = request_abort(session.store, snapshot.directory, reason)
        if not answer.accepted:
            raise PreconditionError(answer.message, code="OTHER_REQUEST")
    _tell(printer, snapshot, not dry_run, dry_run, f"abort of job {job.job_id} requested")


def _tell(printer: Printer, snapshot: JobSnapshot, written: bool, dry_run: bool, line: str) -> None:
    uri = f"s3://{snapshot.directory.bucket}/{snapshot.directory.request}"
    if printer.json:
        printer.document(
            {
                "jobId": snapshot.directory.job_id,
                "action": "abort",
                "state": snapshot.state,
                "request": uri,
                "written": written,
                "dryRun": dry_run,
                "started": None,
            }
        )
        return
    if written:
        printer.line(f"{line}: wrote {uri}")
        printer.note(f"follow it: s3commit watch {snapshot.located.name}")
    elif is_aborting(snapshot):
        printer.line(f"{line} ({snapshot.state}): nothing to do")
    else:
        printer.line(
            f"dry run: would write {uri}, and with it abort job {snapshot.directory.job_id}"
        )
