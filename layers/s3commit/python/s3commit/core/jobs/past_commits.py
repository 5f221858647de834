"""The committed jobs of a table and what they removed, by their manifests in ``_commits/``."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from s3commit.core.documents.commit_manifest import (
    MAX_COMMITS_BYTES,
    CommitHeader,
    CommittedFile,
    read_commit_header,
    stream_commit_manifest,
)
from s3commit.core.formats.layout import (
    COMMITS,
    JobDirectory,
    directories_above,
    owner_of,
    parse_commit_manifest_key,
    partition_of,
)
from s3commit.core.model.destination import Destination, Scope
from s3commit.core.model.errors import NOT_READABLE
from s3commit.core.ports.objects import ListedObject, ObjectReader
from s3commit.core.ports.parallel import ParallelMap

# The things a job has removed: None means all at its destination, a directory with its "/" for a
# partition, and an id for the files of the job that it has undone.
Reach = set[str | None]
AnyJob = TypeVar("AnyJob", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed job. ``put_at`` is when S3 got its manifest (RFC 3339, UTC), of ``length`` bytes.

    Of a long manifest it is when its upload was started: jobs that exclude each other have the same
    order by either.
    """

    directory: JobDirectory
    put_at: str
    header: CommitHeader
    length: int = 0

    @property
    def moment(self) -> tuple[str, str]:
        """Its place among the commits at and above one file."""
        return self.put_at, self.header.decided_at

    @property
    def undoes(self) -> JobDirectory | None:
        """The job that it undoes."""
        undone = self.header.undoes
        return JobDirectory(self.directory.destination, undone) if undone else None

    def reach(
        self,
        store: ObjectReader,
        *,
        max_bytes: int = MAX_COMMITS_BYTES,
        among: Collection[str] | None = None,
        each: Callable[[Iterator[CommittedFile]], Iterator[CommittedFile]] = iter,
    ) -> Reach:
        """The files it has removed, or would have. Requests: a GET where that is partitions.

        Of these only those ``among`` the directories given, if any are; ``each`` sees every file.
        Raises as `read_commit_manifest`.
        """
        if self.header.undoes:
            return {self.header.undoes}
        if self.header.scope is Scope.DIRECTORY:
            return {None}
        root = len(self.directory.destination.prefix)
        _, files = stream_commit_manifest(store, self.directory, max_bytes=max_bytes)
        places = (partition_of(file.key) for file in each(files))
        return {at[root:] for at in places if among is None or at in among}


def manifests_at(
    store: ObjectReader, destination: Destination, start: str = ""
) -> Iterator[tuple[JobDirectory, ListedObject]]:
    """Each manifest of a committed job of the destination, of which the id begins with ``start``.

    One request for 1,000 jobs.
    """
    prefix = destination.prefix + COMMITS + (start and f"_{start}")
    for listed in store.list(destination.bucket, prefix):
        job = parse_commit_manifest_key(destination, listed.key)
        if job is not None:
            yield job, listed


def read_commits(
    store: ObjectReader,
    parallel: ParallelMap,
    manifests: Iterable[tuple[JobDirectory, ListedObject]],
) -> Iterator[Commit]:
    """Those that can be read, and are where they belong. Requests: a GET each."""

    def read(one: tuple[JobDirectory, ListedObject]) -> Commit | None:
        job, listed = one
        try:
            return Commit(job, listed.modified, read_commit_header(store, job), listed.length)
        except NOT_READABLE:
            return None

    return filter(None, parallel(read, manifests))


def reaches_of(file: CommittedFile, relative: str) -> Iterator[str | None]:
    """The elements of a `Reach` that a file is in; ``relative`` is its key below a destination."""
    yield None
    yield owner_of(file.key)  # of a copy: the undo that has brought it back
    yield owner_of(file.first_key)
    yield partition_of(relative)
    yield from directories_above(relative)


def manifests_below(
    bucket: str, listing: Iterable[ListedObject]
) -> Iterator[tuple[JobDirectory, ListedObject]]:
    """Those of all destinations in a listing of a directory."""
    for listed in listing:
        place, inside, _ = listed.key.rpartition(COMMITS)
        job = parse_commit_manifest_key(Destination(bucket, place), listed.key) if inside else None
        if job is not None:
            yield job, listed


def undone_jobs(commits: Iterable[Commit]) -> dict[JobDirectory, JobDirectory]:
    """The jobs that are undone, each with the one that has undone it."""
    return undone_by((one.directory, one.undoes) for one in commits if one.undoes)


def undone_by(
    undos: Iterable[tuple[AnyJob, AnyJob]], leaving: Collection[AnyJob] = ()
) -> dict[AnyJob, AnyJob]:
    """The jobs that are undone, each with its undo; ``undos`` are pairs of an undo and its job.

    Of an undo the ``leaving`` ones bring nothing back, so what it has undone stays undone.

    No clock is asked: an undo comes after the job that it undoes, whatever the times say. Honest
    jobs make no circle; what a stranger's circle undoes depends on where the search begins.
    """
    found: dict[AnyJob, list[AnyJob]] = {}
    for undo, job in undos:
        found.setdefault(job, []).append(undo)
    by: dict[AnyJob, AnyJob | None] = {}  # the undo in effect of each job

    def keeps_removed(undo: AnyJob) -> bool:
        back = by.get(undo, undo)  # it has brought back what this one had removed
        return back is None or back in leaving or by.get(back) is not None

    for first, its_undos in found.items():
        path = {first: iter(its_undos)}  # a chain may be long, so nothing calls itself
        while path:
            job, undos_of_it = next(reversed(path.items()))
            unknown = (one for one in undos_of_it if one not in by and one not in path)
            if (following := next(unknown, None)) is not None:
                path[following] = iter(found.get(following, ()))
            else:
                by[job] = next(filter(keeps_removed, found.get(job, ())), None)
                del path[job]
    return {job: undo for job, undo in by.items() if undo is not None}
