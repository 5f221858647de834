"""The actions of a sweep: start an execution, request an abort, delete documents. Nothing else.

An action knows all that it needs, so a dry run is the list of the actions that the sweep would
carry out. The report counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Final

from s3commit.core.documents.request_json import AbortRequest, encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import member_name, one_line
from s3commit.core.jobs.rounds import start_execution
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import Executions
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

    def add(self, done: SweepReport) -> None:
        """Count what was done for one job."""
        self.started += done.started
        self.tidying += done.tidying
        self.aborted += done.aborted
        self.retired += done.retired
        self.objects += done.objects

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


@dataclass(frozen=True, slots=True)
class Action:
    """Something to be done for one job; two are equal if they do the same for the same job.

    ``line`` is the action and its reason, for people; ``counts`` is what it adds to the report.
    ``carry_out`` does it, and says False if another sweep was faster.
    """

    what: str
    directory: JobDirectory
    line: str = field(compare=False)
    counts: SweepReport = field(compare=False)
    carry_out: Callable[[Ports, Executions], bool] = field(compare=False)


def starting(directory: JobDirectory, due: str, why: str, *, tidies: bool) -> Action:
    """Start an execution for the job, which fell due at that moment.

    It ``tidies`` if the job has its result, and has left something. Two sweeps that see the same
    start one.
    """

    def carry_out(_ports: Ports, executions: Executions) -> bool:
        return start_execution(executions, directory, due) is not None

    line = f"{_job(directory)}: {why}; an execution starts"
    counts = SweepReport(started=1, tidying=int(tidies))
    return Action(f"start {due}", directory, line, counts, carry_out)


def aborting(directory: JobDirectory, last: str, reason: str) -> Action:
    """Request the abort of a job that is abandoned; a driver that wakes finds that request.

    ``last`` is its last sign of life.
    """

    def carry_out(ports: Ports, _executions: Executions) -> bool:
        body = encode_request(AbortRequest(directory.job_id, reason, abandoned=True))
        ports.store.put(directory.bucket, directory.request, body, if_absent=True)
        return True

    why = reason.partition(",")[0].partition(":")[0]
    line = f"{_job(directory)}: {why}, no sign of life since {last}; its abort is requested"
    return Action("abort", directory, line, SweepReport(aborted=1), carry_out)


def retiring(
    directory: JobDirectory, documents: Sequence[ListedObject], record: JobRecord | None
) -> Action:
    """Delete a job's documents, in that order; ``record`` is the ledger's, if it has one.

    A document that was replaced since stays.
    """

    def carry_out(ports: Ports, _executions: Executions) -> bool:
        for one in documents:
            with suppress(PreconditionError):
                ports.store.delete(directory.bucket, one.key, if_match=one.etag)
        if record is not None:
            ports.ledger.unlist(record.ref)
        return True

    line = f"{_job(directory)}: its documents are past their time and go"
    counts = SweepReport(retired=1, objects=len(documents))
    return Action("retire", directory, line, counts, carry_out)


def _job(directory: JobDirectory) -> str:
    return f"job {directory.job_id} at {directory.destination.uri}"
