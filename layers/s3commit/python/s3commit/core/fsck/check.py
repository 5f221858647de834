"""The check: all findings of a destination, and the repairs that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from s3commit.core.formats.hadoop import MAGIC
from s3commit.core.formats.layout import COMMITS, SUCCESS, JobDirectory, check_job_id
from s3commit.core.formats.published import MAX_SUCCESS_BYTES
from s3commit.core.formats.strict_json import Fields, parse
from s3commit.core.fsck import other_table as other
from s3commit.core.fsck.files import check_files
from s3commit.core.fsck.findings import Finding, Repair, Tally
from s3commit.core.fsck.job_table import NOT_GOING_ON, UNREADABLE
from s3commit.core.fsck.jobs import Job, read_jobs
from s3commit.core.fsck.lost_documents import DECIDED, lost_documents
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.words import Action, Level, Standing, Verdict
from s3commit.core.job.idempotency_key import MAX_NOTE_BYTES
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.ports.objects import StoredObject

_UNDONE: Final = frozenset({Standing.ABORTED, Standing.ROLLED_BACK})
_OVER: Final = _UNDONE | {Standing.COMMITTED}
_INCOMPLETE: Final = frozenset({"MISSING", "MISSING_BUT_UPLOADED", "CHANGED"})
SHOWN: Final = 10  # names in a finding
_COMMITTER: Final = "s3commit"  # in our own markers; Hadoop's name a job's id too


def check(fsck: Fsck, destination: Destination, tally: Tally | None = None) -> Iterator[Finding]:
    """Everything at the destination that is not as it should be; changes nothing.

    Findings of jobs come first, then those of files, of documents, and of working objects: their
    repairs are safe in this order, and in any.
    """
    jobs = read_jobs(fsck, destination)
    if tally is not None:
        tally.jobs = len(jobs)
    for job in jobs.values():
        yield from _of_job(fsck, job)
    incomplete, unreadable = set(), set()
    for finding in check_files(fsck, destination, jobs):
        if finding.verdict is UNREADABLE:
            unreadable.add(finding.job_id)
        if finding.name in _INCOMPLETE:
            incomplete.add(finding.job_id)
        yield finding
    yield from _of_marker(fsck, destination, jobs, incomplete)
    yield from _of_notes(fsck, destination, jobs)
    yield from _of_shared(fsck, destination)
    for job_id, job in jobs.items():
        if job_id not in unreadable:
            yield from _of_scratch(fsck, job)


def _of_job(fsck: Fsck, job: Job) -> Iterator[Finding]:
    directory = job.directory
    if job.verdict.level is not Level.FINE:
        repairs: tuple[Repair, ...] = ()
        if Action.START_EXECUTION in job.verdict.actions:
            start = Repair(
                Action.START_EXECUTION,
                job.verdict.name,
                directory.bucket,
                directory.prefix,
                directory.job_id,
                generation=job.generation,
            )
            repairs = (start,)
        detail = f"{job.record.state}" if job.record else "not in the ledger"
        if job.unreadable:
            detail = f"{job.unreadable}, {detail}"
        lost = _lost(fsck, job)
        if lost:
            detail = f"{detail}, gone or changed: {lost}"
        yield Finding(
            job.verdict, directory.bucket, directory.prefix, directory.job_id, detail, "", repairs
        )
    if job.about is other.SPEC_UNREADABLE and job.standing not in _OVER:
        yield Finding(job.about, directory.bucket, directory.job, directory.job_id)
    traces = job.traces
    if traces.of_s3a and not (traces.job or traces.request or traces.result):
        yield Finding(other.S3A_LEFTOVER, directory.bucket, directory.prefix, directory.job_id)


def _lost(fsck: Fsck, job: Job) -> str:
    """The documents without which the job may not go on; reads them, of such a job alone."""
    record = job.record
    if job.verdict is not NOT_GOING_ON or record is None or record.state not in DECIDED:
        return ""
    names = lost_documents(fsck, job.directory, record, listed=job.header is not None)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _of_shared(fsck: Fsck, destination: Destination) -> Iterator[Finding]:
    """The directory that all jobs of S3A before Hadoop 3.4 share."""
    shared = f"{destination.prefix}{MAGIC}/"
    if next(iter(fsck.ports.store.list(destination.bucket, shared)), None) is not None:
        yield Finding(other.S3A_LEFTOVER, destination.bucket, shared)


def _of_scratch(fsck: Fsck, job: Job) -> Iterator[Finding]:
    if job.standing not in _OVER or job.running:
        return
    for directory in job.directories:
        if directory is job.directories[0] and not job.traces.scratch:
            continue
        repairs = tuple(
            _deletion(
                other.SCRATCH_LEFT, directory.bucket, listed.key, directory.job_id, listed.etag
            )
            for listed in fsck.ports.store.list(directory.bucket, directory.prefix)
            if listed.key.startswith(directory.scratch)
        )
        if repairs:
            detail = many(len(repairs), "object")
            yield Finding(
                other.SCRATCH_LEFT,
                directory.bucket,
                directory.prefix,
                directory.job_id,
                detail,
                "",
                repairs,
            )


def _deletion(verdict: Verdict, bucket: str, key: str, job_id: str, etag: str) -> Repair:
    return Repair(Action.DELETE_OBJECT, verdict.name, bucket, key, job_id, etag=etag)


def _of_marker(
    fsck: Fsck, destination: Destination, jobs: Mapping[str, Job], incomplete: set[str]
) -> Iterator[Finding]:
    bucket, key = destination.bucket, destination.prefix + SUCCESS
    try:
        stored = fsck.ports.store.get(bucket, key, max_bytes=MAX_SUCCESS_BYTES)
    except (NotFoundError, InvalidInputError):
        return  # none, or one that nobody of us wrote
    job_id = _own_marker(stored)
    if job_id is None:
        return
    job = jobs.get(job_id)
    if job is not None and job.standing in _UNDONE:
        repair = _deletion(other.MARKER_OF_UNDONE, bucket, key, job_id, stored.facts.etag)
        yield Finding(other.MARKER_OF_UNDONE, bucket, key, job_id, "", "", (repair,))
    elif job is None or not job.traces.listed:
        # A job elsewhere has the marker there: a copied table's, whose list may not be copied.
        if _is_listed(fsck, destination, job_id):
            return  # it was committed since the jobs were read
        if job is None or job.about is not other.COPY:
            yield Finding(other.MARKER_WITHOUT_LIST, bucket, key, job_id)
    elif job_id in incomplete:
        yield Finding(other.MARKER_OF_INCOMPLETE, bucket, key, job_id)


def _is_listed(fsck: Fsck, destination: Destination, job_id: str) -> bool:
    directory = JobDirectory(destination, job_id)
    return fsck.ports.store.head(directory.bucket, directory.commits) is not None


def _own_marker(stored: StoredObject) -> str | None:
    """The job that a marker of ours names; None for another program's."""
    try:
        fields = Fields(parse(stored.body, what=SUCCESS, max_bytes=MAX_SUCCESS_BYTES), "$")
        if fields.text("committer", "") != _COMMITTER:
            return None
        return check_job_id(fields.text("jobId", longest=200))
    except InvalidInputError:
        return None


def _of_notes(fsck: Fsck, destination: Destination, jobs: Mapping[str, Job]) -> Iterator[Finding]:
    bucket, store = destination.bucket, fsck.ports.store
    keys = (one.key for one in store.list(bucket, f"{destination.prefix}{COMMITS}once/"))
    for found in fsck.ports.parallel(lambda key: _of_note(fsck, bucket, key, jobs), keys):
        if found is not None:
            yield found


def _of_note(fsck: Fsck, bucket: str, key: str, jobs: Mapping[str, Job]) -> Finding | None:
    try:
        stored = fsck.ports.store.get(bucket, key, max_bytes=MAX_NOTE_BYTES)
        fields = Fields(parse(stored.body, what=key, max_bytes=MAX_NOTE_BYTES), "$")
        job_id = check_job_id(fields.text("jobId", longest=80))
    except NotFoundError:
        return None
    except InvalidInputError as error:
        return Finding(other.ONCE_UNREADABLE, bucket, key, "", error.message)
    job = jobs.get(job_id)
    if job is None:
        return Finding(other.ONCE_OF_NOBODY, bucket, key, job_id)
    if job.standing not in _UNDONE:
        return None
    repair = _deletion(other.ONCE_LEFT, bucket, key, job_id, stored.facts.etag)
    return Finding(other.ONCE_LEFT, bucket, key, job_id, "", "", (repair,))
