"""All that S3 and the ledger know of one job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from s3commit.cli.job.locate import Located
from s3commit.cli.job.waiting import LockStatus
from s3commit.cli.session import Session
from s3commit.core.formats.documents import (
    MAX_JOB_BYTES,
    MAX_REQUEST_BYTES,
    MAX_RESULT_BYTES,
    decode_job,
    decode_request,
    decode_result,
)
from s3commit.core.formats.layout import (
    PENDINGSET_SUFFIX,
    JobDirectory,
    belongs_to_job,
)
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError
from s3commit.core.model.job import AbortRequest, CommitRequest, Failure, JobResult, JobSpec, Names
from s3commit.core.model.record import JobRecord, ReplacedFacts
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ownership.named_uploads import uploads_named
from s3commit.core.ports.executions import Execution
from s3commit.core.ports.objects import OpenUpload

SCANNED_UPLOADS = 20_000  # of the destination: 20 requests, then `show` stops counting
REQUESTED = "REQUESTED"  # S3 alone knows no more between the driver's word and the outcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """What the ledger noted of the attempts whose manifests arrived."""

    attempts: int
    tasks: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """One job as it stands. What is None is not there, or not known without the ledger.

    ``manifests`` are keys; ``problems`` say which documents could not be read, and why.
    ``uploads_complete`` is False if counting stopped before the end of the listing. ``locks``
    and ``execution_found`` are None unless `show` has asked.
    """

    located: Located
    record: JobRecord | None
    progress: Progress | None
    spec: JobSpec | None
    request: CommitRequest | AbortRequest | None
    request_stands: bool
    result: JobResult | None
    committed: bool
    manifests: tuple[str, ...]
    uploads: tuple[OpenUpload, ...]
    uploads_complete: bool
    problems: tuple[str, ...]
    locks: LockStatus | None = None
    execution_found: Execution | None = None

    @property
    def execution_status(self) -> str | None:
        """The status of the execution that the job is in the hands of; None if not known."""
        return self.execution_found.status if self.execution_found is not None else None

    @property
    def execution_failure(self) -> Failure | None:
        """Why that execution failed; None if it did not, or has nothing to say."""
        return self.execution_found.failure if self.execution_found is not None else None

    @property
    def directory(self) -> JobDirectory:
        """Where the job lies."""
        return self.located.directory

    @property
    def directories(self) -> tuple[JobDirectory, ...]:
        """The job's directories: where it lies, then those at its locations."""
        plan = self.record.plan if self.record else None
        locations = plan.locations if plan else self.spec.locations if self.spec else {}
        return (self.directory, *map(self.directory.at, locations.values()))

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
    def of_s3a(self) -> bool:
        """Whether Hadoop's own committer wrote it, and nobody else has said anything of it."""
        of_tasks = (key.startswith(self.directory.s3a) for key in self.manifests)
        return self.spec is None and not self.request_stands and any(of_tasks)

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
    def policy(self) -> JobSpec | None:
        """What the client said, or of that what the ledger keeps; None if neither is known."""
        record = self.record
        if self.spec is not None or record is None:
            return self.spec
        return JobSpec(
            job_id=record.job_id,
            destination=record.destination,
            conflict=record.conflict,
            scope=record.scope,
            partition_by=record.partition_by,
            idempotency_key=record.idempotency_key,
            names=record.names,
        )

    @property
    def names(self) -> Names:
        """How its files are named; without `job.json` as S3A names them."""
        return self.policy.names if self.policy is not None else Names.EXACT

    @property
    def replaced(self) -> ReplacedFacts | None:
        """The replace list, which the ledger alone knows."""
        return self.record.replaced if self.record is not None else None


class _Reader:
    """Reads documents of one job directory, and keeps what is wrong with them."""

    def __init__(self, session: Session, directory: JobDirectory) -> None:
        self._store = session.store
        self._directory = directory
        self.problems: list[str] = []

    def read(self, key: str, max_bytes: int, decode: Callable[[bytes], T]) -> T | None:
        try:
            return decode(self._store.get(self._directory.bucket, key, max_bytes=max_bytes).body)
        except NotFoundError as error:
            if error.code != NotFoundError.code:  # the bucket is not there
                raise
        except InvalidInputError as error:
            name = key.rsplit("/", 1)[-1]
            self.problems.append(f"{name} can not be read: {error.message} [{error.code}]")
        return None


def read_snapshot(session: Session, located: Located) -> JobSnapshot:
    """Read all of a job: five reads, and the listing of its directories.

    Raises `NotFoundError` (``NO_JOB``) if nothing is known of it.
    """
    directory, store = located.directory, session.store
    record = located.record()
    keys = [found.key for found in store.list(directory.bucket, directory.prefix)]
    reader = _Reader(session, directory)
    snapshot = JobSnapshot(
        located=located,
        record=record,
        progress=read_progress(located) if record else None,
        spec=reader.read(directory.job, MAX_JOB_BYTES, lambda body: decode_job(body, directory)),
        request=reader.read(
            directory.request, MAX_REQUEST_BYTES, lambda body: decode_request(body, directory)
        ),
        request_stands=directory.request in keys,
        result=reader.read(directory.result, MAX_RESULT_BYTES, decode_result),
        committed=store.head(directory.bucket, directory.commits) is not None,
        manifests=(),
        uploads=(),
        uploads_complete=True,
        problems=tuple(reader.problems),
    )
    if record is None and not keys and not snapshot.committed:
        raise no_job(located)
    for other in snapshot.directories[1:]:
        keys += [found.key for found in store.list(other.bucket, other.prefix)]
    return replace(
        snapshot,
        manifests=tuple(key for key in keys if key.endswith(PENDINGSET_SUFFIX)),
    )


def no_job(located: Located) -> NotFoundError:
    """The error of a job of which there is no trace."""
    return NotFoundError(
        f"no job {located.directory.job_id} at {located.directory.destination.uri}: check the id"
        " and the place",
        code="NO_JOB",
    )


def read_outcome(session: Session, located: Located) -> JobResult | None:
    """``result.json``, if it is there yet.

    Without s3:ListBucket, S3 answers 403 for an object that is not there.
    """
    directory = located.directory
    try:
        stored = session.store.get(directory.bucket, directory.result, max_bytes=MAX_RESULT_BYTES)
    except AccessError:
        return None
    except NotFoundError as error:
        if error.code != NotFoundError.code:
            raise
        return None
    return decode_result(stored.body, directory)


def own_uploads(session: Session, snapshot: JobSnapshot) -> Iterator[OpenUpload]:
    """The job's open uploads: by its id in the file name; by manifests and notes of exact names."""
    return _own(session, snapshot, _uploads(session, snapshot))


def some_uploads(session: Session, snapshot: JobSnapshot) -> tuple[tuple[OpenUpload, ...], bool]:
    """The job's open uploads among the first of its places', and whether those were all."""
    scanned = list(islice(_uploads(session, snapshot), SCANNED_UPLOADS + 1))
    mine = tuple(_own(session, snapshot, scanned[:SCANNED_UPLOADS]))
    return mine, len(scanned) <= SCANNED_UPLOADS


def _uploads(session: Session, snapshot: JobSnapshot) -> Iterator[OpenUpload]:
    """Every open upload where the job writes."""
    for directory in snapshot.directories:
        yield from session.store.list_uploads(directory.bucket, directory.destination.prefix)


def _own(
    session: Session, snapshot: JobSnapshot, uploads: Iterable[OpenUpload]
) -> Iterator[OpenUpload]:
    if snapshot.names is Names.UNIQUE:
        yield from (one for one in uploads if belongs_to_job(one.key, snapshot.directory.job_id))
        return
    ports = session.ports(session.store, None)
    named = {one for at in snapshot.directories for one in uploads_named(ports, at)}
    yield from (one for one in uploads if (one.key, one.upload_id) in named)


def read_progress(located: Located) -> Progress | None:
    """Count the attempts whose manifests the ledger has; None without a ledger."""
    if located.ledger is None:
        return None
    attempts = files = total = 0
    tasks: set[str] = set()
    for attempt in located.ledger.attempts(located.directory.ref):
        attempts += 1
        tasks.add(attempt.task_id)
        files += attempt.files
        total += attempt.bytes
    return Progress(attempts, len(tasks), files, total)
