"""What lies beside the files: `_SUCCESS`, key records, manifests that were left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from s3commit.core.ending.leftovers import scratch_of
from s3commit.core.formats.layout import COMMITS, SUCCESS, JobDirectory, check_job_id
from s3commit.core.formats.published import MAX_SUCCESS_BYTES
from s3commit.core.formats.strict_json import Fields, parse
from s3commit.core.fsck import other_rules as other
from s3commit.core.fsck.findings import Finding, repairs_of
from s3commit.core.fsck.job_rules import UNDONE
from s3commit.core.fsck.jobs import JudgedJob
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.verdict import Verdict
from s3commit.core.job.idempotency_key import MAX_NOTE_BYTES as MAX_KEY_RECORD_BYTES
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.ports.objects import StoredObject

_COMMITTER: Final = "s3commit"  # in our own markers; Hadoop's name a job's id too


def check_marker(
    fsck: Fsck, destination: Destination, jobs: Mapping[str, JudgedJob], incomplete: set[str]
) -> Iterator[Finding]:
    """What is to be said of ``_SUCCESS``. ``incomplete`` are jobs that lack files."""
    bucket, key = destination.bucket, destination.prefix + SUCCESS
    try:
        stored = fsck.ports.store.get(bucket, key, max_bytes=MAX_SUCCESS_BYTES)
    except (NotFoundError, InvalidInputError):
        return  # none, or one that nobody of us wrote
    job_id = _own_marker(stored)
    if job_id is None:
        return
    job = jobs.get(job_id)
    if job is not None and job.phase in UNDONE:
        yield _to_delete(other.MARKER_OF_UNDONE, bucket, key, job_id, stored.facts.etag)
    elif job is None or not job.listed_at:
        # A job elsewhere has the marker there: a copied table's, whose list may not be copied.
        directory = JobDirectory(destination, job_id)
        if fsck.ports.store.head(directory.bucket, directory.commits) is not None:
            return  # it was committed since the jobs were read
        if job is None or job.kind is not other.COPY:
            yield Finding(other.MARKER_WITHOUT_LIST, bucket, key, job_id)
    elif job_id in incomplete:
        yield Finding(other.MARKER_OF_INCOMPLETE, bucket, key, job_id)


def _own_marker(stored: StoredObject) -> str | None:
    """The job that a marker of ours names; None for another program's."""
    try:
        fields = Fields(parse(stored.body, what=SUCCESS, max_bytes=MAX_SUCCESS_BYTES), "$")
        if fields.text("committer", "") != _COMMITTER:
            return None
        return check_job_id(fields.text("jobId", longest=200))
    except InvalidInputError:
        return None


def check_keys(
    fsck: Fsck, destination: Destination, jobs: Mapping[str, JudgedJob]
) -> Iterator[Finding]:
    """What is to be said of the records of idempotency keys; a read for each."""
    bucket, store = destination.bucket, fsck.ports.store
    keys = (one.key for one in store.list(bucket, f"{destination.prefix}{COMMITS}once/"))
    for found in fsck.ports.parallel(partial(_check_key, fsck, bucket, jobs), keys):
        if found is not None:
            yield found


def _check_key(fsck: Fsck, bucket: str, jobs: Mapping[str, JudgedJob], key: str) -> Finding | None:
    try:
        stored = fsck.ports.store.get(bucket, key, max_bytes=MAX_KEY_RECORD_BYTES)
        fields = Fields(parse(stored.body, what=key, max_bytes=MAX_KEY_RECORD_BYTES), "$")
        job_id = check_job_id(fields.text("jobId", longest=80))
    except NotFoundError:
        return None
    except InvalidInputError as error:
        return Finding(other.ONCE_UNREADABLE, bucket, key, "", error.message)
    job = jobs.get(job_id)
    if job is None:
        return Finding(other.ONCE_OF_NOBODY, bucket, key, job_id)
    if job.phase not in UNDONE:
        return None
    return _to_delete(other.ONCE_LEFT, bucket, key, job_id, stored.facts.etag)


def check_scratch(fsck: Fsck, job: JudgedJob) -> Iterator[Finding]:
    """The manifests that an ended job has left."""
    if not job.has_ended or job.running:
        return
    for directory in [job.directory] if job.contents.scratch else []:
        repairs = tuple(
            repair
            for one in scratch_of(fsck.ports.store, directory)
            for repair in repairs_of(
                other.SCRATCH_LEFT, directory.bucket, one.key, directory.job_id, etag=one.etag
            )
        )
        if repairs:
            detail = many(len(repairs), "object")
            yield Finding(
                other.SCRATCH_LEFT,
                directory.bucket,
                directory.prefix,
                directory.job_id,
                detail,
                repairs=repairs,
            )


def _to_delete(verdict: Verdict, bucket: str, key: str, job_id: str, etag: str) -> Finding:
    repairs = repairs_of(verdict, bucket, key, job_id, etag=etag)
    return Finding(verdict, bucket, key, job_id, repairs=repairs)
