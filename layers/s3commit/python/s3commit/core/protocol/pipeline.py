"""What every step has at hand, and the few moves that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from s3commit.core.documents import MAX_JOB_BYTES, decode_job
from s3commit.core.errors import (
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    TransientError,
)
from s3commit.core.jsontext import TOO_LARGE
from s3commit.core.layout import JobDirectory, parse_manifest_key
from s3commit.core.ledger import Ledger, LostRaceError
from s3commit.core.manifest import (
    MAX_MANIFEST_BYTES,
    SMALL_MANIFEST_BYTES,
    decode_pendingset,
    digest,
)
from s3commit.core.model import JobRecord, JobSpec, Names, PendingSet
from s3commit.core.plan import MAX_PLAN_BYTES, Unit, decode_plan
from s3commit.core.ports import Clock, ObjectStore
from s3commit.core.published import (
    MAX_COMMITS_BYTES,
    MAX_LINE_BYTES,
    CommitHeader,
    CommittedFile,
    decode_commit_header,
    decode_commit_manifest,
)
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket

JOB_CHANGED = "JOB_CHANGED"
PLAN_CHANGED = "PLAN_CHANGED"


class ParallelMap(Protocol):
    """``map`` with several workers: results in any order, memory bounded, first error raised."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Apply ``function`` to each item."""
        ...


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The ports that the steps work on. ``parallel`` is sequential unless an adapter says else.

    ``replace_below`` are the prefixes below which jobs may replace what is there, each with its
    ``/`` at the end; the empty one allows it everywhere, none at all nowhere.
    """

    store: ObjectStore
    ledger: Ledger
    clock: Clock
    parallel: ParallelMap = field(default=map)
    replace_below: tuple[str, ...] = ("",)


def read_spec(pipeline: Pipeline, place: JobDirectory) -> JobSpec:
    """The job's ``job.json``; without one (stock S3A) the job appends to where it lies.

    Stock S3A's file names carry another id than the job's, or none. ``sha256`` is empty then.

    Raises `InvalidInputError` if there is one and it is not acceptable.
    """
    try:
        stored = pipeline.store.get(place.bucket, place.job, max_bytes=MAX_JOB_BYTES)
    except NotFoundError:
        return JobSpec(place.job_id, place.destination, names=Names.EXACT)
    return replace(decode_job(stored.body, place), put_at=stored.facts.modified)


def read_spec_of(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> JobSpec:
    """As `read_spec`, if it is what it was when the job was first heard of.

    Without its ``job.json`` a job would pass for one of S3A's, which has no conditions. Raises
    `JobRefusedError` (``JOB_CHANGED``).
    """
    spec = read_spec(pipeline, place)
    now = (spec.names, spec.conflict, spec.scope, spec.idempotency_key)
    same = now == (record.names, record.conflict, record.scope, record.idempotency_key)
    if not same or record.job_sha256 not in {None, spec.sha256}:
        raise JobRefusedError(
            "job.json is gone, or not what it was when the job began", code=JOB_CHANGED
        )
    return spec


def new_record(spec: JobSpec, place: JobDirectory, now: str) -> JobRecord:
    """The ledger's first record of a job."""
    return JobRecord(
        job_id=place.job_id,
        destination=place.destination,
        directory=place.prefix,
        state=JobState.OPEN,
        generation=first_generation(now),
        created_at=now,
        updated_at=now,
        conflict=spec.conflict,
        scope=spec.scope,
        partition_by=spec.partition_by,
        idempotency_key=spec.idempotency_key,
        names=spec.names,
        job_sha256=spec.sha256,
        opened_at=spec.put_at,
    )


def first_generation(created_at: str) -> int:
    """The generation of a record that is made at a moment: its seconds since 1970.

    Had each record begun at 0, then a worker that still holds a number of before the ledger was
    lost would be let in by the job's next record. No job is taken over once a second.
    """
    return int(datetime.fromisoformat(created_at).timestamp())


def takeovers(record: JobRecord) -> int:
    """How many executions have taken the job over since its record was made."""
    return max(0, record.generation - first_generation(record.created_at))


def own_record(pipeline: Pipeline, ticket: Ticket, *expected: JobState) -> JobRecord:
    """The job's record, if it is in an expected state and under the ticket's generation.

    Raises `LostRaceError` otherwise: another execution goes on with the job, this one must stop.
    """
    record = pipeline.ledger.job(ticket.ref)
    if record is None or record.generation != ticket.generation or record.state not in expected:
        raise LostRaceError(f"job {ticket.job_id} has moved on without this execution", record)
    return record


def planned_record(pipeline: Pipeline, ticket: Ticket, *expected: JobState) -> JobRecord:
    """As `own_record`, if the plan too is the one that this execution has verified.

    A request that names no attempts counts what is there: a late try of VerifyManifests may note
    another plan, while locks and replace list are still those of the first. Raises `LostRaceError`.
    """
    record = own_record(pipeline, ticket, *expected)
    if record.plan is None or ticket.place.plan(record.plan.sha256) != ticket.plan:
        raise LostRaceError(f"job {ticket.job_id} has another plan than this execution", record)
    return record


@contextmanager
def beside_twins(ticket: Ticket) -> Iterator[None]:
    """Turn a race lost against a twin of the same step into `TransientError`: run it again.

    A try that was given up (its answer was lost, or late) may still run. If it is faster than the
    one that is listened to, that one must not give the job up as another execution's: nobody
    would go on with it. Run again, the step finds what its twin has done.
    """
    try:
        yield
    except LostRaceError as error:
        found = error.found
        if found is None or not ticket.execution or found.execution != ticket.execution:
            raise
        raise TransientError(f"a twin of this step was faster: {error.message}") from error


@contextmanager
def unless_overtaken(pipeline: Pipeline, ticket: Ticket, *expected: JobState) -> Iterator[None]:
    """What is missing may be so because another execution has ended the job and tidied up.

    Then `LostRaceError` is raised, which ends this one in peace.
    """
    try:
        yield
    except (JobRefusedError, NotFoundError):
        own_record(pipeline, ticket, *expected)
        raise


def read_commit_manifest(
    pipeline: Pipeline, place: JobDirectory
) -> tuple[CommitHeader, list[CommittedFile]]:
    """The job's manifest in ``_commits/``, whole: a gigabyte has no room in a function.

    Raises `NotFoundError`, `InvalidInputError`.
    """
    stored = pipeline.store.get(place.bucket, place.commits, max_bytes=MAX_COMMITS_BYTES)
    return decode_commit_manifest(stored.body)


def read_commit_header(pipeline: Pipeline, place: JobDirectory) -> CommitHeader:
    """How the job's manifest in ``_commits/`` begins. Raises as `read_commit_manifest`."""
    return decode_commit_header(
        pipeline.store.first_bytes(place.bucket, place.commits, MAX_LINE_BYTES)
    )


def each_manifest(
    pipeline: Pipeline, read: Callable[[Any, int], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """``read(item, max_bytes)`` of each item, many side by side where the manifests are small.

    The large ones, which ``read`` refuses at first with ``TOO_LARGE``, come after that, one at a
    time: so memory is that of one, however many of them a job has, and whoever wrote them. Results
    come in any order.
    """
    later: list[Any] = []

    def read_small(item: Any) -> Any:
        try:
            return read(item, SMALL_MANIFEST_BYTES)
        except (InvalidInputError, JobRefusedError) as error:
            if error.code != TOO_LARGE:
                raise
            later.append(item)
            return later

    for result in pipeline.parallel(read_small, items):
        if result is not later:
            yield result
    for item in later:
        yield read(item, MAX_MANIFEST_BYTES)


def read_manifest(
    pipeline: Pipeline,
    place: JobDirectory,
    name: str,
    sha256: str,
    *,
    names: Names,
    max_bytes: int = MAX_MANIFEST_BYTES,
) -> PendingSet:
    """The manifest ``name`` (relative to the directory), as the request or plan names it.

    Raises `JobRefusedError`: ``MANIFEST_MISSING``, ``MANIFEST_CHANGED`` (other bytes than the
    task wrote), or the codec's code.
    """
    try:
        stored = pipeline.store.get(place.bucket, place.prefix + name, max_bytes=max_bytes)
    except NotFoundError:
        raise JobRefusedError(f"manifest {name} is not there", code="MANIFEST_MISSING") from None
    except InvalidInputError as error:
        raise JobRefusedError(error.message, code=error.code) from error
    if digest(stored.body) != sha256:
        raise JobRefusedError(
            f"manifest {name} has changed since its task wrote it", code="MANIFEST_CHANGED"
        )
    try:
        pending = decode_pendingset(stored.body, place, names=names)
        _, task_id, attempt_id = parse_manifest_key(place.bucket, place.prefix + name)
    except InvalidInputError as error:
        raise JobRefusedError(f"manifest {name}: {error.message}", code=error.code) from error
    return _with_ids(pending, place.job_id, task_id, attempt_id)


def read_plan(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> list[Unit]:
    """The plan that the ledger names; another one is not acted on.

    Raises `NotFoundError`, and `JobRefusedError` (``PLAN_CHANGED``).
    """
    decided = record.plan.sha256 if record.plan else ""
    try:
        stored = pipeline.store.get(place.bucket, place.plan(decided), max_bytes=MAX_PLAN_BYTES)
    except InvalidInputError as error:
        raise JobRefusedError(error.message, code=PLAN_CHANGED) from error
    if digest(stored.body) != decided:
        raise JobRefusedError("the plan is not the one that was decided", code=PLAN_CHANGED)
    return decode_plan(stored.body)


def _with_ids(pending: PendingSet, job_id: str, task_id: str, attempt_id: str) -> PendingSet:
    """Fill in the ids that the manifest's place gives; refuse a manifest that says others."""
    for said_task, said_attempt in [
        (pending.task_id, pending.attempt_id),
        *((file.task_id, file.attempt_id) for file in pending.files),
    ]:
        if said_task not in {"", task_id} or said_attempt not in {"", attempt_id}:
            raise JobRefusedError(
                f"the manifest of task {task_id}, attempt {attempt_id}, says that it is of"
                f" {said_task[:80]!r}, {said_attempt[:80]!r}",
                code="WRONG_JOB",
            )
    files = tuple(
        replace(file, job_id=job_id, task_id=task_id, attempt_id=attempt_id)
        for file in pending.files
    )
    return PendingSet(job_id, files, task_id, attempt_id, pending.task_count)
