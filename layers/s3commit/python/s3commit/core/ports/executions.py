"""The executions of the pipeline's state machine."""

from dataclasses import dataclass
from typing import Final, Protocol

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.refusal import parse_refusal
from s3commit.core.model import errors
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.outcome import Failure

FORGOTTEN: Final = "FORGOTTEN"  # by Step Functions, 90 days after its end
SHOWN_MESSAGE: Final = 600  # characters; a key may take 1,024 bytes of it
_ALIVE: Final = frozenset({"RUNNING", "PENDING_REDRIVE"})

# The state machine knows an error by its class, whose code is known here.
_CODES: Final = {
    name: kind.code
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, S3CommitError)
}


@dataclass(frozen=True, slots=True)
class Reason:
    """The part of an execution's input that the ledger does not know.

    One that ``gives_up`` aborts the job for that reason, unless it is decided; with ``lists_lost``
    a decided one too, if the pipeline's lists of it are lost. ``requested_by`` is the principal
    that put the request, where S3's event leads to the execution.
    """

    gives_up: str = ""
    lists_lost: bool = False
    requested_by: str = ""


NO_REASON: Final = Reason()


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of the machine; ``error`` and ``cause`` are empty unless it failed.

    ``status`` is ``RUNNING``, ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT``, ``ABORTED`` and so on, or
    `FORGOTTEN`.
    """

    status: str
    error: str = ""
    cause: str = ""

    @property
    def is_running(self) -> bool:
        """True if it still does something, or will."""
        return self.status in _ALIVE

    @property
    def failure(self) -> Failure | None:
        """Why it failed: the code that there is advice on, and one line without a stack trace."""
        if not self.error and not self.cause:
            return None
        code = _CODES.get(self.error, self.error) or self.status
        refusal = parse_refusal(self.cause, code)
        message = refusal.message
        if len(message) > SHOWN_MESSAGE:
            message = message[:SHOWN_MESSAGE] + "..."
        return Failure(refusal.code, ": ".join(filter(None, (self.error, message))))


class Executions(Protocol):
    """The executions of the pipeline's state machine."""

    def describe(self, execution: str) -> Execution:
        """The facts of an execution, by its ARN or its name."""

    def start(self, name: str, directory: JobDirectory, reason: Reason = NO_REASON) -> str | None:
        """Start one for the job. Returns its ARN; None if one of that name was started before."""
