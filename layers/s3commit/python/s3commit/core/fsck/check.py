"""The check: all findings of a destination, and the repairs that follow from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from s3commit.core.formats.hadoop import MAGIC
from s3commit.core.fsck.documents import check_keys, check_marker, check_scratch
from s3commit.core.fsck.file_rules import INCOMPLETE
from s3commit.core.fsck.files import check_files
from s3commit.core.fsck.findings import Finding, Tally, repairs_of
from s3commit.core.fsck.job_rules import NOT_GOING_ON, UNREADABLE
from s3commit.core.fsck.jobs import JudgedJob, read_jobs
from s3commit.core.fsck.lost_documents import lost_documents
from s3commit.core.fsck.other_rules import S3A_LEFTOVER, SPEC_UNREADABLE
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.uploads import check_uploads, read_uploads
from s3commit.core.fsck.verdict import Level
from s3commit.core.model.job import Destination
from s3commit.core.model.states import UNDER_COMMIT

SHOWN: Final = 10  # names in a finding


def check(fsck: Fsck, destination: Destination, tally: Tally | None = None) -> Iterator[Finding]:
    """Everything at the destination that is not as it should be; changes nothing.

    Findings of jobs come first, then those of files, of uploads, of documents, and of the manifests
    that are left: their repairs are safe in this order, and in any.
    """
    jobs = read_jobs(fsck, destination)
    if tally is not None:
        tally.jobs = len(jobs)
    for job in jobs.values():
        yield from _check_job(fsck, job)
    uploads = read_uploads(fsck, destination, jobs)
    kept: set[str] = set()
    incomplete, unreadable = set(), set()
    for finding in check_files(fsck, destination, jobs, uploads):
        if finding.verdict is UNREADABLE:
            unreadable.add(finding.job_id)
        if finding.name in INCOMPLETE:
            incomplete.add(finding.job_id)
        if finding.name == "MISSING_BUT_UPLOADED":
            kept.add(finding.key)
        yield finding
    readable = {job_id: job for job_id, job in jobs.items() if job_id not in unreadable}
    yield from check_uploads(fsck, destination, readable, uploads, kept)
    yield from check_marker(fsck, destination, jobs, incomplete)
    yield from check_keys(fsck, destination, jobs)
    yield from _check_shared(fsck, destination)
    for job in readable.values():
        yield from check_scratch(fsck, job)


def _check_job(fsck: Fsck, job: JudgedJob) -> Iterator[Finding]:
    directory, contents = job.directory, job.contents
    bucket, prefix, job_id = directory.bucket, directory.prefix, directory.job_id
    if job.verdict.level is not Level.FINE:
        generation = job.record.generation if job.record else 0
        repairs = repairs_of(job.verdict, bucket, prefix, job_id, generation=generation)
        state = f"{job.record.state}" if job.record else "not in the ledger"
        lost = _lost(fsck, job)
        facts = (job.unreadable, state, f"gone or changed: {lost}" if lost else "")
        detail = ", ".join(filter(None, facts))
        yield Finding(job.verdict, bucket, prefix, job_id, detail, repairs=repairs)
    if job.kind is SPEC_UNREADABLE and not job.has_ended:
        yield Finding(SPEC_UNREADABLE, bucket, directory.job, job_id)
    if contents.of_s3a.objects and not contents.own:
        yield Finding(S3A_LEFTOVER, bucket, prefix, job_id)


def _lost(fsck: Fsck, job: JudgedJob) -> str:
    """The documents without which the job may not go on; reads them, of such a job alone."""
    record = job.record
    if job.verdict is not NOT_GOING_ON or record is None or record.state not in UNDER_COMMIT:
        return ""
    names = lost_documents(fsck, job.directory, record, listed=job.header is not None)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _check_shared(fsck: Fsck, destination: Destination) -> Iterator[Finding]:
    """The directory that all jobs of S3A before Hadoop 3.4 share."""
    shared = f"{destination.prefix}{MAGIC}/"
    if next(iter(fsck.ports.store.list(destination.bucket, shared)), None) is not None:
        yield Finding(S3A_LEFTOVER, destination.bucket, shared)
