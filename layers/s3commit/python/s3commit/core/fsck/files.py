"""What is true of each file of a destination's jobs, and what follows from it.

The files that jobs name, and the objects, both come in the order of keys. So one pass over the
listing judges a batch of jobs with memory for the batch's files alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter

from s3commit.core.formats.file_names import belongs_to_job, owner_of
from s3commit.core.formats.layout import META_JOB, JobDirectory, is_data
from s3commit.core.fsck.expected import Batch, Expected, batches
from s3commit.core.fsck.file_rules import (
    INCOMPLETE,
    KnownFrom,
    ObjectState,
    judge_file,
    object_matters,
)
from s3commit.core.fsck.findings import Finding, Repair, repairs_of
from s3commit.core.fsck.jobs import JudgedJob
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.safeguards import unless_listed
from s3commit.core.fsck.superseded import Replacements
from s3commit.core.fsck.uploads import JobUploads
from s3commit.core.fsck.verdict import Action, Level
from s3commit.core.model.job import Destination
from s3commit.core.model.states import JobState
from s3commit.core.ownership.identity import is_provably_ours
from s3commit.core.ownership.other_jobs import is_further_up
from s3commit.core.ports.objects import NULL_VERSION, ListedObject, ObjectFacts


@dataclass(frozen=True, slots=True)
class _File:
    """One file of one job as it was found. ``expected`` is None if its name alone is the job's."""

    job: JudgedJob
    key: str
    expected: Expected | None
    found: ListedObject | None

    @property
    def known(self) -> KnownFrom:
        return self.expected.known if self.expected else KnownFrom.NAME

    @property
    def is_listed(self) -> bool:
        return self.known is KnownFrom.COMMIT_MANIFEST


def check_files(
    fsck: Fsck, destination: Destination, jobs: Mapping[str, JudgedJob], uploads: JobUploads
) -> Iterator[Finding]:
    """What is to be said of the jobs' files; rows that are fine are left out.

    Requests: for each 200,000 files that jobs name, a listing of all objects; a HEAD for each
    object where length and etag leave a doubt that matters; what `Replacements` asks where a file
    is gone; each commit manifest once more if there is an object to delete.
    """
    replacements = Replacements(fsck, destination, jobs)
    deleting: list[Finding] = []

    @cache
    def is_outers(directory: JobDirectory) -> bool:
        return is_further_up(fsck.ports.store, directory)

    for batch in batches(fsck, jobs):
        if isinstance(batch, Finding):
            yield batch
            continue
        for one in fsck.ports.parallel(
            lambda file: _judge(fsck, file, uploads, replacements, is_outers),
            _files(fsck, destination, batch),
        ):
            if one is not None and one.repairs:
                deleting.append(one)
            elif one is not None:
                yield one
    yield from unless_listed(fsck, jobs, deleting)


def _files(fsck: Fsck, destination: Destination, batch: Batch) -> Iterator[_File]:
    """Every file of the batch's jobs, and every object that is one by its name, in key order."""

    def objects() -> Iterator[tuple[str, ListedObject | None]]:
        for listed in fsck.ports.store.list(destination.bucket, destination.prefix):
            if is_data(listed.key[len(destination.prefix) :]):
                yield listed.key, listed

    expected: Iterator[tuple[str, ListedObject | None]] = (
        (key, None) for key in sorted(batch.files, key=str.encode)
    )
    merged = heapq.merge(objects(), expected, key=lambda one: one[0].encode())
    for key, group in groupby(merged, key=itemgetter(0)):
        found = next((one for _, one in group if one is not None), None)
        of_jobs = batch.files.get(key, {})
        owner = owner_of(key) if found else None
        for job_id in sorted({*of_jobs, owner or ""} & batch.jobs.keys()):
            yield _File(batch.jobs[job_id], key, of_jobs.get(job_id), found)


def _judge(
    fsck: Fsck,
    file: _File,
    uploads: JobUploads,
    replacements: Replacements,
    is_outers: Callable[[JobDirectory], bool],
) -> Finding | None:
    job, key = file.job, file.key
    state, facts = _state(fsck, file, uploads, replacements)
    verdict = judge_file(job.phase, file.known, state)
    if verdict.level is Level.FINE or (verdict.action and job.running):
        return None  # of a job that ended a moment ago its execution tidies up
    if verdict.level is Level.NOTE and _has_moved(fsck, job):
        return None  # what was true of the job is no longer
    if belongs_to_job(key, job.directory.job_id) and is_outers(job.directory):
        return None  # whoever may write here alone can't speak for the job further up (I12)
    bucket, job_id = job.directory.bucket, job.directory.job_id
    repairs: tuple[Repair, ...] = ()
    if verdict.action is Action.DELETE_OBJECT and facts is not None and _may_delete(job, facts):
        # Where versioning is suspended, whoever writes the key next has the null version.
        version = "" if facts.version_id == NULL_VERSION else facts.version_id or ""
        seen = {"etag": facts.etag, "version_id": version}
        repairs = repairs_of(verdict, bucket, key, job_id, **seen)
    restore = ""
    if file.expected and verdict.name in INCOMPLETE:
        restore = _restorable(fsck, bucket, key, file.expected)
    return Finding(verdict, bucket, key, job_id, "", restore, repairs)


def _state(
    fsck: Fsck, file: _File, uploads: JobUploads, replacements: Replacements
) -> tuple[ObjectState, ObjectFacts | None]:
    """What lies at the key; with the object's facts if they were asked for."""
    state, facts = ObjectState.ABSENT, None
    if file.found is not None:
        state = ObjectState.OTHER
        if object_matters(file.job.phase, file.known):
            state, facts = _whose(fsck, file, file.found)
    elif file.is_listed and replacements.removed(file.key, file.job):
        state = ObjectState.REPLACED
    is_gone = state is ObjectState.ABSENT or (file.is_listed and state is ObjectState.OTHER)
    if is_gone and uploads.are_open(file.key, file.job):
        state = ObjectState.UPLOADING
    return state, facts


def _has_moved(fsck: Fsck, job: JudgedJob) -> bool:
    record = fsck.ports.ledger.job(job.directory.ref)
    return (record and record.state) != (job.record and job.record.state)


def _whose(fsck: Fsck, file: _File, found: ListedObject) -> tuple[ObjectState, ObjectFacts | None]:
    """Whose the object is. Listed ones are told by length and etag, if these are as expected."""
    expected = file.expected
    listed = expected if file.is_listed else None
    if listed and (found.length, found.etag) == (listed.length, listed.etag):
        return ObjectState.OURS, None
    facts = fsck.ports.store.head(file.job.directory.bucket, file.key)
    if facts is None:
        return ObjectState.ABSENT, None
    if META_JOB in facts.metadata:
        if facts.metadata[META_JOB] != file.job.directory.job_id:
            return ObjectState.FOREIGN, facts
        is_whole = listed is None or facts.length == listed.length
        return (ObjectState.OURS if is_whole else ObjectState.OTHER), facts
    if listed and _is_alike(listed, facts):
        return ObjectState.ALIKE, facts
    pending = expected.pending if expected else None
    proven = pending is not None and is_provably_ours(pending, facts)
    return (ObjectState.OURS if proven else ObjectState.OTHER), facts


def _is_alike(expected: Expected, facts: ObjectFacts) -> bool:
    """Whether the object can be the file under an etag that is no digest of its bytes."""
    found, written = (etag.strip('"').partition("-")[2] for etag in (facts.etag, expected.etag))
    same_parts = found != "" and (found == written or not expected.etag)
    return same_parts and facts.length == expected.length


def _may_delete(job: JudgedJob, facts: ObjectFacts) -> bool:
    """Whether the ledger has it that the job was decided and undone, and it is no older (I12).

    A result and a commit manifest prove nothing: whoever may put objects can write them.
    """
    record = job.record
    return (
        record is not None
        and record.state is JobState.ROLLED_BACK
        and record.decided_at is not None
        and facts.modified >= record.opened_at
    )


def _restorable(fsck: Fsck, bucket: str, key: str, expected: Expected) -> str:
    """The newest version that still has the file's bytes; empty if there is none."""
    if not fsck.ports.store.is_versioned(bucket):
        return ""
    for version in fsck.ports.store.list_versions(bucket, key):
        known = expected.etag in {"", version.etag}
        if known and version.length == expected.length:
            return version.version_id
    return ""
