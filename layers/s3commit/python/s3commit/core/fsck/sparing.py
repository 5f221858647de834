"""What is spared though a row would have it repaired: it may be another job's (I5).

Two things speak against a repair that the tables, which see one job at a time, do not know: that
another job's list in ``_commits/`` has the file, and that the job's id has a directory or a list
nearer to the file, or further up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.fsck.expecting import Batch, committed_files
from s3commit.core.fsck.findings import Finding, Repair
from s3commit.core.fsck.jobs import Job
from s3commit.core.fsck.other_table import CLAIMED
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.words import Action
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination


class Claims:
    """Where else an id has a job: asked for jobs that the ledger does not know, once a directory.

    The ledger's record says where a job is. Without one its directories do, and of two nobody can
    tell which one wrote a file: an id that was used twice has one that was turned away, and it is
    long forgotten which (docs/adr/0010).
    """

    def __init__(self, fsck: Fsck) -> None:
        self._store = fsck.ports.store
        self._asked: dict[tuple[str, str, str], bool] = {}

    def respected(self, found: Finding, jobs: Mapping[str, Job]) -> Finding:
        """The finding, or one that leaves the file alone since the id is claimed elsewhere."""
        job = jobs.get(found.job_id)
        if not found.repairs or job is None or job.record is not None:
            return found
        here = {directory.destination.prefix for directory in job.directories}
        node = partition_of(found.key)
        while node:
            if node not in here and self._is_claimed(found.bucket, node, found.job_id):
                return replace(found, verdict=CLAIMED, detail=node, repairs=())
            node = partition_of(node.removesuffix("/"))
        return found

    def _is_claimed(self, bucket: str, node: str, job_id: str) -> bool:
        asked = (bucket, node, job_id)
        if asked not in self._asked:
            directory = JobDirectory(Destination(bucket, node), job_id)
            self._asked[asked] = any(
                next(iter(self._store.list(bucket, prefix)), None) is not None
                for prefix in (directory.prefix, directory.commits)
            )
        return self._asked[asked]


def unless_listed(
    fsck: Fsck, jobs: Mapping[str, Job], batch: Batch, findings: Iterable[Finding]
) -> Iterator[Finding]:
    """The findings, without those that would delete a file which a readable list has.

    Lists of the batch are in memory; the others are read only if there is something to delete.
    """
    held: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        others = batch.listed_by_others(one.key, one.job_id)
        if not any(_is_the_file(one.repairs, file.etag) for file in others):
            held[one.key].append(one)
    for job_id, job in jobs.items():
        if not held:
            return
        is_known = job_id in batch.jobs and not job.is_in_doubt
        if job.header is None or is_known:
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
                    if one.job_id == job_id or not _is_the_file(one.repairs, file.etag)
                ]
    for left in held.values():
        yield from left


def _is_the_file(repairs: Iterable[Repair], etag: str) -> bool:
    """Whether a repair would delete the listed file, or all that there is in its place.

    By version what lies under it comes back, so other bytes over a listed file may go.
    """
    return any(
        one.action is Action.DELETE_OBJECT and (not one.version_id or etag in {"", one.etag})
        for one in repairs
    )
