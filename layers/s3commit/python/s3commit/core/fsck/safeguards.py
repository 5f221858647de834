"""What speaks against a delete that the tables, which see one job at a time, do not know (I5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from s3commit.core.fsck.expected import committed_files
from s3commit.core.fsck.findings import Finding
from s3commit.core.fsck.jobs import JudgedJob
from s3commit.core.fsck.ports import Fsck
from s3commit.core.model.errors import InvalidInputError, NotFoundError


def unless_listed(
    fsck: Fsck, jobs: Mapping[str, JudgedJob], deleting: Iterable[Finding]
) -> Iterator[Finding]:
    """The findings, without those that would delete a file which another job's manifest has.

    Every commit manifest that can be read counts; they are read only if there is something to
    delete.
    """
    held: dict[str, list[Finding]] = defaultdict(list)
    for one in deleting:
        held[one.key].append(one)
    for job_id, job in jobs.items():
        if not held:
            return
        if job.header is None:
            continue
        try:
            listed = committed_files(fsck, job)
        except (InvalidInputError, NotFoundError):
            continue
        for file in listed:
            if file.key in held:
                held[file.key] = [
                    one
                    for one in held[file.key]
                    if one.job_id == job_id or not _deletes(one, file.etag)
                ]
    for left in held.values():
        yield from left


def _deletes(finding: Finding, etag: str) -> bool:
    """Whether a repair would delete the listed file, or all that there is in its place.

    By version what lies under it comes back, so other bytes over a listed file may go.
    """
    return any(not one.version_id or etag in {"", one.etag} for one in finding.repairs)
