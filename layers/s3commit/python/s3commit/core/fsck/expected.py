"""The files that commit manifests and manifests name: batch by batch, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from s3commit.core.formats.published import CommittedFile
from s3commit.core.fsck.file_rules import KnownFrom
from s3commit.core.fsck.findings import Finding
from s3commit.core.fsck.job_rules import UNREADABLE, WithoutState
from s3commit.core.fsck.jobs import JudgedJob
from s3commit.core.fsck.ports import Fsck
from s3commit.core.job.documents import read_commit_manifest
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.model.states import JobState
from s3commit.core.ownership.named_uploads import named_files

BATCH_FILES: Final = 200_000

# In these a manifest says more than the file's name does.
DECIDED_BY_MANIFEST: Final = frozenset({JobState.SEALED, JobState.COMMITTING})


@dataclass(frozen=True, slots=True)
class Expected:
    """A file that a job's commit manifest, or one of its manifests (``pending``), names."""

    job: JudgedJob
    known: KnownFrom
    length: int
    etag: str = ""
    pending: PendingFile | None = None


@dataclass(slots=True)
class Batch:
    """Some jobs, and the files that they name, by key and job id."""

    jobs: dict[str, JudgedJob] = field(default_factory=dict)
    files: dict[str, dict[str, Expected]] = field(default_factory=dict)

    def expect(self, key: str, one: Expected) -> None:
        """Take a file in; what the commit manifest says of it counts more than a manifest."""
        self.files.setdefault(key, {}).setdefault(one.job.directory.job_id, one)


def batches(fsck: Fsck, jobs: Mapping[str, JudgedJob]) -> Iterator[Batch | Finding]:
    """The jobs in batches; a finding for one whose commit manifest turns out to be unreadable."""
    batch = Batch()
    for job_id, job in jobs.items():
        batch.jobs[job_id] = job
        try:
            _expect(fsck, batch, job)
        except (NotFoundError, InvalidInputError) as error:
            del batch.jobs[job_id]
            directory = job.directory
            yield Finding(UNREADABLE, directory.bucket, directory.commits, job_id, error.message)
        if len(batch.files) >= BATCH_FILES:
            yield batch
            batch = Batch()
    if batch.jobs:
        yield batch


def _expect(fsck: Fsck, batch: Batch, job: JudgedJob) -> None:
    if job.header is not None and job.phase is not WithoutState.IN_DOUBT:
        for file in committed_files(fsck, job):
            batch.expect(file.key, Expected(job, KnownFrom.COMMIT_MANIFEST, file.length, file.etag))
    left_exact = job.names is Names.EXACT and job.has_ended
    if left_exact or job.phase in DECIDED_BY_MANIFEST:
        for pending in _named_files(fsck, job):
            batch.expect(
                pending.key, Expected(job, KnownFrom.MANIFEST, pending.length, pending=pending)
            )


def _named_files(fsck: Fsck, job: JudgedJob) -> Iterator[PendingFile]:
    if job.contents.scratch:
        yield from named_files(fsck.ports, job.directory)


def committed_files(fsck: Fsck, job: JudgedJob) -> list[CommittedFile]:
    """What the job's commit manifest has.

    Raises `NotFoundError`, and `InvalidInputError` for one that can't be read, does not add up, or
    names a file outside the destination.
    """
    header, files = read_commit_manifest(fsck.ports.store, job.directory)
    if sum(file.length for file in files) != header.bytes:
        raise InvalidInputError(
            f"its files do not add up to {header.bytes} bytes", code="TRUNCATED"
        )
    for file in files:
        if not file.key.startswith(job.directory.destination.prefix):
            raise InvalidInputError(
                f"it names {file.key[:200]!r}, which lies outside the destination", code="TRUNCATED"
            )
    return files
