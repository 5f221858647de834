"""``s3commit abort``."""

from __future__ import annotations

import click

from s3commit.cli.arguments import JOB, JobName, destination_option
from s3commit.cli.asking import is_given_up, refuse_second_word
from s3commit.cli.facts import JobFacts, read_facts
from s3commit.cli.going_on import go_on, read_hands, state_machine_option
from s3commit.cli.locate import locate
from s3commit.cli.render import Printer
from s3commit.cli.session import Session
from s3commit.cli.verb import dry_run_option, table_option, verb
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.job import AbortRequest, Destination
from s3commit.writer.asking import ask_abort


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
    """Give a job up: none of it gets visible.

    Asks for the abort of JOB as its driver would: writes the job's request.json, once and for
    good, so that a driver that still lives finds its place taken. Refused (exit 3) if a commit
    was asked for before; that one decides. JOB is a job id or the s3:// URI of a job directory.

    If the abort was asked for before and the execution that worked on it has died (the ledger
    names it), starts another one, which goes on.
    """
    facts = read_facts(session, locate(session, job, table, destination))
    hands = read_hands(session, facts, machine)
    gives_up = isinstance(facts.request, AbortRequest)
    if gives_up and hands is not None and hands.free and hands.machine is not None:
        go_on(session, printer, facts, hands, dry_run)
        return
    if is_given_up(facts):
        _tell(printer, facts, False, dry_run, f"job {job.job_id} is given up already")
        return
    refuse_second_word(facts)
    if not dry_run:
        answer = ask_abort(session.store, facts.directory, reason)
        if not answer.accepted:
            raise PreconditionError(answer.message, code="OTHER_REQUEST")
    _tell(printer, facts, not dry_run, dry_run, f"abort of job {job.job_id} requested")


def _tell(printer: Printer, facts: JobFacts, written: bool, dry_run: bool, line: str) -> None:
    uri = f"s3://{facts.directory.bucket}/{facts.directory.request}"
    if printer.json:
        printer.document(
            {
                "jobId": facts.directory.job_id,
                "action": "abort",
                "state": facts.state,
                "request": uri,
                "written": written,
                "dryRun": dry_run,
                "started": None,
            }
        )
        return
    if written:
        printer.line(f"{line}: wrote {uri}")
        printer.note(f"follow it: s3commit watch {facts.located.name}")
    elif is_given_up(facts):
        printer.line(f"{line} ({facts.state}): nothing to do")
    else:
        printer.line(f"dry run: would write {uri}, and with it abort job {facts.directory.job_id}")
