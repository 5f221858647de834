"""``s3commit abort``."""

from __future__ import annotations

import click

from s3commit.cli.job.requests import is_aborting, refuse_second_request
from s3commit.cli.job.restart import action_document, start_another
from s3commit.cli.job.snapshot import JobSnapshot, on_job
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.verb import dry_run_option, state_machine_option, verb
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.job import AbortRequest
from s3commit.writer.requests import request_abort


@verb(changes=True)
@on_job()
@state_machine_option
@click.option(
    "--reason", default="s3commit abort", show_default=True, help="Stands in the job's result."
)
@dry_run_option
def abort(
    session: Session,
    printer: Printer,
    *,
    snapshot: JobSnapshot,
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
    if isinstance(snapshot.request, AbortRequest) and start_another(
        session, printer, snapshot, machine, dry_run=dry_run, must=False
    ):
        return
    given_up = is_aborting(snapshot)
    if not given_up:
        refuse_second_request(snapshot)
        if not dry_run:
            answer = request_abort(session.store, snapshot.directory, reason)
            if not answer.accepted:
                raise PreconditionError(answer.message, code="OTHER_REQUEST")
    _tell(printer, snapshot, given_up, dry_run)


def _tell(printer: Printer, snapshot: JobSnapshot, given_up: bool, dry_run: bool) -> None:
    job, uri = f"job {snapshot.job_id}", snapshot.request_uri
    written = not given_up and not dry_run
    if printer.json:
        printer.document(action_document(snapshot, "abort", written=written, dry_run=dry_run))
    elif given_up:
        printer.line(f"{job} is given up already ({snapshot.state}): nothing to do")
    elif dry_run:
        printer.line(f"dry run: would write {uri}, and with it abort {job}")
    else:
        printer.line(f"abort of {job} requested: wrote {uri}")
        printer.note(f"follow it: s3commit show --follow {snapshot.name}")
