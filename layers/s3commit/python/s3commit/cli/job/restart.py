"""Going on with a job whose execution has died: another execution takes it over.

That is safe at any time and any number of times: the new one raises the job's generation, so the
ledger refuses whatever an older one still tries, and it goes on where ledger and S3 say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from s3commit.aws import env
from s3commit.aws.arns import is_arn, machine_of
from s3commit.cli.job.requests import requested
from s3commit.cli.job.snapshot import JobSnapshot
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.core.model.errors import PreconditionError
from s3commit.core.ports.executions import Execution


@dataclass(frozen=True, slots=True)
class LastExecution:
    """The execution that the ledger names for a job that was requested and has not ended.

    ``execution`` is None if it names none; ``machine`` is where another one can be started, None
    if nobody knows.
    """

    execution: Execution | None
    machine: str | None

    @property
    def is_running(self) -> bool:
        """Whether it may still work on the job."""
        return self.execution is not None and self.execution.is_running


def read_execution_of(
    session: Session, snapshot: JobSnapshot, machine: str | None
) -> LastExecution | None:
    """Who works on the job, or None if it has its result, no request, or no ledger was named."""
    if snapshot.result is not None or snapshot.request is None or snapshot.ledger is None:
        return None
    execution = snapshot.record.execution if snapshot.record is not None else ""
    if not is_arn(execution):
        return LastExecution(None, machine)
    return LastExecution(session.describe(execution), machine or machine_of(execution))


def restart(
    session: Session, snapshot: JobSnapshot, last: LastExecution, dry_run: bool
) -> str | None:
    """Start an execution for the job. Returns its ARN; None if the run is dry.

    Raises `PreconditionError` (``OTHER_REQUEST``) if one runs, or was started a moment ago, or if
    nobody knows the machine.
    """
    job = snapshot.job_id
    before = f"job {job}: its {requested(snapshot)} was requested before"
    if last.execution is not None and last.is_running:
        raise PreconditionError(
            f"{before}, and its execution is {last.execution.status}: it decides; see:"
            f" s3commit show {snapshot.name}",
            code="OTHER_REQUEST",
        )
    if last.machine is None:
        raise PreconditionError(
            f"{before}, and decides; see: s3commit show {snapshot.name}. If no execution"
            " works on it, start one: name the state machine with --state-machine or"
            f" {env.STATE_MACHINE}",
            code="OTHER_REQUEST",
        )
    if dry_run:
        return None
    # No execution has that name: two that are started within a second are one.
    now = datetime.fromtimestamp(session.environment.epoch(), UTC)
    name = f"{snapshot.directory.ref}-{now:%Y%m%dT%H%M%SZ}"
    started = session.executions(last.machine).start(name, snapshot.directory)
    if started is None:
        raise PreconditionError(
            f"{before}, and execution {name} was started for it a moment ago; see:"
            f" s3commit show {snapshot.name}",
            code="OTHER_REQUEST",
        )
    return started


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
