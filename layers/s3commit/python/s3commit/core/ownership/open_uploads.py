"""Whose is an open upload that somebody came across? One rule for the sweep and for the command.

The job's id in the file name says it, and nothing else is proof; where in doubt, it is not ours.
S3 alone does not tell what is foreign: whatever carries no id, or the id of a write of Spark's own,
is left alone (I5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from s3commit.core.formats.file_names import is_of_other_writers, owner_of
from s3commit.core.formats.layout import COMMITS, MAGIC_PREFIX, JobDirectory, directories_above
from s3commit.core.job.documents import opened_at
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, OpenUpload, listed_at

MOST_REMEMBERED: Final = 10_000  # answers of each kind; more are asked for again
# Directories above a key that are asked; what lies deeper is left to the lifecycle rule.
DEEPEST: Final = 96


def is_older(upload: OpenUpload, opened_at: str) -> bool:
    """Whether the upload was begun before the job's ``job.json``: it is another program's (I12).

    Whatever its name says, or a manifest: anyone who sees an open upload can open a job with the id
    in its name. ``opened_at`` is when S3 got that document.
    """
    return upload.initiated < opened_at


class Ownership(StrEnum):
    """Whose an upload is, by the job id in its file name."""

    ENDED = "ended"  # of a job that has ended: it can never be completed
    UNDER_WAY = "under way"  # of a job that may still commit it, or nobody can tell
    UNKNOWN = "unknown"  # no trace of its job, below a directory where jobs have been
    FOREIGN = "foreign"  # no job's: no id in its name, or no trace of any job above it


@dataclass(frozen=True, slots=True)
class _Trace:
    """What S3 tells of a job; ``opened_at`` is as in `is_older`."""

    ownership: Ownership
    opened_at: str = ""


@dataclass(frozen=True, slots=True)
class _Documents:
    """Which documents lie in a job directory in which something does."""

    job: ListedObject | None
    request: ListedObject | None
    result: ListedObject | None


@dataclass(slots=True)
class UploadOwners:
    """Answers for many uploads of one bucket; remembers what it has asked.

    ``jobs_with_id`` are the ledger's records of an id (none without a ledger). ``unended`` hears of
    each job directory that has no result.
    """

    ports: Ports
    bucket: str
    jobs_with_id: Callable[[str], list[JobRecord]]
    unended: Callable[[JobDirectory], None] = lambda _directory: None
    _records: dict[str, list[JobRecord]] = field(default_factory=dict)
    _opened: dict[str, str] = field(default_factory=dict)
    _traces: dict[tuple[str, str], _Trace | None] = field(default_factory=dict)
    _managed: dict[str, bool] = field(default_factory=dict)

    def of(self, upload: OpenUpload) -> Ownership:
        """Whose the upload is."""
        job_id = owner_of(upload.key)
        if job_id is None:
            return Ownership.FOREIGN
        found = self._by_directories(upload, job_id)
        for each in (self._records, self._opened, self._traces, self._managed):
            if len(each) > MOST_REMEMBERED:
                each.clear()
        if found is Ownership.UNKNOWN and is_of_other_writers(upload.key):
            return Ownership.FOREIGN
        return found

    def _by_directories(self, upload: OpenUpload, job_id: str) -> Ownership:
        """By the ledger's record or the job directory of the outermost directory that has one.

        Whoever may write below a directory alone can't have made one further up (I12).
        """
        if upload.key.count("/") > DEEPEST:
            return Ownership.UNDER_WAY  # too deep to be asked for: nobody knows
        if job_id not in self._records:
            self._records[job_id] = self.jobs_with_id(job_id)
        records = self._records[job_id]
        here = {
            record.destination.prefix: record
            for record in records
            if record.destination.bucket == self.bucket
        }
        is_managed = False
        for prefix in directories_above(upload.key):
            record = here.get(prefix)
            if record is not None:
                return self._by_record(upload, record)
            # Where no job has ever been nothing can be this one's: few are asked for each id.
            if self._is_managed(prefix):
                is_managed = True
                found = self._trace(JobDirectory(Destination(self.bucket, prefix), job_id))
                if found is not None and is_older(upload, found.opened_at):
                    return Ownership.FOREIGN
                if found is not None:
                    return found.ownership
        if records:
            return Ownership.UNDER_WAY  # its job is elsewhere, and nobody knows what this is
        return Ownership.UNKNOWN if is_managed else Ownership.FOREIGN

    def _by_record(self, upload: OpenUpload, record: JobRecord) -> Ownership:
        if record.ref not in self._opened:
            self._opened[record.ref] = opened_at(self.ports.store, record)
        since = self._opened[record.ref]
        if is_older(upload, since):
            return Ownership.FOREIGN
        if record.state not in ENDED:
            return Ownership.UNDER_WAY
        if not since:
            return Ownership.UNKNOWN  # without a job.json a name proves nothing
        return Ownership.ENDED

    def _is_managed(self, prefix: str) -> bool:
        """Whether jobs have been at work in the directory: job directories, or ``_commits/``."""
        if prefix not in self._managed:
            self._managed[prefix] = any(
                next(iter(self.ports.store.list(self.bucket, prefix + name)), None) is not None
                for name in (MAGIC_PREFIX, COMMITS)
            )
        return self._managed[prefix]

    def _trace(self, directory: JobDirectory) -> _Trace | None:
        asked = (directory.destination.prefix, directory.job_id)
        if asked not in self._traces:
            self._traces[asked] = self._read_trace(directory)
        return self._traces[asked]

    def _read_trace(self, directory: JobDirectory) -> _Trace | None:
        return self._judged(directory, self._look(directory))

    def _look(self, directory: JobDirectory) -> _Documents | None:
        """By listing, a request for each, however much lies there."""
        store, bucket = self.ports.store, directory.bucket
        if next(iter(store.list(bucket, directory.prefix)), None) is None:
            return None
        keys = (directory.job, directory.request, directory.result)
        return _Documents(*(listed_at(store, bucket, key) for key in keys))

    def _judged(self, directory: JobDirectory, found: _Documents | None) -> _Trace | None:
        if found is not None and not found.result:
            self.unended(directory)
            return _Trace(Ownership.UNDER_WAY)
        if found is None:
            commits = self.ports.store.list(directory.bucket, directory.commits)
            if next(iter(commits), None) is None:
                return None
        opened_at = found.job.modified if found is not None and found.job is not None else ""
        # Anyone may put a result or a commit manifest. Of a job whose job.json is gone nothing
        # tells which uploads are older than it: they are left until they are old.
        return _Trace(Ownership.ENDED if opened_at else Ownership.UNKNOWN, opened_at)
