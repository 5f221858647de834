"""``s3commit commit``."""

from __future__ import annotations

import click

from s3commit.cli.job.requests import (
    Countable,
    count_everything,
    refuse_incomplete,
    refuse_second_request,
)
from s3commit.cli.job.restart import action_document, start_another
from s3commit.cli.job.snapshot import JobSnapshot, on_job
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import amount, fields, many
from s3commit.cli.verb import dry_run_option, state_machine_option, verb
from s3commit.core.model.job import CommitRequest
from s3commit.writer.requests import Patience, request_commit

TIMEOUT = 60.0  # seconds to get the request through


@verb(changes=True)
@on_job("JOBDIR")
@state_machine_option
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of the job's tasks that have files, if its manifests do not have it.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Commit even if tasks may be missing. Their files are not committed.",
)
@dry_run_option
def commit(
    session: Session,
    printer: Printer,
    *,
    snapshot: JobSnapshot,
    machine: str | None,
    tasks: int | None,
    partial: bool,
    dry_run: bool,
) -> None:
    """Finish a job whose driver or execution died.

    Writes the commit request in place of the driver. Every manifest in the job directory counts.
    JOBDIR is the s3:// URI of a job directory, or a job id. Make sure first that no task of the
    job is still running.

    The command checks every manifest against the open uploads. It refuses (exit 3) and changes
    nothing if a task has two manifests, or if tasks may be missing: an open upload is in no
    manifest, or there are fewer tasks than the manifests or --tasks say. Spark does not tell its
    Python tasks how many they are: look up the number in Spark's UI or event log. A task without
    rows leaves no manifest.

    If the commit was requested before and its execution failed (the ledger has its name), starts
    another execution, which continues the commit and frees the job's destination. Refused (exit 3)
    while an execution is running.
    """
    if isinstance(snapshot.request, CommitRequest) and start_another(
        session, printer, snapshot, machine, dry_run=dry_run, must=True
    ):
        return
    refuse_second_request(snapshot)
    countable = count_everything(session, snapshot)
    if not partial:
        refuse_incomplete(snapshot, countable, tasks)
    if not dry_run:
        patience = Patience(session.environment, TIMEOUT)
        request_commit(session.store, snapshot.directory, _request(snapshot, countable), patience)
    _tell(printer, snapshot, countable, dry_run)


def _request(snapshot: JobSnapshot, countable: Countable) -> CommitRequest:
    """By name and digest: what was looked at is what is committed, or the job is refused."""
    said = snapshot.spec.sha256 if snapshot.spec is not None else ""
    return CommitRequest(snapshot.job_id, countable.attempts, job_sha256=said)


def _tell(printer: Printer, snapshot: JobSnapshot, countable: Countable, dry_run: bool) -> None:
    if printer.json:
        printer.document(
            {
                **action_document(snapshot, "commit", written=not dry_run, dry_run=dry_run),
                "manifests": len(countable.attempts),
                **fields(countable, "tasks", "task_count", "files", "bytes", "rows"),
                "unfinishedUploads": countable.unfinished,
            }
        )
        return
    uri = snapshot.request_uri
    content = amount(countable.files, countable.bytes, countable.rows)
    counted = f"{many(len(countable.attempts), 'manifest')}: {content}"
    if dry_run:
        printer.line(f"dry run: would write {uri}, and with it ask to commit {counted}")
    else:
        printer.line(f"commit of job {snapshot.job_id} requested ({counted}): wrote {uri}")
        printer.note(f"follow it: s3commit show --follow {snapshot.name}")
    if countable.unfinished:
        printer.note(
            f"{many(countable.unfinished, 'open upload')} in no manifest: to be aborted at the end"
        )
    if countable.task_count is not None and countable.task_count > countable.tasks:
        missing = many(countable.task_count - countable.tasks, "task has", "tasks have")
        printer.note(f"{missing} no manifest: their files are not committed")
