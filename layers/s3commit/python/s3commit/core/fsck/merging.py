"""Files that jobs name, objects, and open uploads, merged by key.

All three are in the order of keys, so one pass over the listings judges a batch of jobs with
memory for the batch's expected files alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from s3commit.core.errors import InvalidInputError, NotFoundError
from s3commit.core.fsck.findings import Finding
from s3commit.core.fsck.job_table import UNREADABLE
from s3commit.core.fsck.jobs import FOREVER, Job
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.words import Named, Standing
from s3commit.core.layout import JobDirectory, is_data, owner_of, partition_of
from s3commit.core.model import Destination, Names, PendingFile
from s3commit.core.ports import ListedObject, OpenUpload
from s3commit.core.protocol.named_uploads import named_files, uploads_named
from s3commit.core.protocol.pipeline import read_commit_manifest

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

    ``first`` says that what is no job's is judged along with it.
    """

    first: bool = False
    jobs: dict[str, Job] = field(default_factory=dict)
    files: dict[str, list[Expected]] = field(default_factory=dict)
    uploads: dict[tuple[str, str], str] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Cell:
    """One file of one job as it was found. ``replaced``: its absence is a later job's doing."""

    job: Job | None
    key: str
    expected: Expected | None
    found: ListedObject | None
    uploads: tuple[OpenUpload, ...]
    replaced: bool


class Later:
    """Which jobs have removed files here, and when: the last two tell of every other one.

    One that replaces and was asked for may do so while the check runs: it counts as the last.
    """

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        removing = [
            (job.header.decided_at, job_id)
            for job_id, job in jobs.items()
            if job.header and job.header.replaced and job.header.replaced.files
        ]
        about_to = [(FOREVER, job_id) for job_id, job in jobs.items() if job.may_replace]
        self._last = heapq.nlargest(2, [*removing, *about_to])

    def than(self, job: Job) -> bool:
        """Whether another job was decided later than this one, and has removed files."""
        decided_at = job.header.decided_at if job.header else ""
        return any(
            moment > decided_at and job_id != job.place.job_id for moment, job_id in self._last
        )


def batches(fsck: Fsck, jobs: Mapping[str, Job]) -> Iterator[Batch | Finding]:
    """The jobs in batches; a finding for one whose list turns out not to be readable."""
    batch = Batch(first=True)
    for job_id, job in jobs.items():
        batch.jobs[job_id] = job
        try:
            _expect(fsck, batch, job)
        except NotFoundError:
            del batch.jobs[job_id]  # gone since it was listed
        except InvalidInputError as error:
            del batch.jobs[job_id]
            place = job.place
            yield Finding(UNREADABLE, place.bucket, place.commits, job_id, error.message)
        if len(batch.files) >= BATCH_FILES:
            yield batch
            batch = Batch()
    if batch.first or batch.jobs:
        yield batch


def _expect(fsck: Fsck, batch: Batch, job: Job) -> None:
    place = job.place
    if job.header is not None and job.standing is not Standing.IN_DOUBT:
        _, committed = read_commit_manifest(fsck.pipeline, place)
        for file in committed:
            listed = Expected(job, Named.LISTED, file.length, file.etag)
            batch.files.setdefault(file.key, []).append(listed)
        batch.places |= set(job.header.locations.values())
    exact_leftovers = job.names is Names.EXACT and job.standing in _OVER
    if not job.traces.scratch or not (exact_leftovers or job.standing in _ASKED):
        return
    for pending in named_files(fsck.pipeline, place):
        known = batch.files.setdefault(pending.key, [])
        if not any(one.job is job and one.named is Named.LISTED for one in known):
            known.append(Expected(job, Named.PENDING, pending.length, pending=pending))
    if job.names is Names.EXACT:
        for key, upload_id in uploads_named(fsck.pipeline, place):
            batch.uploads[key, upload_id] = place.job_id
            batch.files.setdefault(key, [])


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
            elif owner and batch.first and strangers.unknown(owner, key):
                yield Cell(None, key, None, found, (upload,), False)
        expected = {one.job.place.job_id: one for one in batch.files.get(key, ())}
        owner = owner_of(key)
        involved = {*expected, *of_job} | ({owner} if found and owner in batch.jobs else set())
        for job_id in sorted(involved & batch.jobs.keys()):
            job = batch.jobs[job_id]
            one = expected.get(job_id)
            replaced = one is not None and one.named is Named.LISTED and later.than(job)
            yield Cell(job, key, one, found, tuple(of_job.get(job_id, ())), replaced)


class _Strangers:
    """The ids in names that are of no job here: whether anything is known of them elsewhere."""

    def __init__(self, fsck: Fsck, destination: Destination, jobs: Mapping[str, Job]) -> None:
        self._pipeline = fsck.pipeline
        self._destination = destination
        self._jobs = jobs
        self._asked: dict[tuple[str, str], bool] = {}

    def unknown(self, job_id: str, key: str) -> bool:
        if job_id in self._jobs:
            return False
        asked = (job_id, partition_of(key))
        if asked not in self._asked:
            self._asked[asked] = self._pipeline.ledger.job(job_id) is None and not any(
                next(iter(self._pipeline.store.list(place.bucket, place.prefix)), None)
                for place in self._directories_above(job_id, key)
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
    prefixes = sorted({destination.prefix, *batch.places}, key=str.encode)
    bucket, store = destination.bucket, fsck.pipeline.store

    def objects() -> Iterator[tuple[str, Any]]:
        for prefix in prefixes:
            for listed in store.list(bucket, prefix):
                if is_data(listed.key[len(prefix) :]):
                    yield listed.key, listed

    def uploads() -> Iterator[tuple[str, Any]]:
        for upload in store.list_uploads(bucket, destination.prefix):
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
