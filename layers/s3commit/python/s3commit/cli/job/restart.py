"""Continuing a job whose execution has died: another execution takes it over.

That is safe at any time and any number of times: the new one raises the job's generation, so the
ledger refuses whatever an older one still tries, and it continues where ledger and S3 say.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from s3commit.aws import env
from s3commit.aws.arns import machine_of
from s3commit.cli.job.requests import requested
from s3commit.cli.job.snapshot import JobSnapshot
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.core.model.errors import PreconditionError
from s3commit.core.ports.executions import Execution


def start_another(
    session: Session,
    printer: Printer,
    snapshot: JobSnapshot,
    machine: str | None,
    *,
    dry_run: bool,
    must: bool,
) -> bool:
    """Start another execution of a job that was requested and has not ended, and print it.

    False if there is none to start: the job has its result, or no request, or no ledger was named.
    So it is, unless it ``must`` continue, where an execution runs or nobody knows the ``machine``;
    else `PreconditionError` (``OTHER_REQUEST``) is raised then, and if one was started just now.
    """
    if snapshot.result is not None or snapshot.request is None or snapshot.ledger is None:
        return False
    arn = snapshot.record.execution if snapshot.record is not None else ""
    last = session.describe(arn) if machine_of(arn) else None
    machine = machine or machine_of(arn)
    if not must and (machine is None or (last is not None and last.is_running)):
        return False
    see = f"see: s3commit show {snapshot.name}"
    if last is not None and last.is_running:
        raise _refusal(snapshot, f", and its execution is {last.status}: it decides; {see}")
    if machine is None:
        raise _refusal(
            snapshot,
            f", and decides; {see}. If no execution works on it, start one: name the state machine"
            f" with --state-machine or {env.STATE_MACHINE}",
        )
    started = None
    if not dry_run:
        # No execution has that name: two that are started within a second are one.
        now = datetime.fromtimestamp(session.environment.epoch(), UTC)
        name = f"{snapshot.directory.ref}-{now:%Y%m%dT%H%M%SZ}"
        started = session.executions(machine).start(name, snapshot.directory)
        if started is None:
            more = f", and execution {name} was started for it a moment ago; {see}"
            raise _refusal(snapshot, more)
    _tell(printer, snapshot, last, started)
    return True


def _refusal(snapshot: JobSnapshot, more: str) -> PreconditionError:
    before = f"job {snapshot.job_id}: its {requested(snapshot)} was requested before"
    return PreconditionError(f"{before}{more}", code="OTHER_REQUEST")


def action_document(
    snapshot: JobSnapshot, action: str, *, written: bool, dry_run: bool, started: str | None = None
) -> dict[str, Any]:
    """What came of a verb that asks for a job's end: a request written, an execution started."""
    return {
        "jobId": snapshot.job_id,
        "action": action,
        "state": snapshot.state,
        "request": snapshot.request_uri,
        "written": written,
        "dryRun": dry_run,
        "started": started,
    }


def _tell(
    printer: Printer, snapshot: JobSnapshot, execution: Execution | None, started: str | None
) -> None:
    """Print the execution that was started for a job after another; None: that would be."""
    asked, dry_run = requested(snapshot), started is None
    status = execution.status if execution else None
    failure = execution.failure if execution else None
    code = failure.code if failure else None
    if printer.json:
        document = action_document(snapshot, asked, written=False, dry_run=dry_run, started=started)
        printer.document({**document, "executionBefore": status, "executionBeforeFailed": code})
        return
    failed = f", {code}" if code else ""
    before = f"the one before is {status}{failed}" if status else "none is known"
    job = f"job {snapshot.job_id}, which continues its {asked} ({before})"
    if dry_run:
        printer.line(f"dry run: would start an execution of {job}")
        return
    printer.line(f"started an execution of {job}: {started}")
    if code:
        printer.note(
            "where nothing was mended it fails again: what to mend says s3commit show"
            f" {snapshot.name}"
        )
    printer.note(f"follow it: s3commit show --follow {snapshot.name}")
