"""Which jobs have removed files, where, and when: what is gone may have been replaced.

When a job was decided its own machine's clock says, which may be wrong. S3 says when the job's
commit manifest was put, and that is in the order of the jobs wherever one can have replaced
another's files: such jobs exclude each other by their locks, a commit manifest is put once, while
its job holds them, and before the first file is removed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping

from s3commit.core.formats.layout import JobDirectory, directories_above
from s3commit.core.formats.published import CommitHeader
from s3commit.core.fsck.jobs import FOREVER, JudgedJob, commit_manifests
from s3commit.core.fsck.ports import Fsck
from s3commit.core.job.stored_job import commit_document
from s3commit.core.model.job import Destination

_Moment = tuple[str, str]  # by S3, to the second; within one by the machines of the two jobs


class Replacements:
    """Which jobs have removed files, by directory.

    Those of the destination under check are known: of each directory the last two tell of every
    other one. One that replaces and was requested may do so while the check runs: it counts as the
    last. The other directories in which a missing file lies, below the destination and above, are
    asked for their commit manifests then, each once.
    """

    def __init__(self, fsck: Fsck, destination: Destination, jobs: Mapping[str, JudgedJob]) -> None:
        self._fsck = fsck
        self._destination = destination
        self._known: dict[str, list[tuple[_Moment, str]]] = defaultdict(list)
        self._elsewhere: dict[str, _Elsewhere] = {}
        for job_id, job in jobs.items():
            moment = (FOREVER, FOREVER) if job.may_replace else _listed_at(job)
            if job.may_replace or _has_removed(job.header):
                last = [*self._known[destination.prefix], (moment, job_id)]
                self._known[destination.prefix] = heapq.nlargest(2, last)

    def removed(self, key: str, job: JudgedJob) -> bool:
        """Whether a later job than this one has removed files where the key lies."""
        since, job_id = _listed_at(job), job.directory.job_id
        directories = directories_above(key)[::-1]  # no job owns a whole bucket
        for directory in directories:
            for moment, one in self._known.get(directory, ()):
                if moment > since and one != job_id:
                    return True
        return any(self._in(one).removed_since(since) for one in directories)

    def _in(self, directory: str) -> _Elsewhere:
        if directory not in self._elsewhere:
            there = Destination(self._destination.bucket, directory)
            is_known = there == self._destination
            self._elsewhere[directory] = _Elsewhere(self._fsck, there, is_known=is_known)
        return self._elsewhere[directory]


class _Elsewhere:
    """The last job of another destination that has removed files here.

    No commit manifest is read in vain. ``is_known``: this is the destination under check, whose
    commit manifests have all been read.
    """

    def __init__(self, fsck: Fsck, destination: Destination, *, is_known: bool) -> None:
        self._fsck = fsck
        self._destination = destination
        self._last = ("", "")
        listed = () if is_known else commit_manifests(fsck, destination)
        self._unread = sorted((put, job_id) for job_id, put in listed)

    def removed_since(self, moment: _Moment) -> bool:
        while self._last <= moment and self._unread and self._unread[-1][0] >= moment[0]:
            put, job_id = self._unread.pop()
            header = _own_header(self._fsck, JobDirectory(self._destination, job_id))
            if header is not None and _has_removed(header):
                self._last = max(self._last, (put, header.decided_at))
        return self._last > moment


def _own_header(fsck: Fsck, directory: JobDirectory) -> CommitHeader | None:
    """How the commit manifest of a job begins; None if there is none of a job of that place."""
    header = commit_document(fsck.ports, directory).value
    return header if header and header.destination == directory.destination.uri else None


def _listed_at(job: JudgedJob) -> _Moment:
    # What came while the jobs were read is newer than all that was listed.
    return job.listed_at or FOREVER, job.header.decided_at if job.header else ""


def _has_removed(header: CommitHeader | None) -> bool:
    return bool(header and header.replaced and header.replaced.files)
