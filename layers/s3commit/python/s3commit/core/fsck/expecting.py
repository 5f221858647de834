"""The files that jobs name, in lists and in manifests: batch by batch, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from s3commit.core.formats.published import CommittedFile
from s3commit.core.fsck.findings import Finding
from s3commit.core.fsck.job_table import UNREADABLE
from s3commit.core.fsck.jobs import Job
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.words import Named, Standing
from s3commit.core.job.documents import read_commit_manifest
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.named_uploads import named_files, uploads_named

BATCH_FILES: Final = 200_000

# In these a manifest says more than the file's name does.
_ASKED: Final = frozenset({Standing.SEALED, Standing.COMMITTING})
_OVER: Final = frozenset({Standing.COMMITTED, Standing.ABORTED, Standing.ROLLED_BACK})


@dataclass(frozen=True, slots=True)
class Expected:
    """A file that a job's list, or one of its manifests (``pending``), names."""

    job: Job
    named: Named
    length: int
    etag: str = ""
    pending: PendingFile | None = None


@dataclass(slots=True)
class Batch:
    """Some jobs, and the files that they name, by key. ``uploads`` are those that manifests name.

    ``directories`` are the prefixes where they may lie. ``first`` says that what is no job's is
    judged along with it.
    """

    first: bool = False
    jobs: dict[str, Job] = field(default_factory=dict)
    files: dict[str, list[Expected]] = field(default_factory=dict)
    uploads: dict[tuple[str, str], str] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)

    def listed_by_others(self, key: str, job_id: str) -> Iterator[Expected]:
        """The files at the key that lists of other jobs have."""
        for one in self.files.get(key, ()):
            if one.named is Named.LISTED and one.job.directory.job_id != job_id:
                yield one


def batches(fsck: Fsck, jobs: Mapping[str, Job]) -> Iterator[Batch | Finding]:
    """The jobs in batches; a finding for one whose list turns out not to be readable."""
    batch, living = Batch(first=True), _Living(fsck, jobs)
    for job_id, job in jobs.items():
        batch.jobs[job_id] = job
        try:
            _expect(fsck, batch, job, living)
        except NotFoundError:
            del batch.jobs[job_id]  # gone since it was listed
        except InvalidInputError as error:
            del batch.jobs[job_id]
            directory = job.directory
            yield Finding(UNREADABLE, directory.bucket, directory.commits, job_id, error.message)
        if len(batch.files) >= BATCH_FILES:
            yield batch
            batch = Batch()
    if batch.first or batch.jobs:
        yield batch


def _expect(fsck: Fsck, batch: Batch, job: Job, living: _Living) -> None:
    batch.directories |= job.looked_at
    if job.header is not None and job.standing is not Standing.IN_DOUBT:
        for file in committed_files(fsck, job):
            listed = Expected(job, Named.LISTED, file.length, file.etag)
            batch.files.setdefault(file.key, []).append(listed)
    exact_leftovers = job.names is Names.EXACT and job.standing in _OVER
    if not (job.traces.scratch or job.locations):
        return
    if not (exact_leftovers or job.standing in _ASKED):
        return
    for directory in job.directories:
        for pending in named_files(fsck.ports, directory):
            known = batch.files.setdefault(pending.key, [])
            if not any(one.job is job and one.named is Named.LISTED for one in known):
                known.append(Expected(job, Named.PENDING, pending.length, pending=pending))
        if job.names is not Names.EXACT:
            continue
        for named in uploads_named(fsck.ports, directory):
            if job.standing in _OVER and living.name(named):
                continue  # whoever wrote that manifest: the upload is of a job that lives
            batch.uploads[named] = job.directory.job_id
            batch.files.setdefault(named[0], [])


def committed_files(fsck: Fsck, job: Job) -> list[CommittedFile]:
    """What the job's list has.

    Raises `NotFoundError`, and `InvalidInputError` for one that can't be read, does not add up, or
    names a file where the job has no place.
    """
    header, files = read_commit_manifest(fsck.ports, job.directory)
    if sum(file.length for file in files) != header.bytes:
        raise InvalidInputError(
            f"its files do not add up to {header.bytes} bytes", code="TRUNCATED"
        )
    directories = tuple(job.looked_at)
    for file in files:
        if not file.key.startswith(directories):
            raise InvalidInputError(
                f"it names {file.key[:200]!r}, which lies in no place of the job", code="TRUNCATED"
            )
    return files


class _Living:
    """The uploads that manifests of jobs with exact names, which have not ended, name."""

    def __init__(self, fsck: Fsck, jobs: Mapping[str, Job]) -> None:
        self._fsck = fsck
        self._jobs = jobs
        self._uploads: frozenset[tuple[str, str]] | None = None

    def name(self, upload: tuple[str, str]) -> bool:
        if self._uploads is None:
            self._uploads = frozenset(
                named
                for job in self._jobs.values()
                if job.names is Names.EXACT and job.standing not in _OVER and job.traces.scratch
                for directory in job.directories
                for named in uploads_named(self._fsck.ports, directory)
            )
        return upload in self._uploads
