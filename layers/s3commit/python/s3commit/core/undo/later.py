"""The jobs around one that is to be undone: which are in effect, which came later, and where."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Final, TypeVar

from s3commit.core.documents.commit_manifest import (
    MAX_WHOLE_BYTES,
    CommittedFile,
    stream_commit_manifest,
)
from s3commit.core.documents.pages import grouped
from s3commit.core.formats.layout import JobDirectory, directories_above, is_copy
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
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ListedObject, listed_at
from s3commit.core.ports.parallel import in_order
from s3commit.core.undo.bound import Look

LISTS_AT_ONCE: Final = 64
_MOMENT: Final = len("2026-11-21T22:07:22.123Z")
T = TypeVar("T")
Listed = tuple[JobDirectory, ListedObject]  # a job's list of files
Done = tuple[Commit, list[CommittedFile]]  # an undo as if it were done, with what it brings back
Place = tuple[str, str | None]  # a destination, and an element of a `Reach`


def each_of(
    look: Look, function: Callable[[T], Any], items: Iterable[T], bytes_of: Callable[[T], int]
) -> Iterator[Any]:
    """The results of a function that reads a list of files, in order; few lists are held."""
    for some in grouped(items, LISTS_AT_ONCE, bytes_of, MAX_WHOLE_BYTES):
        yield from in_order(look.ports.parallel, function, some)


def commits_around(
    look: Look, directory: JobDirectory, roots: Collection[str], makers: Collection[str]
) -> tuple[Commit | None, list[Commit], list[Listed]]:
    """The job's own commit, if it is there; and those since, above, at and below ``roots``.

    In their order. By S3's clocks: some that are a little earlier are among them. And the lists of
    all jobs there that have the ids of the ``makers``.
    """
    store, bucket = look.ports.store, directory.bucket
    found = listed_at(store, bucket, directory.commits)
    since = shifted(found.modified, -2 * S3_CLOCKS) if found else ""
    listed = listed_around(look.ports, bucket, roots)
    made: list[Listed] = []

    def wanted() -> Iterator[Listed]:
        for one in look.in_time(listed):
            if one[0].job_id in makers:
                made.extend(look.lists([one]))
            if one[1].modified >= since:
                yield one

    read = read_commits(store, look.ports.parallel, look.lists(wanted()))
    commits = sorted(map(_short, read), key=lambda one: one.moment)
    own = next((one for one in commits if one.directory == directory), None)
    return own, [one for one in commits if one is not own], made


def listed_around(ports: S3Ports, bucket: str, roots: Collection[str]) -> Iterator[Listed]:
    """The lists of all committed jobs above, at and below the ``roots``."""
    at = dict.fromkeys(chain.from_iterable(map(directories_above, roots)))
    places = (Destination(bucket, one) for one in filter(ports.serves, at))
    found = in_order(ports.parallel, lambda place: [*manifests_at(ports.store, place)], places)
    return chain(
        chain.from_iterable(found), manifests_below(bucket, list_objects(ports, bucket, roots))
    )


def is_around(place: str, roots: Collection[str]) -> bool:
    """True for a destination that is above, at or below one of the ``roots``."""
    return place.startswith((*roots,)) or any(root.startswith(place) for root in roots)


def _short(commit: Commit) -> Commit:
    """Without what a header may have by the kilobyte."""
    at = commit.header.decided_at[:_MOMENT]
    header = replace(
        commit.header, decided_at=at, partition_by=(), idempotency_key=None, note="", labels=()
    )
    return replace(commit, header=header)


def files_of(look: Look, job: JobDirectory, wanted: Callable[[CommittedFile], T | None]) -> list[T]:
    """The files ``wanted`` of the job's manifest; none, where it can't be read."""
    with suppress(*NOT_READABLE):
        _, files = stream_commit_manifest(look.ports.store, job, max_bytes=MAX_WHOLE_BYTES)
        return list(look.held(filter(None, map(wanted, look.lines(files)))))
    return []


def named_above(look: Look, among: Collection[str], job: JobDirectory) -> set[str]:
    """The keys ``among`` those given that a job further up with the same id names as its files."""

    def key(file: CommittedFile) -> str | None:
        return file.key if file.key in among else None

    places = filter(look.ports.serves, directories_above(job.destination.prefix))
    jobs = (JobDirectory(Destination(job.bucket, place), job.job_id) for place in places)
    return {one for job in look.lists(jobs) for one in files_of(look, job, key)}


def copies_of(
    look: Look, undos: Iterable[Commit], first: Mapping[str, int]
) -> Iterator[CommittedFile]:
    """The copies that the undos have brought back of files, given by first keys and lengths."""

    def copied(file: CommittedFile) -> CommittedFile | None:
        is_one = first.get(file.origin) == file.length and is_copy(file.key, file.origin)
        return file if is_one else None

    for one in look.lists(undos):
        yield from files_of(look, one.directory, copied)


def reach_of(look: Look, among: Collection[str], commit: Commit) -> tuple[Commit, Reach]:
    """The job, with what it has removed ``among`` the directories: all, if that can't be read."""
    try:
        found = commit.reach(
            look.ports.store, max_bytes=MAX_WHOLE_BYTES, among=among, each=look.lines
        )
    except NOT_READABLE:
        found = {None}
    return commit, set(look.held(found))


def undone_first(
    own: Commit, one: Commit, by: Mapping[JobDirectory, Commit]
) -> JobDirectory | None:
    """The job to undo so that ``one`` no longer refuses the undo of ``own``; None: there is none.

    ``by`` has the undo of each job that has one, in effect or not.
    """
    chain = {one.directory: one}
    while (undo := by.get(next(reversed(chain)))) and undo.directory not in chain:
        chain[undo.directory] = undo
    _, *undos = chain.values()
    first = undos[-1] if undos else one
    if len(undos) % 2 or (undos and undos[0].header.leaves_removed):
        return None  # it is undone, or would be, and what it had removed is left out
    if own.undoes and (one.undoes or first.header.replaced_files):
        return None  # the undo of an overwrite refuses that of an undo as well
    return first.directory if first.header.files or first.header.replaced_files else None


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
    own: Commit,
    other: Commit,
    reach: Reach,
    still: Collection[Place],
    replaced: Collection[JobDirectory],
) -> bool:
    """True if the other job may have replaced after this one.

    S3's clocks have no more than seconds (A7). Within them a job is earlier of which this one has
    ``replaced`` files, or which would otherwise have removed what this one has there ``still``.
    """
    if is_surely_later(own, other):
        return True
    if other.put_at < shifted(own.put_at, -S3_CLOCKS):
        return False
    has_replaced_it = other.directory in replaced
    return not has_replaced_it and not any(map(still.__contains__, removed_by(other, reach)))
