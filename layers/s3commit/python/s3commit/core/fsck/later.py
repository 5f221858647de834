"""Whether a file that is gone was replaced: which jobs have removed files where it lay, and when.

When a job was decided its own machine's clock says, which may be wrong. S3 says when the job's list
came to ``_commits/``, and that is in the order of the jobs wherever one can have replaced another's
files: such jobs exclude each other by their locks, a list is put once, while its job holds them,
and before the first file is removed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress

from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.formats.published import CommitHeader
from s3commit.core.fsck.jobs import FOREVER, Job, directory_keys, list_of, listings
from s3commit.core.fsck.ports import Fsck
from s3commit.core.job.locations import main_of
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination

_Moment = tuple[str, str]  # by S3, to the second; within one by the machines of the two jobs


class Later:
    """Which jobs have removed files, by directory.

    Those of the destination under check are known: of each directory the last two tell of every
    other one. One that replaces and was asked for may do so while the check runs: it counts as the
    last. The other directories in which a missing file lies, below the destination and above, are
    asked for their lists then, each once.
    """

    def __init__(self, fsck: Fsck, destination: Destination, jobs: Mapping[str, Job]) -> None:
        self._fsck = fsck
        self._destination = destination
        self._known: dict[str, list[tuple[_Moment, str]]] = defaultdict(list)
        self._elsewhere: dict[str, _Elsewhere] = {}
        for job_id, job in jobs.items():
            if job.may_replace:
                self._note(job, (FOREVER, FOREVER), job_id)
            elif _removed(job.header):
                self._note(job, _when(job), job_id)

    def _note(self, job: Job, moment: _Moment, job_id: str) -> None:
        for prefix in job.looked_at:
            last = [*self._known[prefix], (moment, job_id)]
            self._known[prefix] = heapq.nlargest(2, last)

    def removed(self, key: str, job: Job) -> bool:
        """Whether a job that came later than this one has removed files where the key lies."""
        since, job_id = _when(job), job.directory.job_id
        directories = list(_directories(key))
        for directory in directories:
            for moment, one in self._known.get(directory, ()):
                if moment > since and one != job_id:
                    return True
        return any(self._in(directory).since(since) for directory in directories)

    def _in(self, directory: str) -> _Elsewhere:
        if directory not in self._elsewhere:
            there = Destination(self._destination.bucket, directory)
            is_known = there == self._destination
            self._elsewhere[directory] = _Elsewhere(self._fsck, there, is_known=is_known)
        return self._elsewhere[directory]


class _Elsewhere:
    """The last job of another destination that has removed files here; no list is read in vain.

    ``is_known``: this is the destination under check, of which all lists have been read.
    """

    def __init__(self, fsck: Fsck, destination: Destination, *, is_known: bool) -> None:
        self._fsck = fsck
        self._destination = destination
        self._unread: list[tuple[str, str]] = []
        self._last = max(_at_location(fsck, destination), default=("", ""))
        if not is_known:
            self._unread = sorted((put, job_id) for job_id, put in listings(fsck, destination))

    def since(self, moment: _Moment) -> bool:
        while self._last <= moment and self._unread and self._unread[-1][0] >= moment[0]:
            put, job_id = self._unread.pop()
            header = self._header(JobDirectory(self._destination, job_id))
            if header is not None and _removed(header):
                self._last = max(self._last, (put, header.decided_at))
        return self._last > moment

    def _header(self, directory: JobDirectory) -> CommitHeader | None:
        try:
            header = list_of(self._fsck, directory)
        except (NotFoundError, InvalidInputError):
            return None
        return header if header.destination == directory.destination.uri else None


def _at_location(fsck: Fsck, destination: Destination) -> Iterator[_Moment]:
    """When jobs of elsewhere, which have a partition's location here, have removed files.

    Their directories here tell, as long as they are kept: they have a ``job.json``, and unlike
    those of the destination's own jobs no word of a driver (docs/adr/0013).
    """
    jobs: dict[JobDirectory, set[str]] = defaultdict(set)
    for directory, key in directory_keys(fsck, destination):
        jobs[directory].add(key)
    for directory, keys in jobs.items():
        if directory.job not in keys or not keys.isdisjoint({directory.request, directory.result}):
            continue
        with suppress(NotFoundError, InvalidInputError):
            main = main_of(fsck.ports, directory)
            if main is None:
                continue
            header = list_of(fsck, main)
            here = destination.prefix in header.locations.values()
            if here and header.destination == main.destination.uri and _removed(header):
                for put in fsck.looks.objects(main.bucket, main.commits):
                    yield put.modified, header.decided_at


def _when(job: Job) -> _Moment:
    # A list that came while the jobs were read is newer than all that were listed.
    return job.traces.listed_at or FOREVER, job.header.decided_at if job.header else ""


def _removed(header: CommitHeader | None) -> bool:
    return bool(header and header.replaced and header.replaced.files)


def _directories(key: str) -> Iterator[str]:
    """The directories in which a key lies, from the nearest up; no job owns a whole bucket."""
    directory = partition_of(key)
    while directory:
        yield directory
        directory = partition_of(directory.removesuffix("/"))
