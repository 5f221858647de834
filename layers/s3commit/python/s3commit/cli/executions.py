"""Executions of the state machine, as a person on call needs them: look at one, start another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from s3commit.cli.human import one_line
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model import errors
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Failure

FORGOTTEN = "FORGOTTEN"  # by Step Functions, 90 days after its end
_ALIVE = frozenset({"RUNNING", "PENDING_REDRIVE"})
SHOWN_MESSAGE = 600  # characters; a key may take 1,024 bytes of it

# The state machine tells an error by its class, whose code is known here.
_CODES: Final = {
    name: kind.code
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, S3CommitError)
}
_REFUSAL = re.compile(r"\[([A-Z_]+)\] (.*)", re.DOTALL)  # as `refusal_text` words it
_MESSAGE = re.compile(r'"errorMessage"\s*:\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Execution:
    """What DescribeExecution says of one; ``error`` and ``cause`` are empty unless it failed.

    ``status`` is ``RUNNING``, ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT``, ``ABORTED`` and so on.
    """

    status: str
    error: str = ""
    cause: str = ""

    @property
    def failure(self) -> Failure | None:
        """Why it failed: the code that there is advice on, and one line without a stack trace.

        The cause of a step that raised is JSON with ``errorType``, ``errorMessage`` and
        ``stackTrace``: https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html. Of a
        cause longer than 32,768 characters Step Functions keeps a part.
        """
        if not self.error and not self.cause:
            return None
        text = _message_of(self.cause)
        refusal = _REFUSAL.fullmatch(text)
        code = refusal[1] if refusal else _CODES.get(self.error, self.error)
        message = one_line(refusal[2] if refusal else text)
        if len(message) > SHOWN_MESSAGE:
            message = message[:SHOWN_MESSAGE] + "..."
        told = ": ".join(filter(None, (self.error, message)))
        return Failure(code or self.status, told)


def _message_of(cause: str) -> str:
    try:
        found = json.loads(cause)
        return str(found["errorMessage"])
    except (ValueError, KeyError, TypeError):
        cut = _MESSAGE.search(cause)
        return str(json.loads(cut[1], strict=False)) if cut else cause


class Executions(Protocol):
    """What the command does with Step Functions."""

    def describe(self, arn: str) -> Execution:
        """What is known of the execution; status `FORGOTTEN` where there is none any more."""
        ...

    def start(self, machine: str, name: str, directory: JobDirectory) -> str:
        """Start an execution for the job and return its ARN; the same name twice starts one."""
        ...


def read_executions(
    session: Session, executions: Iterable[str]
) -> tuple[dict[str, Execution], tuple[str, ...]]:
    """Each execution that has an ARN, by it, and what went wrong with asking.

    Who may not look at executions still sees all the rest.
    """
    found: dict[str, Execution] = {}
    for arn in sorted({one for one in executions if is_arn(one)}):
        try:
            found[arn] = session.executions.describe(arn)
        except S3CommitError as error:
            return found, (f"executions can not be looked at: {error.message}",)
    return found, ()


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
