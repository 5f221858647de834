"""Other jobs at a destination or above it, by their ids: their files are not touched (I5, I12).

A job with exact names may write any file of its destination, save one whose name carries the id
of another job that has a directory, or a commit manifest, of its own there or further up. And where
one id has directories inside each other, what carries it is the outer one's: whoever may write
below a directory alone can't have made that one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from s3commit.core.formats.file_names import belongs_to_job, owner_of
from s3commit.core.formats.layout import (
    COMMITS,
    MAGIC_PREFIX,
    JobDirectory,
    directories_above,
    parse_directory,
)
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.job import Destination
from s3commit.core.model.pending import PendingFile
from s3commit.core.ports.bundle import ParallelMap
from s3commit.core.ports.objects import ObjectReader

ASKED_ONE_BY_ONE = 64  # ids; with more, all directories are listed once


def is_there(store: ObjectReader, directory: JobDirectory) -> bool:
    """Whether the job has a directory or a commit manifest here."""
    return any(_has_objects(store, directory.bucket, prefix) for prefix in _traces(directory))


def is_further_up(
    store: ObjectReader, directory: JobDirectory, parallel: ParallelMap = map
) -> bool:
    """Whether a directory above has a job of the same id: then this one is not the job (I12).

    Two listings for each directory above.
    """
    above = directories_above(directory.destination.prefix)
    jobs = (JobDirectory(Destination(directory.bucket, one), directory.job_id) for one in above)
    prefixes = (prefix for job in jobs for prefix in _traces(job))
    return any(parallel(partial(_has_objects, store, directory.bucket), prefixes))


def _has_objects(store: ObjectReader, bucket: str, prefix: str) -> bool:
    """Whether there is any, by a listing: a HEAD takes more rights."""
    return next(iter(store.list(bucket, prefix)), None) is not None


def _traces(directory: JobDirectory) -> tuple[str, str]:
    return directory.prefix, directory.commits


class OtherJobs:
    """The other jobs at a job's destination; asks S3 once for each id that names carry."""

    def __init__(self, store: ObjectReader, directory: JobDirectory) -> None:
        self._store = store
        self._directory = directory
        self._asked: dict[str, bool] = {}
        self._all: frozenset[str] | None = None

    def own(self, key: str) -> bool:
        """Whether the file is another job's, by its name."""
        job_id = owner_of(key)
        if job_id is None:
            return False
        if job_id not in self._asked:
            self._asked[job_id] = self._is_there(job_id)
        return self._asked[job_id]

    def refuse(self, files: Iterable[PendingFile]) -> None:
        """Raise `JobRefusedError` (``NAME_NOT_UNIQUE``) if one of the files is another job's."""
        for file in files:
            # That its own id is nobody's further up SealJob has seen.
            if not belongs_to_job(file.key, self._directory.job_id) and self.own(file.key):
                raise JobRefusedError(
                    f"file {file.key[:200]!r} carries the id of another job at"
                    f" {self._directory.destination.uri}",
                    code="NAME_NOT_UNIQUE",
                )

    def _is_there(self, job_id: str) -> bool:
        if job_id == self._directory.job_id:
            return is_further_up(self._store, self._directory)
        if self._all is None and len(self._asked) >= ASKED_ONE_BY_ONE:
            self._all = self._list_all()
        if self._all is not None:
            return job_id in self._all
        other = JobDirectory(self._directory.destination, job_id)
        return is_there(self._store, other) or is_further_up(self._store, other)

    def _list_all(self) -> frozenset[str]:
        bucket, here = self._directory.bucket, self._directory.destination.prefix
        found = set()
        for prefix in (*directories_above(here), here):
            for listed in self._store.list(bucket, prefix + MAGIC_PREFIX):
                try:
                    found.add(parse_directory(bucket, listed.key).job_id)
                except InvalidInputError:
                    continue  # the name of no job of ours
            for listed in self._store.list(bucket, prefix + COMMITS):
                found.add(listed.key.rsplit("/", 1)[-1].removesuffix(".jsonl"))
        return frozenset(found)
