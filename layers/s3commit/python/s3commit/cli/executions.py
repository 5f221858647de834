"""Executions of the state machine, as a person on call needs them: look at one, start another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from s3commit.cli.session import Session
from s3commit.core.errors import S3CommitError
from s3commit.core.layout import JobDirectory

FORGOTTEN = "FORGOTTEN"  # by Step Functions, 90 days after its end
_ALIVE = frozenset({"RUNNING", "PENDING_REDRIVE"})


class Executions(Protocol):
    """What the command does with Step Functions."""

    def status(self, arn: str) -> str:
        """``RUNNING``, ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT``, ``ABORTED`` and so on."""
        ...

    def start(self, machine: str, name: str, place: JobDirectory) -> str:
        """Start an execution for the job and return its ARN; the same name twice starts one."""
        ...


def read_statuses(
    session: Session, executions: Iterable[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The status of each execution that has an ARN, and what went wrong with asking.

    Who may not look at executions still sees all the rest.
    """
    statuses: dict[str, str] = {}
    for arn in sorted({one for one in executions if is_arn(one)}):
        try:
            statuses[arn] = session.executions.status(arn)
        except S3CommitError as error:
            return statuses, (f"executions can not be looked at: {error.message}",)
    return statuses, ()


def is_dead(status: str | None) -> bool:
    """Whether an execution of that status does nothing any more; None is not known."""
    return status is not None and status not in _ALIVE


def is_arn(execution: str) -> bool:
    """Whether it names an execution of Step Functions."""
    fields = execution.split(":")
    return len(fields) >= 8 and fields[0] == "arn" and fields[5] == "execution"


def machine_of(execution: str) -> str | None:
    """The ARN of the state machine of an execution, or None for what is no execution's ARN."""
    if not is_arn(execution):
        return None
    fields = execution.split(":")
    return ":".join([*fields[:5], "stateMachine", fields[6]])
