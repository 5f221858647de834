"""One job as S3 and the ledger have it, for the verbs that look at it or end it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

import click

from s3commit.cli.options import NamedJob
from s3commit.cli.render import some
from s3commit.cli.session import Session
from s3commit.cli.short_ids import whole_id
from s3commit.core.documents.commit_manifest import CommitHeader, read_commit_header
from s3commit.core.documents.job_json import JobSpec, read_spec
from s3commit.core.documents.pendingset import MAX_MANIFEST_BYTES, PendingSet, decode_pendingset
from s3commit.core.documents.request_json import AbortRequest, CommitRequest, read_request
from s3commit.core.documents.result_json import JobResult, read_result, result_of
from s3commit.core.formats.layout import PENDINGSET_SUFFIX, REQUEST_FILE, RESULT_FILE, JobDirectory
from s3commit.core.jobs.ownership import uploads_of_job
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import NOT_READABLE, NotFoundError, PreconditionError, S3CommitError
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import OpenUpload, StoredObject, listed_at

REQUESTED = "REQUESTED"  # S3 alone knows no more between the request and the outcome
UNDECIDED = {JobState.OPEN, REQUESTED, JobState.SEALED, JobState.ABORTING}
LONG_AGO = "1970"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobFacts:
    """One job. A member is None if it is not there, can't be read, or only the ledger has it.

    ``name`` is what to type for the job in a next command, with ``where``, which holds for others
    of its ledger's ``table``; without one ``ledger`` is None. ``header`` is that of its list of
    committed files. ``problems`` say which documents can't be read, and why, by their names.
    """

    name: str
    where: str
    directory: JobDirectory
    table: str | None
    ledger: Ledger | None
    record: JobRecord | None
    spec: JobSpec | None
    request: CommitRequest | AbortRequest | None
    requested_at: str  # when S3 got the request, also one that can't be read; empty: there is none
    result: JobResult | None
    header: CommitHeader | None
    problems: dict[str, str]

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.directory.job_id

    @property
    def request_stands(self) -> bool:
        """True if there is a request."""
        return bool(self.requested_at)

    @property
    def state(self) -> str:
        """The ledger's state, or the one that S3 shows: OPEN, REQUESTED, PUBLISHING or the end."""
        if self.result is not None:
            return self.result.outcome.value
        if self.record is not None:
            return self.record.state.value
        if self.header is not None:
            return (JobState.PUBLISHING if self.request_stands else JobState.COMMITTED).value
        return REQUESTED if self.request_stands else JobState.OPEN.value

    @property
    def execution(self) -> str:
        """The execution that works on the job, or did; empty if there is none."""
        if self.record is not None and self.record.execution:
            return self.record.execution
        return self.result.execution if self.result is not None else ""

    @property
    def undoes(self) -> str:
        """The job that this one undoes, if committed not by what a client may put again."""
        known = self.header or self.record or (self.state != JobState.COMMITTED and self.spec)
        return known.undoes if known else ""

    @property
    def failure(self) -> Failure | None:
        """Why it is not committed."""
        if self.result is not None:
            return self.result.error
        return self.record.failure if self.record is not None else None

    @property
    def requested(self) -> str:
        """The action of the job's request.

        One that can't be read aborts a job that is not decided, and changes nothing for another.
        """
        if self.request is None:
            return "abort" if self.state in UNDECIDED else "commit"
        return "abort" if isinstance(self.request, AbortRequest) else "commit"

    @property
    def asked(self) -> str:
        """In words that it was; the pipeline may have read what can't be read here."""
        if REQUEST_FILE in self.problems and self.state in UNDECIDED:
            return "its request cannot be read here"
        return f"its {self.requested} was already requested"


def read_job(
    session: Session,
    directory: JobDirectory,
    table: str | None,
    typed: str = "",
    *,
    with_request: bool = True,
) -> JobFacts:
    """Read a job's record and its documents; a request may have 64 MiB.

    ``typed`` is how the caller typed the job. Raises `NotFoundError` (``NO_JOB``) if nothing is
    known of it.
    """
    ports, problems = session.s3, dict[str, str]()
    ledger = session.trusted_ledger(table)

    def read(key: str, decode: Callable[[], T]) -> T | None:
        if key not in {*put, directory.commits}:
            return None
        try:
            return decode()
        except NOT_READABLE as error:
            # Some answers do not tell an object that can't be read from none.
            if listed_at(ports.store, directory.bucket, key) is not None:
                name = key.rpartition("/")[2]
                problems[name] = unreadable(name, error)
            return None

    record = ledger.job(directory.ref) if ledger else None
    put = {one.key: one.modified for one in ports.store.below(directory.bucket, directory.prefix)}
    spec = read(directory.job, lambda: read_spec(ports, directory))
    reader = partial(read_request, ports, directory)
    request = read(directory.request, reader) if with_request else None
    result = read(directory.result, lambda: read_result(ports.store, directory))
    if result is not None and ledger is not None and record is not None:
        # It is put after the end: asked again the ledger knows that, or a stranger has put it.
        record = record if record.state in ENDED else ledger.job(directory.ref) or record
        if record.state.value != result.outcome.value:
            says = f"{RESULT_FILE} has {result.outcome}, the ledger {record.state}"
            problems[RESULT_FILE], result = f"{says}: the pipeline did not write it", None
    # Where there is a request, an ended job that has no result yet is not done.
    is_done = directory.request not in put or RESULT_FILE in problems
    if result is None and record is not None and record.state in ENDED and is_done:
        # The sweep deletes the documents of ended jobs, the jar those of undone ones.
        result = result_of(record, record.updated_at)
    found = JobFacts(
        name=(typed or directory.typed) + session.where,
        where=session.where,
        directory=directory,
        table=table,
        ledger=ledger,
        record=record,
        spec=spec,
        request=request,
        requested_at=put.get(directory.request, ""),
        result=result,
        header=read(directory.commits, lambda: read_commit_header(ports.store, directory)),
        problems=problems,
    )
    known = record or found.header or problems
    own = {directory.job, directory.request, directory.result, directory.tasks}
    if not known and own.isdisjoint(put):
        of_s3a = f"; if it is S3A's: s3commit rescue {directory.typed}"
        advice = of_s3a if put else ": check the ID and the destination"
        raise NotFoundError(
            f"no job {directory.job_id} at {directory.destination.uri}{advice}", code="NO_JOB"
        )
    return found


def unreadable(name: str, error: S3CommitError) -> str:
    """The line that says of a document why it can't be read."""
    return f"{name} cannot be read: {error.message} [{error.code}]"


def locate(session: Session, job: NamedJob) -> tuple[JobDirectory, str | None, str]:
    """The arguments of `read_job`, as they were typed, with whole ids. Raises as `whole_id`."""
    if isinstance(job, str) and (destination := session.typed.get("destination")):
        job = JobDirectory(destination, whole_id(session, job, destination))
    if isinstance(job, JobDirectory):
        return job, session.table_of(job), job.typed
    table = session.table(", or the job's place with --destination")
    if not table:
        raise click.UsageError(f"without a table, job {job} can only be found with --destination")
    job = whole_id(session, job, table)
    records = session.ledger(table).jobs_with_id(job)
    if len(records) > 1:
        places = some(record.destination.uri for record in records)
        raise click.UsageError(
            f"there are jobs with id {job} at {places}: name one with --destination"
        )
    if not records:
        raise NotFoundError(
            f"no job {job} in table {table}: check the id, or look for it in S3 with"
            " --destination (the ledger forgets ended jobs after a while)",
            code="NO_JOB",
        )
    return JobDirectory.of(records[0]), table, job


def kind_of(said: JobSpec | JobRecord | None, header: CommitHeader | None = None) -> str:
    """``append``, ``overwrite`` or ``undo``; of a job without documents by what it did."""
    keyed = said or header
    if keyed and keyed.undoes:
        return "undo"
    replaces = said.conflict is Conflict.REPLACE if said else bool(header and header.replaced)
    return "overwrite" if replaces else "append"


def read_manifests(
    session: Session, job: JobFacts, most: int | None = None
) -> tuple[list[str], bool]:
    """The keys of the job's manifests, and whether all were looked at.

    ``most`` bounds how many objects below its ``_tasks/`` are. One request for each 1,000.
    """
    listed = session.store.list(job.directory.bucket, job.directory.tasks)
    keys = [one.key for one in islice(listed, most) if one.key.endswith(PENDINGSET_SUFFIX)]
    return keys, next(listed, None) is None


def read_manifest(session: Session, job: JobFacts, key: str) -> tuple[PendingSet, StoredObject]:
    """A manifest, and its object. Raises as `decode_pendingset`."""
    directory = job.directory
    stored = session.store.get(directory.bucket, key, max_bytes=MAX_MANIFEST_BYTES)
    return decode_pendingset(stored.body, directory, key[len(directory.prefix) :]), stored


def own_uploads(
    session: Session, job: JobFacts, most: int | None = None
) -> tuple[list[OpenUpload], bool]:
    """The job's open uploads, by the rule of an abort, and whether all were looked at.

    ``most`` bounds how many open uploads of the destination are looked at, its own or another's.
    """
    directory = job.directory
    listed = session.store.list_uploads(directory.bucket, directory.destination.prefix)
    looked_at = listed if most is None else list(islice(listed, most))
    # S3 alone does not tell when it got _job.json: the document may have been put again, as it was.
    opened_at = job.record.opened_at if job.record else ""
    opened_at = opened_at or (LONG_AGO if job.spec else "")
    own = list(uploads_of_job(session.s3, directory, opened_at, looked_at))
    return own, next(listed, None) is None


def refuse_second_request(job: JobFacts) -> None:
    """Raise `PreconditionError` if the job has its request, or has ended."""
    if job.result is not None or job.state in ENDED:
        raise PreconditionError(f"job {job.job_id} is {job.state} already", code="JOB_ENDED")
    if job.request_stands or (job.header is not None and job.state not in UNDECIDED):
        raise PreconditionError(
            f"job {job.job_id} is {job.state}: {job.asked}, and decides; see: s3commit show"
            f" {job.name}",
            code="OTHER_REQUEST",
        )


def blockers(ledger: Ledger | None, record: JobRecord | None) -> list[JobRecord]:
    """The jobs that the job waits for, since ``record.waits.since``; none if it does not wait."""
    if not (ledger and record and record.waits and record.state is JobState.SEALED):
        return []
    others = (ledger.job(ref) for ref in record.waits.behind)
    return [other for other in others if other is not None and other.state not in ENDED]
