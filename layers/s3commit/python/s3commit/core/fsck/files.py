"""What is true of each file of a destination's jobs, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from s3commit.core.formats.layout import META_JOB, JobDirectory, belongs_to_job, owner_of
from s3commit.core.fsck.expecting import Expected, batches
from s3commit.core.fsck.file_table import judge_file, thing_matters
from s3commit.core.fsck.findings import Finding, Repair
from s3commit.core.fsck.jobs import Job
from s3commit.core.fsck.later import Later
from s3commit.core.fsck.merging import Cell, cells
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.sparing import Claims, unless_listed
from s3commit.core.fsck.words import Action, Level, Named, Standing, Thing, Upload, Verdict
from s3commit.core.model.job import Destination
from s3commit.core.model.states import JobState
from s3commit.core.ownership.identity import is_provably_ours
from s3commit.core.ownership.other_jobs import is_further_up
from s3commit.core.ports.objects import NULL_VERSION, ListedObject, ObjectFacts


def check_files(fsck: Fsck, destination: Destination, jobs: Mapping[str, Job]) -> Iterator[Finding]:
    """What is to be said of the jobs' files; rows that are fine are left out.

    Requests: for each 200,000 files that jobs name, a listing of all objects and one of all
    uploads; a HEAD for each object where length and etag leave a doubt that matters; what `Later`
    asks where a file is gone.
    """
    later, claims = Later(fsck, destination, jobs), Claims(fsck)

    @cache
    def is_outers(directory: JobDirectory) -> bool:
        return is_further_up(fsck.ports.store, directory)

    for batch in batches(fsck, jobs):
        if isinstance(batch, Finding):
            yield batch
            continue
        deleting: list[Finding] = []
        for judged in fsck.ports.parallel(
            lambda cell: _judge(fsck, destination, cell, is_outers),
            cells(fsck, destination, jobs, batch, later),
        ):
            if judged is None:
                continue
            found = claims.respected(judged, jobs)
            if any(one.action is Action.DELETE_OBJECT for one in found.repairs):
                deleting.append(found)
            else:
                yield found
        yield from unless_listed(fsck, jobs, batch, deleting)


def _judge(
    fsck: Fsck, destination: Destination, cell: Cell, is_outers: Callable[[JobDirectory], bool]
) -> Finding | None:
    standing = cell.job.standing if cell.job else Standing.UNKNOWN
    named = cell.expected.named if cell.expected else Named.NEITHER
    upload = Upload.OPEN if cell.uploads else Upload.NONE
    facts = None
    thing = Thing.REPLACED if cell.replaced else Thing.ABSENT
    if cell.found is not None:
        thing = Thing.OTHER
        if thing_matters(standing, named, upload):
            thing, facts = _whose(fsck, cell, cell.found)
    verdict = judge_file(standing, named, upload, thing)
    if verdict.level is Level.FINE or (verdict.actions and cell.job and cell.job.running):
        return None  # of a job that ended a moment ago its execution tidies up
    if cell.job and verdict.level is Level.NOTE and _has_moved(fsck, cell.job):
        return None  # what was true of the job is no longer
    if cell.job and any(is_outers(directory) for directory in _named_in(cell.job, cell.key)):
        return None  # whoever may write here alone can't speak for the job further up (I12)
    job_id = cell.job.directory.job_id if cell.job else owner_of(cell.key) or ""
    repairs = _repairs(destination.bucket, cell, verdict, facts, job_id)
    restore = ""
    if named is Named.LISTED and thing in {Thing.ABSENT, Thing.OTHER} and cell.expected:
        restore = _restorable(fsck, destination.bucket, cell.key, cell.expected)
    return Finding(verdict, destination.bucket, cell.key, job_id, "", restore, repairs)


def _named_in(job: Job, key: str) -> Iterator[JobDirectory]:
    """Where the job lies whose id the file's name carries, if that is the job's."""
    if belongs_to_job(key, job.directory.job_id):
        yield from (job.directory.at(one) for one in sorted(job.looked_at) if key.startswith(one))


def _has_moved(fsck: Fsck, job: Job) -> bool:
    record = fsck.ports.ledger.job(job.directory.ref)
    return (record and record.state) != (job.record and job.record.state)


def _whose(fsck: Fsck, cell: Cell, found: ListedObject) -> tuple[Thing, ObjectFacts | None]:
    """Whose the object is. Listed ones are told by length and etag, if these are as expected."""
    job, expected = cell.job, cell.expected
    listed = expected is not None and expected.named is Named.LISTED
    if expected and listed and (found.length, found.etag) == (expected.length, expected.etag):
        return Thing.OURS, None
    facts = fsck.ports.store.head(job.directory.bucket if job else "", cell.key)
    if facts is None or job is None:
        return Thing.ABSENT, None
    if META_JOB in facts.metadata:
        if facts.metadata[META_JOB] != job.directory.job_id:
            return Thing.FOREIGN, facts
        whole = not expected or not listed or facts.length == expected.length
        return (Thing.OURS if whole else Thing.OTHER), facts
    if expected and listed and _is_alike(expected, facts):
        return Thing.ALIKE, facts
    pending = expected.pending if expected else None
    proven = pending is not None and is_provably_ours(pending, facts)
    return (Thing.OURS if proven else Thing.OTHER), facts


def _is_alike(expected: Expected, facts: ObjectFacts) -> bool:
    """Whether the object can be the file under an etag that is no digest of its bytes."""
    found, written = (etag.strip('"').partition("-")[2] for etag in (facts.etag, expected.etag))
    same_parts = found != "" and (found == written or not expected.etag)
    return same_parts and facts.length == expected.length


def _repairs(
    bucket: str, cell: Cell, verdict: Verdict, facts: ObjectFacts | None, job_id: str
) -> tuple[Repair, ...]:
    repairs: list[Repair] = []
    if Action.ABORT_UPLOAD in verdict.actions:
        repairs += [
            Repair(Action.ABORT_UPLOAD, verdict.name, bucket, cell.key, job_id, upload.upload_id)
            for upload in cell.uploads
        ]
    if Action.DELETE_OBJECT in verdict.actions and facts is not None and _may_delete(cell, facts):
        repairs.append(
            Repair(
                Action.DELETE_OBJECT,
                verdict.name,
                bucket,
                cell.key,
                job_id,
                etag=facts.etag,
                # Where versioning is suspended, whoever writes the key next has the null version.
                version_id="" if facts.version_id == NULL_VERSION else facts.version_id or "",
            )
        )
    return tuple(repairs)


def _may_delete(cell: Cell, facts: ObjectFacts) -> bool:
    """Whether the ledger has it that the job was decided and undone, and it is no older (I12).

    A result and a list in ``_commits/`` prove nothing: whoever may put objects can write them.
    """
    record = cell.job.record if cell.job else None
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
    for version in fsck.looks.versions(bucket, key):
        known = expected.etag in {"", version.etag}
        if known and version.length == expected.length:
            return version.version_id
    return ""
