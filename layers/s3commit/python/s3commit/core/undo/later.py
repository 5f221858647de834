"""The jobs around one that is to be undone: which are in effect, which came later, and where."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final, TypeVar

from s3commit.core.documents.commit_manifest import (
    MAX_WHOLE_BYTES,
    CommittedFile,
    stream_commit_manifest,
)
from s3commit.core.documents.pages import in_groups
from s3commit.core.formats.layout import (
    JobDirectory,
    directories_above,
    is_copy,
    owner_of,
    partition_of,
)
from s3commit.core.jobs.listings import list_objects
from s3commit.core.jobs.past_commits import (
    Commit,
    Reach,
    manifests_at,
    manifests_below,
    reaches_of,
    read_commits,
)
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import NOT_READABLE
from s3commit.core.model.limits import MAX_COMMITS, S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import listed_at
from s3commit.core.ports.parallel import in_order
from s3commit.core.undo.bound import Bound, PastBoundError

MANIFESTS_AT_ONCE: Final = 4
_MOMENT: Final = len("2026-11-21T22:07:22.123Z")
T = TypeVar("T")
Place = tuple[str, str | None]  # a destination, and an element of a `Reach`


def each_of(ports: Ports, function: Callable[[T], Any], items: Iterable[T]) -> Iterator[Any]:
    """What the function, which reads a manifest, says of each; of few at once."""
    for some in in_groups(items, MANIFESTS_AT_ONCE):
        yield from in_order(ports.parallel, function, some)


def commits_around(
    ports: Ports, directory: JobDirectory, root: str, bound: Bound
) -> tuple[Commit | None, list[Commit]]:
    """The job's own commit, if it is there; and those since, above, at and below ``root``.

    In their order. By S3's clocks: some that are a little earlier are among them. Raises
    `PastBoundError` if they are more than `MAX_COMMITS`.
    """
    store, bucket = ports.store, directory.bucket
    found = listed_at(store, bucket, directory.commits)
    since = shifted(found.modified, -2 * S3_CLOCKS) if found else ""
    places = (Destination(bucket, at) for at in directories_above(root))
    above = chain.from_iterable(map(partial(manifests_at, store), places))
    below = bound.in_time(list_objects(ports, bucket, [root]))
    listed = chain(above, manifests_below(bucket, below))
    some = (one for one in bound.read(listed) if one[1].modified >= since)
    commits = [
        _short(one) for one in read_commits(store, ports.parallel, islice(some, MAX_COMMITS))
    ]
    if next(some, None):
        raise PastBoundError(f"would have to look at more than {MAX_COMMITS} jobs since")
    commits.sort(key=lambda one: one.moment)
    own = next((one for one in commits if one.directory == directory), None)
    return own, [one for one in commits if one is not own]


def _short(commit: Commit) -> Commit:
    """Without what a header may have by the kilobyte."""
    at = commit.header.decided_at[:_MOMENT]
    header = replace(commit.header, decided_at=at, partition_by=(), idempotency_key=None)
    return replace(commit, header=header)


def undone_jobs(commits: list[Commit]) -> dict[JobDirectory, JobDirectory]:
    """The jobs that are undone, each with the one that has undone it.

    No clock is asked: an undo comes after what it undoes, whatever the times say.
    """
    undos: dict[JobDirectory, list[JobDirectory]] = {}
    for one in commits:
        if one.undoes is not None:
            undos.setdefault(one.undoes, []).append(one.directory)

    def by(job: JobDirectory, seen: frozenset[JobDirectory]) -> JobDirectory | None:
        """The undo of the job that is in effect; honest jobs make no circle."""
        left = (one for one in undos.get(job, ()) if one not in seen)
        return next((one for one in left if by(one, seen | {one}) is None), None)

    found = {job: by(job, frozenset([job])) for job in undos}
    return {job: undo for job, undo in found.items() if undo is not None}


def files_of(
    ports: Ports, bound: Bound, job: JobDirectory, wanted: Callable[[CommittedFile], T | None]
) -> list[T]:
    """What is ``wanted`` of the files in the job's manifest; nothing, where it can't be read."""
    with suppress(*NOT_READABLE):
        _, files = stream_commit_manifest(ports.store, job, max_bytes=MAX_WHOLE_BYTES)
        return list(bound.held(filter(None, map(wanted, bound.read(files)))))
    return []


def makers_of(bucket: str, keys: Iterable[str]) -> set[JobDirectory]:
    """The jobs that can have made the files, by their names: of each destination above one."""
    some = {(owner, partition_of(key)) for key in keys if (owner := owner_of(key))}
    return {
        JobDirectory(Destination(bucket, above), owner)
        for owner, place in some
        for above in directories_above(place + owner)
    }


def copies_of(
    ports: Ports,
    commits: list[Commit],
    files: list[CommittedFile],
    places: Collection[str],
    bound: Bound,
) -> Iterator[CommittedFile]:
    """The copies of the ``files`` that undos have brought back; ``places`` are all above these."""
    first = {(file.first_key, file.length) for file in files}

    def copied(file: CommittedFile) -> CommittedFile | None:
        is_theirs = (file.origin, file.length) in first and is_copy(file.key, file.origin)
        return file if is_theirs else None

    for one in commits:
        if one.header.undoes and one.directory.destination.prefix in places:
            yield from files_of(ports, bound, one.directory, copied)


def reach_of(
    ports: Ports, bound: Bound, among: Collection[str], commit: Commit
) -> tuple[Commit, Reach]:
    """The job, with what it has removed ``among`` the directories: all, if that can't be read."""
    try:
        found = commit.reach(ports.store, max_bytes=MAX_WHOLE_BYTES, among=among, each=bound.read)
    except NOT_READABLE:
        found = {None}
    return commit, set(bound.held(found))


def places_of(file: CommittedFile) -> Iterator[Place]:
    """By which a job has removed what was at the file's place, or the files of its job."""
    for root in directories_above(file.key):
        for part in reaches_of(file, file.key[len(root) :]):
            yield root, part


def removed_by(commit: Commit, reach: Reach) -> Iterator[Place]:
    """The places that the job has removed."""
    return ((commit.directory.destination.prefix, part) for part in reach)


def is_surely_later(own: Commit, other: Commit) -> bool:
    """True if the other job was committed after this one whatever S3's clocks say (A7)."""
    return other.put_at > shifted(own.put_at, S3_CLOCKS)


def is_later(
    own: Commit, other: Commit, reach: Reach, still: Collection[Place], replaced: Collection[str]
) -> bool:
    """True if the other job may have replaced after this one.

    S3's clocks have no more than seconds (A7). Within them a job is earlier if this one has
    ``replaced`` files of its id, or if it would have removed what this one has there ``still``.
    """
    if is_surely_later(own, other):
        return True
    if other.put_at < shifted(own.put_at, -S3_CLOCKS):
        return False
    has_replaced_it = other.directory.job_id in replaced
    return not has_replaced_it and not any(map(still.__contains__, removed_by(other, reach)))
