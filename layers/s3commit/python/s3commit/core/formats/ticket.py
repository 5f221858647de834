"""The ticket: what one execution of the state machine carries from step to step.

Small and bounded, whatever the job's size: everything else is read from S3 and the ledger.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from s3commit.core.formats.layout import JobDirectory, parse_directory
from s3commit.core.formats.strict_json import Fields, members, one_line
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Failure, Outcome
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState

_REFUSAL = re.compile(r"\[([A-Z][A-Z0-9_]*)\] (.*)", re.DOTALL)  # as `refusal_text` words it
_MESSAGE = re.compile(r'"errorMessage"\s*:\s*("(?:[^"\\]|\\.)*")')

OUTCOMES: dict[JobState, Outcome] = {
    JobState.COMMITTED: Outcome.COMMITTED,
    JobState.ABORTED: Outcome.ABORTED,
    JobState.ROLLED_BACK: Outcome.ROLLED_BACK,
}


@dataclass(frozen=True, slots=True)
class Ticket:
    """One execution's view of a job; ``generation`` is the one that its writes are fenced by.

    ``replaces`` says that there are files to remove when the job's own are visible.
    ``acquired`` says that the job holds what it claims, since it entered under ``epoch``; else it
    waits for the job ``behind``, by its ref, or for others as well.
    ``pause`` is for how many seconds the machine waits before the step, or its state, comes again.
    ``page`` is where a step that hands over to another call goes on: RemoveReplaced with that page
    of the replace list, RollBack with that portion of its work; 0 is the beginning.
    """

    job_id: str
    bucket: str
    prefix: str
    execution: str = ""
    generation: int = 0
    state: JobState = JobState.OPEN
    plan: str = ""
    units: int = 0
    files: int = 0
    bytes: int = 0
    replaces: bool = False
    acquired: bool = False
    epoch: int = 0
    pause: int = 0
    behind: str = ""
    page: int = 0
    outcome: str = ""
    code: str = ""
    completed: tuple[UnitResult, ...] = ()
    refusal: Failure | None = None

    @property
    def directory(self) -> JobDirectory:
        """The job directory. Raises `InvalidInputError` if the ticket contradicts itself."""
        directory = parse_directory(self.bucket, self.prefix)
        if directory.job_id != self.job_id or directory.prefix != self.prefix:
            raise InvalidInputError(
                f"job {self.job_id!r} does not lie in {self.prefix!r}", code="WRONG_JOB"
            )
        return directory

    @property
    def ref(self) -> str:
        """The job, as the ledger knows it."""
        return self.directory.ref

    def after(self, record: JobRecord) -> Ticket:
        """The ticket with what the ledger now says of the job."""
        plan = record.plan
        return replace(
            self,
            generation=record.generation,
            state=record.state,
            plan=self.directory.plan(plan.sha256) if plan else "",
            units=plan.units if plan else 0,
            files=plan.files if plan else 0,
            bytes=plan.bytes if plan else 0,
            replaces=record.replaced is not None and record.replaced.files > 0,
            outcome=OUTCOMES.get(record.state, ""),
            code=record.failure.code if record.failure else "",
            pause=0,
            completed=(),
            refusal=None,
        )


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What a worker says of its unit: files visible, and files that are gone for good."""

    unit: int
    files: int
    lost: int


def execution_input(directory: JobDirectory) -> dict[str, Any]:
    """What an execution is started with."""
    return {"jobId": directory.job_id, "bucket": directory.bucket, "directory": directory.prefix}


def encode_ticket(ticket: Ticket) -> dict[str, Any]:
    """The ticket as the state machine carries it."""
    return {
        **members(ticket, "prefix", "refusal"),
        "directory": ticket.prefix,
        "state": ticket.state.value,
        "outcome": str(ticket.outcome),
        "completed": [],  # filled by the Map, read by BeginPublish, never passed on
    }


def decode_ticket(value: object, *, execution: str = "") -> Ticket:
    """Read a ticket or an execution's input. Raises `InvalidInputError`."""
    fields = Fields(value, "$")
    return Ticket(
        job_id=fields.text("jobId", longest=80),
        bucket=fields.text("bucket", longest=80),
        prefix=fields.text("directory"),
        execution=execution or fields.text("execution", ""),
        generation=fields.integer("generation", 0),
        state=JobState(fields.text("state", JobState.OPEN)),
        plan=fields.text("plan", ""),
        units=fields.integer("units", 0),
        files=fields.integer("files", 0),
        bytes=fields.integer("bytes", 0),
        replaces=fields.value.get("replaces") is True,
        acquired=fields.value.get("acquired") is True,
        epoch=fields.integer("epoch", 0),
        pause=fields.integer("pause", 0),
        behind=fields.text("behind", ""),
        page=fields.integer("page", 0),
        outcome=fields.text("outcome", ""),
        code=fields.text("code", ""),
        completed=_completed(fields),
        refusal=_refusal(fields),
    )


def _completed(fields: Fields) -> tuple[UnitResult, ...]:
    if not fields.has("completed"):
        return ()
    # A result that is null is a worker's failure that something swallowed: refused here.
    return tuple(
        UnitResult(
            result.integer("unit"),
            result.integer("files"),
            result.integer("lost"),
        )
        for result in fields.objects("completed", most=100_000)
    )


def _refusal(fields: Fields) -> Failure | None:
    """The caught error of a step: Lambda puts its message, our code first, into ``Cause``."""
    if not fields.has("refusal"):
        return None
    cause = fields.mapping("refusal").get("Cause", "")
    found = parse_refusal(cause if isinstance(cause, str) else "")
    return found if found.message else replace(found, message="refused")


def refusal_text(code: str, message: str) -> str:
    """How a refusing handler words its error, for `parse_refusal` on the other side.

    Bounded: of a longer ``Cause`` than 32,768 characters Step Functions would keep a part.
    """
    return f"[{code}] {one_line(message)}"


def parse_refusal(cause: str, code: str = "REFUSED") -> Failure:
    """Read the code and message out of a failed Lambda call's ``Cause``; ``code`` if it has none.

    The cause of a step that raised is JSON with ``errorType``, ``errorMessage`` and ``stackTrace``:
    https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html. Of a longer one than 32,768
    characters Step Functions keeps a part.
    """
    text = _message_of(cause)
    refusal = _REFUSAL.fullmatch(text)
    if refusal is not None:
        return Failure(one_line(refusal[1], 100), one_line(refusal[2]))
    return Failure(code, one_line(" ".join(text.split()), 1000))


def _message_of(cause: str) -> str:
    try:
        found = json.loads(cause)
        return str(found["errorMessage"])
    except (ValueError, KeyError, TypeError):
        cut = _MESSAGE.search(cause)
        return str(json.loads(cut[1], strict=False)) if cut else cause
