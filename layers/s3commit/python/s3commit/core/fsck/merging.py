"""Files that jobs name, objects, and open uploads, merged by key.

All three are in the order of keys, so one pass over the listings judges a batch of jobs with
memory for the batch's expected files alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from s3commit.core.formats.layout import JobDirectory, is_data, owner_of, partition_of
from s3commit.core.fsck.expecting import Batch, Expected
from s3commit.core.fsck.jobs import Job
from s3commit.core.fsck.later import Later
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.words import Named
from s3commit.core.model.job import Destination
from s3commit.core.ports.objects import ListedObject, OpenUpload


@dataclass(frozen=True, slots=True)
class Cell:
    """One file of one job as it was found. ``replaced``: its absence is a later job's doing."""

    job: Job | None
    key: str
    expected: Expected | None
    found: ListedObject | None
    uploads: tuple[OpenUpload, ...]
    replaced: bool


def cells(
    fsck: Fsck,
    destination: Destination,
    jobs: Mapping[str, Job],
    batch: Batch,
    later: Later,
) -> Iterator[Cell]:
    """Every file of the batch's jobs, and every thing that is one by its name, in key order."""
    strangers = _Strangers(fsck, destination, jobs)
    for key, found, uploads in _merged(fsck, destination, batch):
        of_job: dict[str, list[OpenUpload]] = {}
        for upload in uploads:
            owner = batch.uploads.get((key, upload.upload_id)) or owner_of(key)
            if owner in batch.jobs:
                of_job.setdefault(owner, []).append(upload)
            elif (
                owner
                and batch.first
                and key.startswith(destination.prefix)
                and strangers.unknown(owner, key)
            ):
                yield Cell(None, key, None, found, (upload,), False)
        expected = {one.job.directory.job_id: one for one in batch.files.get(key, ())}
        owner = owner_of(key)
        involved = {*expected, *of_job} | ({owner} if found and owner else set())
        for job_id in sorted(involved & batch.jobs.keys()):
            job, one = batch.jobs[job_id], expected.get(job_id)
            if one is None and not job.acts_at(key):
                continue  # by its name alone, where the job has no place: nobody knows whose
            mine = tuple(of_job.get(job_id, ())) if job.acts_at(key) else ()
            is_gone = found is None and one is not None and one.named is Named.LISTED
            yield Cell(job, key, one, found, mine, is_gone and later.removed(key, job))


class _Strangers:
    """The ids in names that are of no job here: whether anything is known of them elsewhere."""

    def __init__(self, fsck: Fsck, destination: Destination, jobs: Mapping[str, Job]) -> None:
        self._ports = fsck.ports
        self._destination = destination
        self._jobs = jobs
        self._asked: dict[tuple[str, str], bool] = {}

    def unknown(self, job_id: str, key: str) -> bool:
        if job_id in self._jobs:
            return False
        asked = (job_id, partition_of(key))
        if asked not in self._asked:
            self._asked[asked] = not self._ports.ledger.jobs_with_id(job_id) and not any(
                next(iter(self._ports.store.list(directory.bucket, directory.prefix)), None)
                for directory in self._directories_above(job_id, key)
            )
        return self._asked[asked]

    def _directories_above(self, job_id: str, key: str) -> Iterator[JobDirectory]:
        bucket, prefix = self._destination.bucket, partition_of(key)
        while prefix.startswith(self._destination.prefix):
            yield JobDirectory(Destination(bucket, prefix), job_id)
            prefix = partition_of(prefix.removesuffix("/"))


def _merged(
    fsck: Fsck, destination: Destination, batch: Batch
) -> Iterator[tuple[str, ListedObject | None, list[OpenUpload]]]:
    bucket, store = destination.bucket, fsck.ports.store
    directories = sorted({destination.prefix, *batch.directories}, key=str.encode)
    outermost: list[str] = []
    for prefix in directories:  # locations of different jobs may lie in each other
        if not outermost or not prefix.startswith(outermost[-1]):
            outermost.append(prefix)

    def shows(prefix: str, key: str) -> bool:
        if is_data(key[len(prefix) :]):
            return True
        return any(
            key.startswith(one) and is_data(key[len(one) :])
            for one in directories
            if one != prefix and one.startswith(prefix)
        )

    def objects() -> Iterator[tuple[str, Any]]:
        for prefix in outermost:
            for listed in store.list(bucket, prefix):
                if shows(prefix, listed.key):
                    yield listed.key, listed

    def uploads() -> Iterator[tuple[str, Any]]:
        for prefix in outermost:
            for upload in store.list_uploads(bucket, prefix):
                yield upload.key, upload

    def expected() -> Iterator[tuple[str, Any]]:
        for key in sorted(batch.files, key=str.encode):
            yield key, None

    def in_order(one: tuple[str, Any]) -> bytes:
        return one[0].encode()

    streams: Iterable[Iterator[tuple[str, Any]]] = (objects(), uploads(), expected())
    for key, group in groupby(heapq.merge(*streams, key=in_order), key=itemgetter(0)):
        things = [thing for _, thing in group]
        found = next((one for one in things if isinstance(one, ListedObject)), None)
        yield key, found, [one for one in things if isinstance(one, OpenUpload)]
