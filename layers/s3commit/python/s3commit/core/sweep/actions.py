"""What a sweep may do: start an execution, ask for an abort, delete documents. Nothing else.

An action knows all that it needs, so a dry run is the list of the actions that the sweep would
carry out. The report counts them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Final, Protocol

from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import member_name, one_line
from s3commit.core.job.record import start_execution
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.job import AbortRequest
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Executions, Ports
from s3commit.core.ports.objects import ListedObject

MOST_NOTES: Final = 50
LINE: Final = 500  # characters
FAILED: Final = "failed: "  # how the line of a failure begins


@dataclass(slots=True)
class SweepReport:
    """Counts of a sweep.

    ``looked``: jobs and destinations that were looked at. ``started``: executions, and ``tidying``
    are those for what ended jobs have left. ``aborted``: abort requests put. ``retired``: jobs
    whose documents were deleted, and ``objects`` are those. ``broken``: a question could not be
    asked at all.
    """

    looked: int = 0
    started: int = 0
    tidying: int = 0
    aborted: int = 0
    retired: int = 0
    objects: int = 0
    failed: int = 0
    unsaid: int = 0
    broken: bool = False
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep a line for people, if there is room; ``unsaid`` counts those without."""
        self.notes.append(one_line(text, LINE))
        self._make_room()

    def fail(self, what: str, message: str) -> None:
        """Count a failure; its line comes before all others."""
        self.failed += 1
        self.notes.insert(0, one_line(f"{FAILED}{what}: {message}", LINE))
        self._make_room()

    def _make_room(self) -> None:
        if len(self.notes) > MOST_NOTES:
            self.notes.pop()
            self.unsaid += 1


def encode_report(report: SweepReport) -> dict[str, Any]:
    """The report as JSON."""
    return {member_name(one.name): getattr(report, one.name) for one in fields(report)}


class Action(Protocol):
    """Something to be done for one job; two are equal if they do the same for the same job."""

    @property
    def line(self) -> str:
        """The action and its reason, for people."""
        ...

    def carry_out(self, ports: Ports, executions: Executions) -> bool:
        """Do it; False if another sweep was faster."""
        ...

    def count(self, report: SweepReport) -> None:
        """Add it to the counts."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """Start an execution for the job, which fell due at that moment.

    It ``tidies`` if the job has its result, and has left something.
    """

    directory: JobDirectory
    due: str
    why: str = field(compare=False)
    tidies: bool = field(default=False, compare=False)

    @property
    def line(self) -> str:
        """See `Action.line`."""
        return f"{_job(self.directory)}: {self.why}; an execution starts"

    def carry_out(self, _ports: Ports, executions: Executions) -> bool:
        """See `Action.carry_out`. Two sweeps that see the same start one."""
        return start_execution(executions, self.directory, self.due) is not None

    def count(self, report: SweepReport) -> None:
        """See `Action.count`."""
        report.started += 1
        report.tidying += self.tidies


@dataclass(frozen=True, slots=True)
class Abort:
    """Ask for the abort of a job that is given up; a driver that wakes finds its place taken."""

    directory: JobDirectory
    last: str = field(compare=False)  # sign of life
    reason: str = field(compare=False)

    @property
    def line(self) -> str:
        """See `Action.line`."""
        return (
            f"{_job(self.directory)}: abandoned, no sign of life since {self.last}; its abort is"
            " asked for"
        )

    def carry_out(self, ports: Ports, _executions: Executions) -> bool:
        """See `Action.carry_out`. Raises `PreconditionError` if a request is there by now."""
        directory = self.directory
        body = encode_request(AbortRequest(directory.job_id, self.reason, abandoned=True))
        ports.store.put(directory.bucket, directory.request, body, if_absent=True)
        return True

    def count(self, report: SweepReport) -> None:
        """See `Action.count`."""
        report.aborted += 1


@dataclass(frozen=True, slots=True)
class Retire:
    """Delete a job's documents, in that order; ``record`` is the ledger's, if it has one."""

    directory: JobDirectory
    documents: tuple[ListedObject, ...] = field(compare=False)
    record: JobRecord | None = field(default=None, compare=False)

    @property
    def line(self) -> str:
        """See `Action.line`."""
        return f"{_job(self.directory)}: its documents are past their time and go"

    def carry_out(self, ports: Ports, _executions: Executions) -> bool:
        """See `Action.carry_out`. What has taken a document's place since stays."""
        for one in self.documents:
            with suppress(PreconditionError):
                ports.store.delete(self.directory.bucket, one.key, if_match=one.etag)
        if self.record is not None:
            ports.ledger.unlist(self.record.ref)
        return True

    def count(self, report: SweepReport) -> None:
        """See `Action.count`."""
        report.retired += 1
        report.objects += len(self.documents)


def _job(directory: JobDirectory) -> str:
    return f"job {directory.job_id} at {directory.destination.uri}"
