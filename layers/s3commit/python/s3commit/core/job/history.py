"""What the jobs of a table have removed, by their manifests in ``_commits/``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.documents import CommitHeader, CommittedFile
from s3commit.core.formats.layout import (
    COMMITS,
    JobDirectory,
    directories_above,
    owner_of,
    parse_commit_manifest_key,
    partition_of,
)
from s3commit.core.job.documents import read_commit_header, read_commit_manifest
from s3commit.core.model.errors import NOT_READABLE
from s3commit.core.model.job import Destination, Scope
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.ports.bundle import ParallelMap, Ports, shifted
from s3commit.core.ports.objects import ListedObject, ObjectReader

MAX_UNDO_BYTES: Final = 256 * 1024 * 1024  # of a commit manifest: a million files have room in it
# What a job has removed: None stands for all at its destination, a directory with its "/" for a
# partition, and an id for the files of the job that it has undone.
Reach = set[str | None]


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed job. ``put_at`` is when S3 got its manifest (RFC 3339, UTC)."""

    directory: JobDirectory
    put_at: str
    header: CommitHeader

    @property
    def moment(self) -> tuple[str, str]:
        """Its place among the commits at and above one file."""
        return self.put_at, self.header.decided_at

    @property
    def undoes(self) -> JobDirectory | None:
        """The job that it undoes."""
        undone = self.header.undoes
        return JobDirectory(self.directory.destination, undone) if undone else None

    def reach(self, store: ObjectReader) -> Reach:
        """What it has removed, or would have. Requests: a GET where that is partitions."""
        if self.header.undoes:
            return {self.header.undoes}
        if self.header.scope is Scope.DIRECTORY:
            return {None}
        root = len(self.directory.destination.prefix)
        _, files = read_commit_manifest(store, self.directory, max_bytes=MAX_UNDO_BYTES)
        return {partition_of(file.key[root:]) for file in files}


def manifests_at(
    store: ObjectReader, destination: Destination
) -> Iterator[tuple[JobDirectory, ListedObject]]:
    """Each manifest of a committed job of the destination. One request for 1,000 jobs."""
    for listed in store.list(destination.bucket, destination.prefix + COMMITS):
        job = parse_commit_manifest_key(destination, listed.key)
        if job is not None:
            yield job, listed


def read_commits(
    store: ObjectReader,
    parallel: ParallelMap,
    manifests: Iterable[tuple[JobDirectory, ListedObject]],
) -> Iterator[Commit]:
    """Those that can be read, and lie where they belong. Requests: a GET each."""

    def read(one: tuple[JobDirectory, ListedObject]) -> Commit | None:
        job, listed = one
        try:
            return Commit(job, listed.modified, read_commit_header(store, job))
        except NOT_READABLE:
            return None

    return filter(None, parallel(read, manifests))


def reaches_of(file: CommittedFile, relative: str) -> Iterator[str | None]:
    """The elements of a `Reach` that a file is in; ``relative`` is its key below a destination."""
    yield None
    yield owner_of(file.first_key)
    yield partition_of(relative)
    yield from directories_above(relative)


def later_commits(ports: Ports, directory: JobDirectory, root: str) -> list[Commit] | None:
    """The commits since the job's own, above, at and below ``root``, in their order.

    None if its own is gone. Those of the seconds before it are among them, since S3's clocks tell
    no more (A7).
    """
    store, bucket = ports.store, directory.bucket
    found = {
        job: listed
        for at in directories_above(root)
        for job, listed in manifests_at(store, Destination(bucket, at))
    }
    for listed in store.list(bucket, root):
        place, inside, _ = listed.key.rpartition(COMMITS)
        job = parse_commit_manifest_key(Destination(bucket, place), listed.key) if inside else None
        if job is not None:
            found[job] = listed
    own = found.pop(directory, None)
    if own is None:
        return None
    since = shifted(own.modified, -S3_CLOCKS)
    some = ((job, listed) for job, listed in found.items() if listed.modified >= since)
    return sorted(read_commits(store, ports.parallel, some), key=lambda one: one.moment)


def undone_jobs(later: list[Commit]) -> dict[JobDirectory, JobDirectory]:
    """The jobs that are undone, each with the one that has undone it, whatever clocks say."""
    undoes = {one.directory: one.undoes for one in later if one.undoes is not None}
    undone: dict[JobDirectory, JobDirectory] = {}
    for last in undoes.keys() - set(undoes.values()):  # nobody has undone these
        by: JobDirectory | None = last
        while by in undoes and undoes[by] not in undone:  # a forged list may lead in a circle
            undone[undoes[by]] = by
            by = undoes.get(undoes[by])  # stands again
    return undone
