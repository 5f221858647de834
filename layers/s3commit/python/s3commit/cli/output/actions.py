"""What an action came to: an execution that was started, files in doubt."""

from __future__ import annotations

from typing import Any

from s3commit.cli.job.requests import requested
from s3commit.cli.job.restart import LastExecution
from s3commit.cli.job.snapshot import JobSnapshot
from s3commit.cli.printer import Printer
from s3commit.cli.text import many, size
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.identity import described


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
    printer: Printer, snapshot: JobSnapshot, last: LastExecution, started: str | None
) -> None:
    """Print the execution that was started for a job; None: that would be."""
    asked, dry_run = requested(snapshot), started is None
    if printer.json:
        document = action_document(snapshot, asked, written=False, dry_run=dry_run, started=started)
        failed_with = last.failed or None
        printer.document(
            {**document, "executionBefore": last.status, "executionBeforeFailed": failed_with}
        )
        return
    failed = f", {last.failed}" if last.failed else ""
    before = f"the one before is {last.status}{failed}" if last.status else "none is known"
    job = f"job {snapshot.job_id}, which goes on with its {asked} ({before})"
    if dry_run:
        printer.line(f"dry run: would start an execution of {job}")
    else:
        printer.line(f"started an execution of {job}: {started}")
        if last.failed:
            printer.note(
                "where nothing was mended it fails again: what to mend says s3commit show"
                f" {snapshot.name}"
            )
        printer.note(f"follow it: s3commit watch {snapshot.name}")


def print_files_in_doubt(printer: Printer, snapshot: JobSnapshot, found: list[PendingFile]) -> None:
    """Print them, and how they are settled."""
    job = snapshot.job_id
    if printer.json:
        documents = [_document(snapshot.directory, file) for file in found]
        printer.document({"jobId": job, "state": snapshot.state, "inDoubt": documents})
        return
    for file in found:
        printer.line(f"{size(file.length):>10}  {described(file)}")
    if not found:
        printer.note(f"no file of job {job} is in doubt: {snapshot.state}")
        return
    printer.note(
        f"{many(len(found), 'file')}: nobody can tell whether of job {job}. Say of each whose it is"
        " (docs/operations.md, Whose is this file?), then:"
        f" s3commit commit {snapshot.name}"
    )


def _document(directory: JobDirectory, file: PendingFile) -> dict[str, Any]:
    """``metadata`` is as ``aws s3 cp --metadata`` takes it, and says that the file is the job's."""
    marks = {META_JOB: directory.job_id, META_TASK: file.task_id, META_ATTEMPT: file.attempt_id}
    return {
        "uri": f"s3://{file.bucket}/{file.key}",
        "bytes": file.length,
        "taskId": file.task_id,
        "attemptId": file.attempt_id,
        "metadata": ",".join(f"{name}={value}" for name, value in marks.items()),
    }
