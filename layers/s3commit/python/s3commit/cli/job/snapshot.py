"""All that S3 and the ledger know of one job."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from s3commit.cli.arguments import JOB, Located, destination_option, locate
from s3commit.cli.job.waiting import LockStatus
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import age
from s3commit.cli.verb import table_option
from s3commit.core.formats.documents import (
    MAX_JOB_BYTES,
    MAX_REQUEST_BYTES,
    MAX_RESULT_BYTES,
    decode_job,
    decode_request,
    decode_result,
)
from s3commit.core.formats.layout import PENDINGSET_SUFFIX, JobDirectory
from s3commit.core.job.stored_job import read_document, result_document
from s3commit.core.model.errors import (
    AccessError,
    NotFoundError,
    OutcomeUnknownError,
    TransientError,
)
from s3commit.core.model.job import (
    AbortRequest,
    CommitRequest,
    Destination,
    Failure,
    JobResult,
    JobSpec,
)
from s3commit.core.model.record import JobRecord, ReplacedFacts
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ownership.named_uploads import uploads_of_job
from s3commit.core.ports.executions import Execution
from s3commit.core.ports.objects import OpenUpload
from s3commit.writer.requests import Patience

LONG_AGO = "1970"
REQUESTED = "REQUESTED"  # S3 alone knows no more between the driver's word and the outcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot(Located):
    """One job as it stands. What is None is not there, or not known without the ledger.

    ``noted`` is what the ledger has of the attempts whose manifests arrived, by `read_progress`.
    ``manifests`` are keys; ``problems`` say which documents could not be read, and why.
    ``uploads_complete`` is False if counting stopped before the end of the listing. ``uploads``,
    ``locks`` and ``execution_found`` are empty unless `show` has asked.
    """

    record: JobRecord | None
    noted: dict[str, int] | None
    spec: JobSpec | None
    request: CommitRequest | AbortRequest | None
    request_stands: bool
    result: JobResult | None
    committed: bool
    problems: tuple[str, ...]
    manifests: tuple[str, ...] = ()
    uploads: tuple[OpenUpload, ...] = ()
    uploads_complete: bool = True
    locks: LockStatus | None = None
    execution_found: Execution | None = None

    @property
    def request_uri(self) -> str:
        """Where its request stands, or would."""
        return f"s3://{self.directory.bucket}/{self.directory.request}"

    @property
    def state(self) -> str:
        """The ledger's state, or what S3 alone tells: OPEN, REQUESTED, PUBLISHING or the end."""
        if self.result is not None:
            return self.result.outcome.value
        if self.record is not None:
            return self.record.state.value
        if self.committed:
            return JobState.PUBLISHING.value
        return REQUESTED if self.request_stands else JobState.OPEN.value

    @property
    def ended(self) -> bool:
        """Whether no word can change the outcome any more, by whatever knows it."""
        gone_on = self.record is not None and self.record.state in ENDED
        return gone_on or self.result is not None or self.committed

    @property
    def execution(self) -> str:
        """The execution that the job is, or was, in the hands of; empty if there is none."""
        if self.record is not None and self.record.execution:
            return self.record.execution
        return self.result.execution if self.result is not None else ""

    @property
    def failure(self) -> Failure | None:
        """Why it is not committed."""
        if self.result is not None:
            return self.result.error
        return self.record.failure if self.record is not None else None

    @property
    def policy(self) -> JobSpec | JobRecord | None:
        """What the client said, or what the ledger keeps of that; None if neither is known."""
        return self.spec or self.record

    @property
    def opened_at(self) -> str:
        """When S3 got its ``job.json``, by the ledger; empty if it has none.

        S3 alone does not tell: the document may have been put again, as it was.
        """
        noted = self.record.opened_at if self.record else ""
        return noted or (LONG_AGO if self.spec else "")

    @property
    def replaced(self) -> ReplacedFacts | None:
        """The replace list, which the ledger alone knows."""
        return self.record.replaced if self.record is not None else None


def read_snapshot(session: Session, located: Located) -> JobSnapshot:
    """Read all of a job: five reads, and the listing of its directory.

    Raises `NotFoundError` (``NO_JOB``) if nothing is known of it.
    """
    directory, store = located.directory, session.store
    record = located.read_record()
    keys = [found.key for found in store.list(directory.bucket, directory.prefix)]

    problems: list[str] = []

    def read(key: str, limit: int, decode: Callable[[bytes, JobDirectory], T]) -> T | None:
        found = read_document(
            lambda: decode(store.get(directory.bucket, key, max_bytes=limit).body, directory)
        )
        if found.error is not None:
            name = key.rsplit("/", 1)[-1]
            problems.append(f"{name} can not be read: {found.error.message} [{found.error.code}]")
        return found.value

    snapshot = JobSnapshot(
        name=located.name,
        directory=directory,
        ledger=located.ledger,
        record=record,
        noted=read_progress(located) if record else None,
        spec=read(directory.job, MAX_JOB_BYTES, decode_job),
        request=read(directory.request, MAX_REQUEST_BYTES, decode_request),
        request_stands=directory.request in keys,
        result=read(directory.result, MAX_RESULT_BYTES, decode_result),
        committed=store.head(directory.bucket, directory.commits) is not None,
        problems=tuple(problems),
    )
    if record is None and not keys and not snapshot.committed:
        raise NotFoundError(
            f"no job {directory.job_id} at {directory.destination.uri}: check the id and the place",
            code="NO_JOB",
        )
    manifests = tuple(key for key in keys if key.endswith(PENDINGSET_SUFFIX))
    return replace(snapshot, manifests=manifests)


def read_outcome(session: Session, directory: JobDirectory) -> JobResult | None:
    """``result.json``, if it is there yet.

    Without s3:ListBucket, S3 answers 403 for an object that is not there.
    """
    try:
        found = result_document(session.ports(session.store, None), directory)
    except AccessError:
        return None
    if found.error is not None:
        raise found.error
    return found.value


def await_outcome(session: Session, directory: JobDirectory, timeout: float) -> JobResult:
    """Wait for the job's result. Raises `OutcomeUnknownError` after ``timeout`` seconds."""
    patience = Patience(session.environment, timeout)
    while True:
        trouble = ""
        try:
            if result := read_outcome(session, directory):
                return result
        except TransientError as error:
            trouble = f" ({error.message})"
        if not patience.pause():
            raise OutcomeUnknownError(
                f"job {directory.job_id} has not ended after {age(timeout)}{trouble} and continues;"
                f" see: s3commit show --follow {directory.uri}"
            )


def open_uploads(session: Session, snapshot: JobSnapshot) -> Iterator[OpenUpload]:
    """Every open upload at the job's destination, its own or another's."""
    directory = snapshot.directory
    return session.store.list_uploads(directory.bucket, directory.destination.prefix)


def own_uploads(
    session: Session, snapshot: JobSnapshot, uploads: Iterable[OpenUpload]
) -> Iterator[OpenUpload]:
    """The job's of them, by the rule of the sweep and of an abort."""
    ports = session.ports(session.store, None)
    return uploads_of_job(ports, snapshot.directory, snapshot.opened_at, uploads)


def read_progress(located: Located) -> dict[str, int] | None:
    """Count the attempts whose manifests the ledger has; None without a ledger."""
    if located.ledger is None:
        return None
    counted = {"attempts": 0, "tasks": 0, "files": 0, "bytes": 0}
    tasks: set[str] = set()
    for attempt in located.ledger.attempts(located.directory.ref):
        tasks.add(attempt.task_id)
        counted["attempts"] += 1
        counted["files"] += attempt.files
        counted["bytes"] += attempt.bytes
    return {**counted, "tasks": len(tasks)}


def on_job(metavar: str = "JOB") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A job by argument, ``--table`` and ``--destination``: the function gets its `JobSnapshot`."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(
            session: Session,
            printer: Printer,
            *,
            job: JobDirectory | str,
            table: str | None,
            destination: Destination | None,
            **parameters: Any,
        ) -> None:
            snapshot = read_snapshot(session, locate(session, job, table, destination))
            function(session, printer, snapshot=snapshot, **parameters)

        argument = click.argument("job", metavar=metavar, type=JOB)
        return argument(table_option(destination_option(run)))

    return decorate
