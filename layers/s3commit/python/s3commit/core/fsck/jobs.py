"""The jobs of a destination, each with what S3 and the ledger say of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.layout import (
    COMMITS,
    MAGIC_PREFIX,
    JobDirectory,
    check_job_id,
    parse_directory,
)
from s3commit.core.formats.published import CommitHeader
from s3commit.core.fsck.job_rules import (
    LIST_CONTRADICTS,
    RETIRED,
    UNREADABLE,
    JobPhase,
    WithoutState,
    judge_job,
)
from s3commit.core.fsck.other_rules import COPY, GOING_ON, SPEC_UNREADABLE
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.verdict import Action, Verdict
from s3commit.core.job.contents import Contents
from s3commit.core.job.stored_job import Presence, StoredJob, read_stored_job
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Destination, Names, Outcome
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import ListedObject

LIST_SUFFIX: Final = ".jsonl"
FOREVER: Final = "9999-12-31T23:59:59.999Z"
WORKING: Final = frozenset(JobState) - ENDED
_PUBLISHED: Final = frozenset({JobState.PUBLISHING, JobState.COMMITTED})


@dataclass(frozen=True, slots=True)
class JudgedJob:
    """One job: what is there of it, the row of the table that is true of it, and what follows.

    ``listed_at`` is when S3 got its commit manifest (empty: a listing has shown none). ``kind``
    says what its directory is if it is no job of this place, or not a plain one. ``record`` is None
    if the ledger has none for a job at this place. ``unreadable`` is the document that can't be
    read, relative to the destination.
    """

    directory: JobDirectory
    contents: Contents
    listed_at: str
    verdict: Verdict
    phase: JobPhase
    names: Names
    record: JobRecord | None
    header: CommitHeader | None = None
    kind: Verdict | None = None
    running: bool = False
    unreadable: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, beyond doubt."""
        return self.phase in ENDED

    @property
    def opened_at(self) -> str:
        """When S3 got its ``job.json``; empty if nobody knows, or it has none."""
        noted = self.record.opened_at if self.record else ""
        return noted or (self.contents.job.modified if self.contents.job else "")

    @property
    def may_replace(self) -> bool:
        """Whether the job may remove files of before at any moment."""
        record = self.record
        if record is None or record.conflict is not Conflict.REPLACE or record.state in ENDED:
            return False
        return self.contents.request is not None or record.state is not JobState.OPEN


def read_jobs(fsck: Fsck, destination: Destination) -> dict[str, JudgedJob]:
    """Every job of which there is a trace at the destination, or that the ledger has there.

    Requests: the listings of the job directories and of ``_commits/``; the ledger's listings of the
    jobs that have not ended; for each job a read of the ledger and up to three of S3, and of its
    execution where somebody has to work on it. Memory: about a kilobyte a job.
    """
    bucket = destination.bucket
    found: dict[str, Contents] = defaultdict(Contents)
    objects = fsck.ports.store.list(bucket, destination.prefix + MAGIC_PREFIX)
    for directory, listed in in_directories(bucket, objects):
        found[directory.job_id].add(directory, listed)
    listed_at = dict(commit_manifests(fsck, destination))
    recorded = [
        record.job_id
        for state in sorted(WORKING)
        for record in fsck.ports.ledger.jobs_in(state, before=FOREVER)
        if record.destination == destination
    ]

    def read(job_id: str) -> JudgedJob:
        directory = JobDirectory(destination, job_id)
        return _read(fsck, directory, found.get(job_id, Contents()), listed_at.get(job_id, ""))

    jobs = fsck.ports.parallel(read, sorted({*found, *listed_at, *recorded}))
    return {job.directory.job_id: job for job in sorted(jobs, key=lambda job: job.directory.job_id)}


def in_directories(
    bucket: str, objects: Iterable[ListedObject]
) -> Iterator[tuple[JobDirectory, ListedObject]]:
    """Those of the objects that lie in job directories, each with its directory."""
    for listed in objects:
        try:
            yield parse_directory(bucket, listed.key), listed
        except InvalidInputError:
            continue  # no job's of ours


def commit_manifests(fsck: Fsck, destination: Destination) -> Iterator[tuple[str, str]]:
    """The ids of the jobs that have a commit manifest, each with when S3 has got it."""
    prefix = destination.prefix + COMMITS
    for listed in fsck.ports.store.list(destination.bucket, prefix):
        name = listed.key[len(prefix) :]
        if not name.endswith(LIST_SUFFIX):
            continue
        try:
            yield check_job_id(name.removesuffix(LIST_SUFFIX)), listed.modified
        except InvalidInputError:
            continue  # no job's of ours


def _read(fsck: Fsck, directory: JobDirectory, contents: Contents, listed_at: str) -> JudgedJob:
    seen = read_stored_job(fsck.ports, directory, contents, is_listed=listed_at != "")
    record, header, kind = seen.record, seen.commits.value, _kind(directory, seen)
    spec = seen.spec.value
    unknown = Names.EXACT if contents.of_s3a.objects else Names.UNIQUE
    names = record.names if record else spec.names if spec else unknown
    if kind is COPY:
        doubt = WithoutState.IN_DOUBT
        return JudgedJob(directory, contents, listed_at, kind, doubt, names, record, kind=kind)
    commits, result = seen.commits.presence, seen.result.presence
    if header is not None and _counts_otherwise(header, seen):
        commits = Presence.UNREADABLE
    verdict, phase = judge_job(
        record.state if record else None,
        commits,
        seen.result.value.outcome if seen.result.value else result,
        Presence.THERE if contents.request else Presence.ABSENT,
    )
    if verdict is RETIRED and (contents.own or contents.scratch):
        # Nobody requested what lies in the directory: the commit manifest is of something else.
        verdict, phase = LIST_CONTRADICTS, WithoutState.IN_DOUBT
    starts = verdict.action is Action.START_EXECUTION
    running = (starts or contents.scratch > 0) and fsck.executions.is_running(directory, record)
    unreadable = ""
    if verdict is UNREADABLE:
        key = directory.result if result is Presence.UNREADABLE else directory.commits
        unreadable = directory.relative(key)
    return JudgedJob(
        directory,
        contents,
        listed_at,
        GOING_ON if running and starts else verdict,
        phase,
        names,
        record,
        header,
        kind,
        running,
        unreadable,
    )


def _kind(directory: JobDirectory, seen: StoredJob) -> Verdict | None:
    header, spec = seen.commits.value, seen.spec
    is_copied = spec.error is not None and spec.error.code == "WRONG_JOB"
    if is_copied or (header is not None and header.destination != directory.destination.uri):
        return COPY
    return SPEC_UNREADABLE if spec.error is not None else None


def _counts_otherwise(header: CommitHeader, seen: StoredJob) -> bool:
    """Whether the commit manifest is not the one that the ledger or the result counted.

    What it does not have would pass for an uncounted attempt's, and be deleted.
    """
    counted = (header.files, header.bytes)
    record, result = seen.record, seen.result.value
    plan = record.plan if record and record.state in _PUBLISHED else None
    if plan is not None and (plan.files, plan.bytes) != counted:
        return True
    if result is None or result.outcome is not Outcome.COMMITTED:
        return False
    return (result.files, result.bytes) != counted
