"""Other jobs at a destination, by the ids in file names: whose files a job must not touch (I5).

A job with exact names may write any file of its destination, save one whose name carries the id
of another job that has a directory, or a commit manifest, of its own there.
"""

from __future__ import annotations

from collections.abc import Iterable

from s3commit.core.errors import InvalidInputError, JobRefusedError
from s3commit.core.layout import COMMITS, MAGIC_PREFIX, JobDirectory, owner_of, parse_directory
from s3commit.core.model import PendingFile
from s3commit.core.ports import ObjectReader

ASKED_ONE_BY_ONE = 64  # ids; with more, all directories are listed once


class Neighbours:
    """The other jobs at a job's destination; asks S3 once for each id that names carry."""

    def __init__(self, store: ObjectReader, place: JobDirectory) -> None:
        self._store = store
        self._place = place
        self._asked: dict[str, bool] = {}
        self._all: frozenset[str] | None = None

    def own(self, key: str) -> bool:
        """Whether the file is another job's, by its name."""
        job_id = owner_of(key)
        if job_id is None or job_id == self._place.job_id:
            return False
        if job_id not in self._asked:
            self._asked[job_id] = self._is_there(job_id)
        return self._asked[job_id]

    def refuse(self, files: Iterable[PendingFile]) -> None:
        """Raise `JobRefusedError` (``NAME_NOT_UNIQUE``) if one of the files is another job's."""
        for file in files:
            if self.own(file.key):
                raise JobRefusedError(
                    f"file {file.key[:200]!r} carries the id of another job at"
                    f" {self._place.destination.uri}",
                    code="NAME_NOT_UNIQUE",
                )

    def _is_there(self, job_id: str) -> bool:
        if self._all is None and len(self._asked) >= ASKED_ONE_BY_ONE:
            self._all = self._list_all()
        if self._all is not None:
            return job_id in self._all
        other = JobDirectory(self._place.destination, job_id)
        return any(
            next(iter(self._store.list(other.bucket, prefix)), None) is not None
            for prefix in (other.prefix, other.commits)  # by listing: a HEAD takes more rights
        )

    def _list_all(self) -> frozenset[str]:
        bucket, prefix = self._place.bucket, self._place.destination.prefix
        found = set()
        for listed in self._store.list(bucket, prefix + MAGIC_PREFIX):
            try:
                found.add(parse_directory(bucket, listed.key).job_id)
            except InvalidInputError:
                continue  # the name of no job of ours
        for listed in self._store.list(bucket, prefix + COMMITS):
            found.add(listed.key.rsplit("/", 1)[-1].removesuffix(".jsonl"))
        return frozenset(found)
