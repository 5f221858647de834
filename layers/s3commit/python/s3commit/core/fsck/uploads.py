"""The open uploads at a destination (I4, I5).

Whose an upload is `UploadOwners` says, as for the sweep and for `s3commit uploads`. fsck is
stricter: it needs no age to abort an upload, so it leaves alone what anything speaks against.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from s3commit.core.formats.file_names import belongs_to_job, owner_of
from s3commit.core.formats.layout import JobDirectory, directories_above
from s3commit.core.fsck.expected import DECIDED_BY_MANIFEST
from s3commit.core.fsck.findings import Finding, repairs_of
from s3commit.core.fsck.jobs import JudgedJob
from s3commit.core.fsck.other_rules import CLAIMED, UPLOAD_LEFT, UPLOAD_OF_NOBODY
from s3commit.core.fsck.ports import Fsck
from s3commit.core.model.job import Destination, Names
from s3commit.core.model.states import JobState
from s3commit.core.ownership.named_uploads import uploads_named
from s3commit.core.ownership.open_uploads import Ownership, UploadOwners, is_older
from s3commit.core.ownership.other_jobs import is_further_up, is_there
from s3commit.core.ports.objects import OpenUpload


@dataclass(slots=True)
class JobUploads:
    """Open uploads by key, each with its job; ``unknown`` are those of no job that is known.

    Of a job in OPEN there are none: its tasks write, and nothing is to be said of that.
    """

    of_jobs: dict[str, list[tuple[OpenUpload, JudgedJob]]] = field(default_factory=dict)
    unknown: list[OpenUpload] = field(default_factory=list)

    def are_open(self, key: str, job: JudgedJob) -> bool:
        """Whether an upload of the job is open at the key."""
        return any(one is job for _, one in self.of_jobs.get(key, ()))


def read_uploads(fsck: Fsck, destination: Destination, jobs: Mapping[str, JudgedJob]) -> JobUploads:
    """List the open uploads. Memory: some 500 bytes for each one of a job that is not in OPEN."""
    found, named = JobUploads(), _uploads_of_exact_names(fsck, jobs)
    for upload in fsck.ports.store.list_uploads(destination.bucket, destination.prefix):
        owner = owner_of(upload.key)
        job = named.get((upload.key, upload.upload_id)) or jobs.get(owner or "")
        if job is None:
            if owner:
                found.unknown.append(upload)
        elif is_older(upload, job.opened_at):
            continue  # another program's
        elif job.phase is not JobState.OPEN:
            found.of_jobs.setdefault(upload.key, []).append((upload, job))
    return found


def _uploads_of_exact_names(
    fsck: Fsck, jobs: Mapping[str, JudgedJob]
) -> dict[tuple[str, str], JudgedJob]:
    """The uploads that manifests and notes name, of exact names, each with its job.

    Of what two jobs name the one that has not ended counts: whoever wrote the other's manifest, the
    upload may be completed yet.
    """
    exact = [job for job in jobs.values() if job.names is Names.EXACT]

    def named(some: Iterable[JudgedJob]) -> dict[tuple[str, str], JudgedJob]:
        return {
            one: job
            for job in some
            if job.contents.scratch
            for one in uploads_named(fsck.ports, job.directory)
        }

    left = named(job for job in exact if job.has_ended)
    under_way = (job for job in exact if not job.has_ended)
    return left | named(job for job in under_way if left or job.phase in DECIDED_BY_MANIFEST)


def check_uploads(
    fsck: Fsck,
    destination: Destination,
    jobs: Mapping[str, JudgedJob],
    uploads: JobUploads,
    kept: Collection[str],
) -> Iterator[Finding]:
    """The uploads of jobs that have ended, and of jobs of which nothing is known.

    Those of other jobs than ``jobs`` are left alone, and those at the keys ``kept``, where one may
    be the last copy of a committed file.
    """
    bucket = destination.bucket

    @cache
    def has_job(prefix: str, job_id: str) -> bool:
        return is_there(fsck.ports.store, JobDirectory(Destination(bucket, prefix), job_id))

    owners = UploadOwners(fsck.ports, bucket, fsck.ports.ledger.jobs_with_id)

    def claimed_at(key: str, job: JudgedJob) -> str:
        """Where else the id of a job that the ledger does not know has a job."""
        above = directories_above(key)
        others = () if job.record else (one for one in above if one != destination.prefix)
        return next((one for one in others if has_job(one, job.directory.job_id)), "")

    @cache
    def is_outers(directory: JobDirectory) -> bool:
        return is_further_up(fsck.ports.store, directory)

    for key, of_key in uploads.of_jobs.items():
        for upload, job in of_key:
            job_id = job.directory.job_id
            if job_id not in jobs or not job.has_ended or job.running or key in kept:
                continue  # a job that ended a moment ago its execution tidies up
            if belongs_to_job(key, job_id):
                owner = owners.of(upload)
                if owner is Ownership.UNKNOWN:
                    yield Finding(UPLOAD_OF_NOBODY, bucket, key, job_id)
                if owner is not Ownership.ENDED:
                    continue
                # As for files: whoever may write here alone can't speak for the job further up.
                if is_outers(job.directory):
                    continue
            if claimed := claimed_at(key, job):
                yield Finding(CLAIMED, bucket, key, job_id, claimed)
                continue
            abort = repairs_of(UPLOAD_LEFT, bucket, key, job_id, upload_id=upload.upload_id)
            yield Finding(UPLOAD_LEFT, bucket, key, job_id, repairs=abort)
    for upload in uploads.unknown:
        if owners.of(upload) is Ownership.UNKNOWN:
            yield Finding(UPLOAD_OF_NOBODY, bucket, upload.key, owner_of(upload.key) or "")
