"""What came of a verb that asks for the end of a job."""

from __future__ import annotations

from typing import Any

from s3commit.cli.job.requests import requested
from s3commit.cli.job.snapshot import JobSnapshot
from s3commit.cli.printer import Printer
from s3commit.core.ports.executions import Execution


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


def print_restart(
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
    job = f"job {snapshot.job_id}, which goes on with its {asked} ({before})"
    if dry_run:
        printer.line(f"dry run: would start an execution of {job}")
        return
    printer.line(f"started an execution of {job}: {started}")
    if code:
        printer.note(
            "where nothing was mended it fails again: what to mend says s3commit show"
            f" {snapshot.name}"
        )
    printer.note(f"follow it: s3commit watch {snapshot.name}")
