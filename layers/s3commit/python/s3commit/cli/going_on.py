"""Going on with a job whose execution has died: another execution takes it over.

That is safe at any time and any number of times: the new one raises the job's generation, so the
ledger refuses whatever an older one still tries, and it goes on where ledger and S3 say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.executions import is_arn, is_dead, machine_of
from s3commit.cli.facts import JobFacts
from s3commit.cli.render import Printer
from s3commit.cli.session import Session
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.job import AbortRequest


@dataclass(frozen=True, slots=True)
class Hands:
    """In whose hands a job is that was asked for and has not ended.

    ``status`` is that of the execution which the ledger names, None if it names none; ``machine``
    is where another one can be started, None if nobody knows. ``failed`` is the code with which
    the execution failed, if it says one.
    """

    status: str | None
    machine: str | None
    failed: str = ""

    @property
    def free(self) -> bool:
        """Whether nobody is known to work on it."""
        return self.status is None or is_dead(self.status)


def state_machine_option(function: Any) -> Any:
    """``--state-machine``: where to start an execution."""
    return click.option(
        "--state-machine",
        "machine",
        envvar=env.STATE_MACHINE,
        show_envvar=True,
        metavar="ARN",
        help="The stack's output StateMachineArn, if the ledger names no execution of the job.",
    )(function)


def read_hands(session: Session, facts: JobFacts, machine: str | None) -> Hands | None:
    """Who works on the job, or None if it has its result, no request, or no ledger was named."""
    if facts.result is not None or facts.request is None or facts.located.ledger is None:
        return None
    execution = facts.record.execution if facts.record is not None else ""
    if not is_arn(execution):
        return Hands(None, machine)
    found = session.executions.describe(execution)
    failed = found.failure.code if found.failure else ""
    return Hands(found.status, machine or machine_of(execution), failed)


def go_on(session: Session, printer: Printer, facts: JobFacts, hands: Hands, dry_run: bool) -> None:
    """Start an execution for the job, and say so.

    Raises `PreconditionError` (``OTHER_REQUEST``) if one runs, or if nobody knows the machine.
    """
    job = facts.directory.job_id
    asked = "abort" if isinstance(facts.request, AbortRequest) else "commit"
    standing = f"job {job}: its {asked} was requested before"
    if not hands.free:
        raise PreconditionError(
            f"{standing}, and its execution is {hands.status}: it decides; see:"
            f" s3commit show {facts.located.name}",
            code="OTHER_REQUEST",
        )
    if hands.machine is None:
        raise PreconditionError(
            f"{standing}, and decides; see: s3commit show {facts.located.name}. If no execution"
            " works on it, start one: name the state machine with --state-machine or"
            f" {env.STATE_MACHINE}",
            code="OTHER_REQUEST",
        )
    started = None
    if not dry_run:
        started = session.executions.start(
            hands.machine, _name(session, facts.directory.ref), facts.directory
        )
    _tell(printer, facts, asked, hands, started)


def _name(session: Session, ref: str) -> str:
    """A name that no execution has: two that are started within a second are one."""
    now = datetime.fromtimestamp(session.environment.epoch(), UTC)
    return f"{ref}-{now:%Y%m%dT%H%M%SZ}"


def _tell(printer: Printer, facts: JobFacts, asked: str, hands: Hands, started: str | None) -> None:
    if printer.json:
        printer.document(
            {
                "jobId": facts.directory.job_id,
                "action": asked,
                "state": facts.state,
                "request": f"s3://{facts.directory.bucket}/{facts.directory.request}",
                "written": False,
                "dryRun": started is None,
                "started": started,
                "executionBefore": hands.status,
                "executionBeforeFailed": hands.failed or None,
            }
        )
        return
    failed = f", {hands.failed}" if hands.failed else ""
    before = f"the one before is {hands.status}{failed}" if hands.status else "none is known"
    job = f"job {facts.directory.job_id}, which goes on with its {asked} ({before})"
    if started is None:
        printer.line(f"dry run: would start an execution of {job}")
    else:
        printer.line(f"started an execution of {job}: {started}")
        if hands.failed:
            printer.note(
                "where nothing was mended it fails again: what to mend says s3commit show"
                f" {facts.located.name}"
            )
        printer.note(f"follow it: s3commit watch {facts.located.name}")
