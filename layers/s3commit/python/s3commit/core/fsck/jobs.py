"""The jobs of a destination, each with what S3 and the ledger say of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from s3commit.core.formats.documents import (
    MAX_JOB_BYTES,
    MAX_RESULT_BYTES,
    decode_job,
    decode_main,
    decode_result,
)
from s3commit.core.formats.layout import (
    COMMITS,
    MAGIC_PREFIX,
    JobDirectory,
    check_job_id,
    parse_directory,
)
from s3commit.core.formats.published import CommitHeader
from s3commit.core.fsck.job_table import LIST_CONTRADICTS, RETIRED, judge_job
from s3commit.core.fsck.other_table import COPY, GOING_ON, LOCATION, SPEC_UNREADABLE
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.words import (
    Action,
    Commits,
    Record,
    Request,
    Result,
    Standing,
    Verdict,
)
from s3commit.core.job.documents import read_commit_header
from s3commit.core.job.locations import known_locations
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Conflict, Destination, JobResult, JobSpec, Names, Outcome
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState

LIST_SUFFIX: Final = ".jsonl"
FOREVER: Final = "9999-12-31T23:59:59.999Z"
WORKING: Final = frozenset(JobState) - ENDED
_PUBLISHED: Final = frozenset({JobState.PUBLISHING, JobState.COMMITTED})


@dataclass(slots=True)
class Traces:
    """Which of a job's objects are there, by the listings."""

    job: bool = False
    request: bool = False
    result: bool = False
    scratch: bool = False
    of_s3a: bool = False
    listed_at: str = ""  # when S3 has got the list in `_commits/`

    @property
    def listed(self) -> bool:
        """Whether there is a list in ``_commits/``."""
        return self.listed_at != ""

    @property
    def directory(self) -> bool:
        """Whether there is anything in the job's directory that the protocol knows."""
        return self.job or self.request or self.result or self.scratch or self.of_s3a


@dataclass(frozen=True, slots=True)
class Job:
    """One job: what is there of it, the row of the table that is true of it, and what follows.

    ``about`` says what kind of directory it is if it is no job of this place, or not a plain one.
    ``record`` is None if the ledger has none for a job at this place. ``locations`` are those that
    are known to be the job's (docs/adr/0013): what its list alone says is looked at, no more.
    """

    directory: JobDirectory
    verdict: Verdict
    standing: Standing
    names: Names
    record: JobRecord | None = None
    header: CommitHeader | None = None
    traces: Traces = field(default_factory=Traces)
    about: Verdict | None = None
    running: bool = False
    locations: Mapping[str, str] = field(default_factory=dict)
    unreadable: str = ""  # the name of the document, relative to the destination

    @property
    def is_in_doubt(self) -> bool:
        """Whether nothing of it is judged, since its documents contradict each other."""
        return self.standing is Standing.IN_DOUBT

    @property
    def directories(self) -> tuple[JobDirectory, ...]:
        """Where the job may be acted on: its directory, and those at its locations."""
        return (self.directory, *map(self.directory.at, self.locations.values()))

    @property
    def looked_at(self) -> frozenset[str]:
        """The prefixes where files of the job may lie, by whatever says so."""
        said = self.header.locations.values() if self.header else ()
        return frozenset({self.directory.destination.prefix, *self.locations.values(), *said})

    def acts_at(self, key: str) -> bool:
        """Whether the key lies where the job may be acted on (I7)."""
        prefixes = (self.directory.destination.prefix, *self.locations.values())
        return key.startswith(prefixes)

    @property
    def generation(self) -> int:
        """The ledger's generation of the job; 0 where it has none."""
        return self.record.generation if self.record else 0

    @property
    def may_replace(self) -> bool:
        """Whether the job may remove files of before at any moment."""
        record = self.record
        if record is None or record.conflict is not Conflict.REPLACE or record.state in ENDED:
            return False
        return self.traces.request or record.state is not JobState.OPEN


def read_jobs(fsck: Fsck, destination: Destination) -> dict[str, Job]:
    """Every job of which there is a trace at the destination, or that the ledger has there.

    Requests: the listings of the job directories and of ``_commits/``; the ledger's listings of the
    jobs that have not ended; for each job a read of the ledger and up to three of S3, and of its
    execution where somebody has to work on it. Memory: a few hundred bytes a job.
    """
    traces: dict[str, Traces] = defaultdict(Traces)
    for directory, key in directory_keys(fsck, destination):
        _note(traces[directory.job_id], directory, key)
    for job_id, put in listings(fsck, destination):
        traces[job_id].listed_at = put
    for state in sorted(WORKING):
        for record in fsck.ports.ledger.jobs_in(state, before=FOREVER):
            if record.destination == destination:
                traces.setdefault(record.job_id, Traces())
    directories = [(JobDirectory(destination, job_id), found) for job_id, found in traces.items()]
    jobs = fsck.ports.parallel(lambda one: _read(fsck, *one), directories)
    return {job.directory.job_id: job for job in sorted(jobs, key=lambda job: job.directory.job_id)}


def directory_keys(fsck: Fsck, destination: Destination) -> Iterator[tuple[JobDirectory, str]]:
    """Every object in a job directory of the destination."""
    bucket, prefix = destination.bucket, destination.prefix + MAGIC_PREFIX
    for listed in fsck.ports.store.list(bucket, prefix):
        try:
            yield parse_directory(bucket, listed.key), listed.key
        except InvalidInputError:
            continue  # the name of no job of ours


def _note(found: Traces, directory: JobDirectory, key: str) -> None:
    found.job |= key == directory.job
    found.request |= key == directory.request
    found.result |= key == directory.result
    found.scratch |= key.startswith(directory.scratch)
    found.of_s3a |= key.startswith(directory.s3a)


def listings(fsck: Fsck, destination: Destination) -> Iterator[tuple[str, str]]:
    """The ids of the jobs that have a list in ``_commits/``, each with when S3 has got it."""
    prefix = destination.prefix + COMMITS
    for listed in fsck.looks.objects(destination.bucket, prefix):
        name = listed.key[len(prefix) :]
        if not name.endswith(LIST_SUFFIX):
            continue
        try:
            yield check_job_id(name.removesuffix(LIST_SUFFIX)), listed.modified
        except InvalidInputError:
            continue  # nobody's of ours


def _read(fsck: Fsck, directory: JobDirectory, traces: Traces) -> Job:
    record = fsck.ports.ledger.job(directory.ref)
    # The listings are older than the record: what a job has left since then is looked for anew.
    ended = record is not None and record.state in ENDED
    header, commits = _header(fsck, directory) if traces.listed or ended else (None, Commits.ABSENT)
    spec, about = _spec(fsck, directory) if traces.job else (None, None)
    if header is not None and header.destination != directory.destination.uri:
        about, header = COPY, None
    names = record.names if record else spec.names if spec else _unknown_names(traces)
    if about in {COPY, LOCATION}:
        return Job(directory, about, Standing.IN_DOUBT, names, record, None, traces, about)
    told, result = _result(fsck, directory) if traces.result or ended else (Result.ABSENT, None)
    if header is not None and _counts_otherwise(header, record, result):
        commits = Commits.UNREADABLE
    verdict, standing = judge_job(
        Record(record.state) if record else Record.ABSENT,
        commits,
        told,
        Request.THERE if traces.request else Request.ABSENT,
    )
    if verdict is RETIRED and traces.directory:
        # Nobody asked to commit what lies in the directory: the list is of something else.
        verdict, standing = LIST_CONTRADICTS, Standing.IN_DOUBT
    running = False
    if Action.START_EXECUTION in verdict.actions or traces.scratch:
        running = fsck.hands.is_running(directory, record)
    if running and Action.START_EXECUTION in verdict.actions:
        verdict = GOING_ON
    locations = _locations(fsck, directory, record, spec)
    unreadable = ""
    if Commits.UNREADABLE is commits or told is Result.UNREADABLE:
        document = directory.result if told is Result.UNREADABLE else directory.commits
        unreadable = directory.relative(document)
    return Job(
        directory,
        verdict,
        standing,
        names,
        record,
        header,
        traces,
        about,
        running,
        locations,
        unreadable,
    )


def _counts_otherwise(
    header: CommitHeader, record: JobRecord | None, result: JobResult | None
) -> bool:
    """Whether the list is not the one of the job that the ledger or the result counted.

    What it does not have would pass for a dead attempt's, and be deleted.
    """
    counted = (header.files, header.bytes)
    plan = record.plan if record and record.state in _PUBLISHED else None
    if plan is not None and (plan.files, plan.bytes) != counted:
        return True
    committed = result is not None and result.outcome is Outcome.COMMITTED
    return committed and result is not None and (result.files, result.bytes) != counted


def _locations(
    fsck: Fsck, directory: JobDirectory, record: JobRecord | None, spec: JobSpec | None
) -> dict[str, str]:
    planned = record is not None and record.plan is not None and record.plan.locations
    if not planned and not (spec and spec.locations):
        return {}
    return known_locations(fsck.ports, directory, record)


def _unknown_names(traces: Traces) -> Names:
    return Names.EXACT if traces.of_s3a else Names.UNIQUE


def _header(fsck: Fsck, directory: JobDirectory) -> tuple[CommitHeader | None, Commits]:
    try:
        return list_of(fsck, directory), Commits.THERE
    except NotFoundError:
        return None, Commits.ABSENT
    except InvalidInputError:
        return None, Commits.UNREADABLE


def list_of(fsck: Fsck, directory: JobDirectory) -> CommitHeader:
    """How the job's list in ``_commits/`` begins.

    Raises `NotFoundError`, and `InvalidInputError` for one that can't be read, or is another job's.
    """
    header = read_commit_header(fsck.ports, directory)
    if header.job_id != directory.job_id:
        raise InvalidInputError(f"{directory.commits} is another job's", code="WRONG_JOB")
    return header


def _spec(fsck: Fsck, directory: JobDirectory) -> tuple[JobSpec | None, Verdict | None]:
    try:
        body = fsck.ports.store.get(directory.bucket, directory.job, max_bytes=MAX_JOB_BYTES).body
        if decode_main(body, directory) is not None:
            return None, LOCATION
        return decode_job(body, directory), None
    except NotFoundError:
        return None, None
    except InvalidInputError as error:
        return None, COPY if error.code == "WRONG_JOB" else SPEC_UNREADABLE


def _result(fsck: Fsck, directory: JobDirectory) -> tuple[Result, JobResult | None]:
    try:
        stored = fsck.ports.store.get(
            directory.bucket, directory.result, max_bytes=MAX_RESULT_BYTES
        )
        result = decode_result(stored.body, directory)
    except NotFoundError:
        return Result.ABSENT, None
    except InvalidInputError:
        return Result.UNREADABLE, None
    return Result(result.outcome.value), result
