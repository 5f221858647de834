"""The ticket: what one execution of the state machine carries from step to step.

Small and bounded, whatever the job's size: everything else is read from S3 and the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, NamedTuple

from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.pages import Unit
from s3commit.core.documents.pendingset import PendingFile
from s3commit.core.documents.request_json import CommitRequest
from s3commit.core.formats.codec import Codec, Form
from s3commit.core.formats.layout import JobDirectory, parse_directory
from s3commit.core.formats.refusal import parse_refusal
from s3commit.core.formats.strict_json import member_name
from s3commit.core.model.destination import JobId
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import SPARSE, Name, Several, Text
from s3commit.core.model.limits import UNITS_OF_A_JOB
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.executions import NO_REASON, Reason
from s3commit.core.ports.objects import StoredObject

Marker = tuple[str | None, str | None]  # the etag of what is at ``_SUCCESS``, and its job


class Found(NamedTuple):
    """The objects that were there before; ``few`` are the files of a small job."""

    few: list[PendingFile]
    decision: StoredObject | None
    marker: Marker


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that a call has read or written itself: its later steps do not read them again.

    The ledger lacks the plan of ``record`` while it ``is_unnoted``: the decision notes it. ``keys``
    are those of a small plan, page by page; ``taken`` is one that an object has, empty if none
    has. ``manifests`` are the first that the request counts, not judged yet. ``is_healed``: the
    ledger was whole in this call.
    """

    record: JobRecord | None = None
    is_unnoted: bool = False
    spec: JobSpec | None = None
    request: CommitRequest | None = None
    manifests: list[bytes] | None = None
    keys: list[list[str]] | None = None
    taken: str | None = None
    is_healed: bool = False
    found: Found | None = None


UNKNOWN: Final = Known()


@dataclass(frozen=True, slots=True)
class Ticket:
    """One execution's view of a job; ``generation`` is the one that its writes are fenced by.

    People see it in the console, as what a state was given and returned: it begins with the job,
    where it writes, and how far it is.
    ``replaces`` says that there are files to remove when the job's own are visible.
    ``acquired`` says that the job has its locks, or needs none; else it waits for other jobs.
    ``pause`` is for how many seconds the machine waits before the step, or its state, comes again.
    ``few`` is the whole plan of a small job, as long as it was not tried to complete it.
    ``workers`` are as many as its Map may have: to Step Functions 0 would mean any number.
    ``plan`` is the key of the plan's index. ``page`` is where a step that hands over to another
    call resumes: RemoveReplaced with that page of the replace list, RollBack of the plan; of
    TidyUp only whether it does. ``looks`` counts the rounds in which completions were denied.
    ``event`` is what the last state sends. ``gives_up``: a person gives the job up, unless it is
    decided, and says why; with ``lists_lost`` a decided one too, if a list of it is lost.
    ``requested_by`` is the principal that put the request, by S3's event. ``known`` never leaves
    its call.
    """

    job_id: JobId
    bucket: Annotated[str, Text(80)]
    prefix: Annotated[str, Name("directory")]
    state: JobState = JobState.OPEN
    outcome: str = ""
    code: str = ""
    files: int = 0
    bytes: int = 0
    execution: str = ""
    generation: int = 0
    plan: str = ""
    units: int = 0
    few: Annotated[tuple[Unit, ...], Several(UNITS_OF_A_JOB)] = ()
    workers: int = 1
    replaces: bool = False
    acquired: bool = False
    pause: int = 0
    page: int = 0
    looks: int = 0
    completed: Annotated[tuple[UnitResult, ...], Several(100_000)] = ()
    refusal: Annotated[Failure | None, SPARSE] = None
    event: Annotated[Mapping[str, Any] | None, SPARSE] = None
    gives_up: Annotated[str, SPARSE] = ""
    lists_lost: Annotated[bool, SPARSE] = False
    requested_by: Annotated[str, SPARSE] = ""
    known: Known = field(default=UNKNOWN, repr=False, compare=False)

    @property
    def is_one_unit(self) -> bool:
        """True of a job that one call completes."""
        return len(self.few) == 1

    @property
    def directory(self) -> JobDirectory:
        """The job directory. Raises `InvalidInputError` if the ticket contradicts itself."""
        directory = parse_directory(self.bucket, self.prefix)
        if directory.job_id != self.job_id or directory.prefix != self.prefix:
            raise InvalidInputError(
                f"job {self.job_id!r} is not in {self.prefix!r}", code="WRONG_JOB"
            )
        return directory

    def after(self, record: JobRecord) -> Ticket:
        """The ticket with what the ledger now says of the job."""
        plan = record.plan
        return replace(
            self,
            generation=record.generation,
            state=record.state,
            plan=self.directory.index(plan.sha256) if plan else "",
            units=plan.units if plan else 0,
            files=plan.files if plan else 0,
            bytes=plan.bytes if plan else 0,
            replaces=record.replaced is not None and record.replaced.files > 0,
            outcome=record.state if record.state in ENDED else "",
            code=record.failure.code if record.failure else "",
            pause=0,
            known=replace(self.known, record=record),
        )


@dataclass(frozen=True, slots=True)
class UnitResult:
    """A worker's report on its unit: files visible, and files that are lost.

    ``why`` is of one that is lost: the code of the error, and S3's message, cut where the results
    of all units have no room for it.
    """

    unit: int
    files: int
    lost: int
    why: Annotated[str, SPARSE] = ""


UNIT_RESULT: Final = Codec(UnitResult)


def execution_input(directory: JobDirectory, reason: Reason = NO_REASON) -> dict[str, Any]:
    """The input that an execution is started with."""
    more = {member_name(one.name): getattr(reason, one.name) for one in fields(reason)}
    where = {"jobId": directory.job_id, "bucket": directory.bucket, "directory": directory.prefix}
    return where | {name: value for name, value in more.items() if value}


def encode_ticket(ticket: Ticket) -> dict[str, Any]:
    """The ticket as the state machine carries it.

    ``completed`` is filled by the Map, read by BeginPublish and never passed on, nor a refusal.
    """
    return _TICKET.write(replace(ticket, completed=(), refusal=None))


def decode_ticket(value: object, *, execution: str = "") -> Ticket:
    """Read a ticket or an execution's input. Raises `InvalidInputError`.

    A result that is null is a worker's failure that something swallowed: it is refused.
    """
    ticket = _TICKET.read(value)
    return replace(ticket, execution=execution or ticket.execution)


def _refusal(caught: Any) -> Failure:
    """The caught error of a step: Lambda puts its message, our code first, into ``Cause``."""
    cause = caught.get("Cause") if isinstance(caught, dict) else None
    found = parse_refusal(cause if isinstance(cause, str) else "")
    return found if found.message else replace(found, message="refused")


_TICKET: Final = Codec(
    Ticket,
    "ticket",
    # No step reads the event.
    forms={"refusal": Form(_refusal), "event": Form(lambda event: event)},
    unwritten={"known": UNKNOWN},
)
