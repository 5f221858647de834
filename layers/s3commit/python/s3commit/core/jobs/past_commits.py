"""The removals of a table's jobs, by their manifests in ``_commits/``."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from s3commit.core.documents.commit_manifest import (
    MAX_COMMITS_BYTES,
    MAX_WHOLE_BYTES,
    CommitHeader,
    CommittedFile,
    read_commit_header,
    stream_commit_manifest,
)
from s3commit.core.formats.layout import (
    COMMITS,
    JobDirectory,
    directories_above,
    is_copy,
    owner_of,
    parse_commit_manifest_key,
    partition_of,
)
from s3commit.core.model.destination import Destination, Scope
from s3commit.core.model.errors import NOT_READABLE, JobRefusedError
from s3commit.core.model.limits import MAX_COPIES, S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, ObjectReader
from s3commit.core.ports.parallel import ParallelMap

# What a job has removed: None stands for all at its destination, a directory with its "/" for a
# partition, and an id for the files of the job that it has undone.
Reach = set[str | None]
AnyJob = TypeVar("AnyJob", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed job. ``put_at`` is when S3 got its manifest (RFC 3339, UTC).

    Of a long manifest it is when its upload was started: jobs that exclude each other have the same
    order by either.
    """

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

    def reach(
        self,
        store: ObjectReader,
        *,
        max_bytes: int = MAX_COMMITS_BYTES,
        among: Collection[str] | None = None,
    ) -> Reach:
        """The files it has removed, or would have. Requests: a GET where that is partitions.

        Of these only those ``among`` the directories given, if any are. Raises as
        `read_commit_manifest`.
        """
        if self.header.undoes:
            return {self.header.undoes}
        if self.header.scope is Scope.DIRECTORY:
            return {None}
        root = len(self.directory.destination.prefix)
        _, files = stream_commit_manifest(store, self.directory, max_bytes=max_bytes)
        places = (partition_of(file.key) for file in files)
        return {at[root:] for at in places if among is None or at in among}


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
    """Those that can be read, and are where they belong. Requests: a GET each."""

    def read(one: tuple[JobDirectory, ListedObject]) -> Commit | None:
        job, listed = one
        try:
            return Commit(job, listed.modified, read_commit_header(store, job))
        except NOT_READABLE:
            return None

    return filter(None, parallel(read, manifests))


def reach_of(ports: Ports, commit: Commit, among: Collection[str]) -> Reach:
    """The files it has removed ``among`` the directories; all, if its manifest can't be read."""
    try:
        return commit.reach(ports.store, max_bytes=MAX_WHOLE_BYTES, among=among)
    except NOT_READABLE:
        return {None}


def makers_of(bucket: str, key: str) -> set[JobDirectory]:
    """The jobs that can have made the file, by its name: of each destination above it one."""
    owner = owner_of(key)
    places = directories_above(key) if owner else ()
    return {JobDirectory(Destination(bucket, at), owner or "") for at in places}


def files_of(
    ports: Ports, job: JobDirectory, wanted: Callable[[CommittedFile], bool]
) -> list[CommittedFile]:
    """The files in the job's manifest that are ``wanted``; none, where it can't be read.

    The others are not held: whoever may write there can list a million.
    """
    with suppress(*NOT_READABLE):
        _, files = stream_commit_manifest(ports.store, job, max_bytes=MAX_WHOLE_BYTES)
        return list(filter(wanted, files))
    return []


def copies_of(
    ports: Ports, commits: list[Commit], files: list[CommittedFile], places: Collection[str]
) -> Iterator[CommittedFile]:
    """The copies of the ``files`` that undos have brought back; ``places`` are all above these.

    Raises `JobRefusedError` (``TOO_LARGE``) if the lists of the undos there are too long together.
    """
    first = {(file.first_key, file.length) for file in files}
    read = 0

    def wanted(file: CommittedFile) -> bool:
        nonlocal read
        read += 1
        return (file.origin, file.length) in first and is_copy(file.key, file.origin)

    for one in commits:
        if one.header.undoes and one.directory.destination.prefix in places:
            yield from files_of(ports, one.directory, wanted)
            if read > MAX_COPIES:
                raise JobRefusedError(
                    f"the undos since, where the job has files, list more than {MAX_COPIES} files,"
                    " too many to look for copies in; nothing was changed. If one of them is not"
                    " the pipeline's, delete its list: `s3commit log` names them",
                    code="TOO_LARGE",
                )


def reaches_of(file: CommittedFile, relative: str) -> Iterator[str | None]:
    """The elements of a `Reach` that a file is in; ``relative`` is its key below a destination."""
    yield None
    yield owner_of(file.key)  # of a copy: the undo that has brought it back
    yield owner_of(file.first_key)
    yield partition_of(relative)
    yield from directories_above(relative)


def jobs_reaching(reaches: Iterable[tuple[Commit, Reach]], file: CommittedFile) -> Iterator[Commit]:
    """The jobs that have removed what was at the file's place, or the files of its job."""
    for one, reach in reaches:
        root = one.directory.destination.prefix
        relative = file.key[len(root) :]
        if file.key.startswith(root) and not reach.isdisjoint(reaches_of(file, relative)):
            yield one


def manifests_below(
    store: ObjectReader, bucket: str, root: str
) -> Iterator[tuple[JobDirectory, ListedObject]]:
    """Those of all destinations at and below a directory. A listing of all that is there."""
    for listed in store.list(bucket, root):
        place, inside, _ = listed.key.rpartition(COMMITS)
        job = parse_commit_manifest_key(Destination(bucket, place), listed.key) if inside else None
        if job is not None:
            yield job, listed


def commits_around(
    ports: Ports, directory: JobDirectory, root: str
) -> tuple[Commit | None, list[Commit]]:
    """The job's own commit, if it is there; and those since, above, at and below ``root``.

    In their order. By S3's clocks: some that are a little earlier are among them.
    """
    store, bucket = ports.store, directory.bucket
    found = {
        job: listed
        for at in filter(ports.serves, directories_above(root))
        for job, listed in manifests_at(store, Destination(bucket, at))
    }
    found |= manifests_below(store, bucket, root)
    since = shifted(found[directory].modified, -2 * S3_CLOCKS) if directory in found else ""
    some = ((job, listed) for job, listed in found.items() if listed.modified >= since)
    commits = sorted(read_commits(store, ports.parallel, some), key=lambda one: one.moment)
    own = next((one for one in commits if one.directory == directory), None)
    return own, [one for one in commits if one is not own]


def undone_jobs(commits: list[Commit]) -> dict[JobDirectory, JobDirectory]:
    """The jobs that are undone, each with the one that has undone it."""
    return undone_by([(one.directory, one.undoes) for one in commits if one.undoes is not None])


def undone_by(undos: Iterable[tuple[AnyJob, AnyJob]]) -> dict[AnyJob, AnyJob]:
    """The jobs that are undone, each with its undo; ``undos`` are pairs of an undo and its job.

    No clock is asked: an undo comes after the job that it undoes, whatever the times say. Honest
    jobs make no circle; what a stranger's circle undoes depends on where the search begins.
    """
    found: dict[AnyJob, list[AnyJob]] = {}
    for undo, job in undos:
        found.setdefault(job, []).append(undo)
    by: dict[AnyJob, AnyJob | None] = {}  # the undo in effect of each job
    for first, its_undos in found.items():
        path = {first: iter(its_undos)}  # a chain may be long, so nothing calls itself
        while path:
            job, undos_of_it = next(reversed(path.items()))
            unknown = (one for one in undos_of_it if one not in by and one not in path)
            if (following := next(unknown, None)) is not None:
                path[following] = iter(found.get(following, ()))
            else:
                left = (one for one in found.get(job, ()) if by.get(one, one) is None)
                by[job] = next(left, None)
                del path[job]
    return {job: undo for job, undo in by.items() if undo is not None}


def is_surely_later(own: Commit, other: Commit) -> bool:
    """True if the other job was committed after this one whatever S3's clocks say (A7)."""
    return other.put_at > shifted(own.put_at, S3_CLOCKS)


def is_later(
    own: Commit, other: Commit, reach: Reach, still: list[CommittedFile], listed: list[ListedObject]
) -> bool:
    """True if the other job may have replaced after this one.

    S3's clocks have no more than seconds (A7). Within them a job is earlier of which this one has
    replaced files, or which would otherwise have removed what this one has there ``still``.
    """
    if is_surely_later(own, other):
        return True
    if other.put_at < shifted(own.put_at, -S3_CLOCKS):
        return False
    has_replaced_it = any(owner_of(one.key) == other.directory.job_id for one in listed)
    reached = (next(jobs_reaching([(other, reach)], file), None) for file in still)
    return not has_replaced_it and all(one is None for one in reached)
