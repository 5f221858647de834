"""The files that a job replaces: its reach, and the jobs that append beside it (I6).

Its reach is the destination, or the partitions that it writes. A job that replaces chooses one
moment. The files of an append that had ended before it are replaced. Those of every other append
stay, whether it is under way or decided later, as if it had come after. The moment is the same for
all partitions and for all files of an append, so the jobs have one order: ADR 34 says why.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Final

from s3commit.core.documents.success_marker import read_success
from s3commit.core.formats.layout import SUCCESS, JobDirectory, is_data, owner_of, partition_of
from s3commit.core.jobs.listings import list_objects
from s3commit.core.model.destination import Scope
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
)
from s3commit.core.model.limits import APPEND_READINGS, MAX_APPENDS
from s3commit.core.model.locks import Append, destination_node, nodes_above
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.objects import ListedObject

MAX_NAMES: Final = 90 * 1024 * 1024  # characters of all names together, which are in memory
MOST_MARKERS: Final = 1_000  # of tables inside: each is read before the decision


def existing_files(
    ports: S3Ports,
    record: JobRecord,
    partitions: list[str],
    *,
    wanted: Callable[[str], bool] = is_data,
) -> Iterator[ListedObject]:
    """The visible files in the reach of the job's policy that are not the job's own.

    ``wanted`` judges their keys, relative to the destination: hidden names are not data. In scope
    partition a partition reaches down to every depth; the root as a partition means the files
    directly in it. The order is the same for the same files.
    """
    directory = JobDirectory.of(record)
    root = directory.destination.prefix
    if record.scope is Scope.DIRECTORY:
        yield from _files_below(ports, directory, [root], wanted)
        return
    prefixes = (root + name for name in outermost(partitions))
    yield from _files_below(ports, directory, prefixes, wanted)
    if "" in partitions:
        for listed in _files_below(ports, directory, [root], wanted):
            if not partition_of(listed.key[len(root) :]):
                yield listed


def _files_below(
    ports: S3Ports, directory: JobDirectory, prefixes: Iterable[str], wanted: Callable[[str], bool]
) -> Iterator[ListedObject]:
    for listed in list_objects(ports, directory.bucket, prefixes):
        relative = listed.key[len(directory.destination.prefix) :]
        if wanted(relative) and owner_of(listed.key) != directory.job_id:
            yield listed


def outermost(partitions: Iterable[str]) -> Iterator[str]:
    """Those that are in no other; without the root."""
    covered = ""
    for name in sorted(partitions):
        if name and not (covered and name.startswith(covered)):
            covered = name
            yield name


def markers_to_remove(
    ports: S3Ports, bucket: str, markers: list[ListedObject], staying: Iterable[str]
) -> Iterator[ListedObject]:
    """Those that say of a job that its files are visible, when these are replaced (I9).

    ``staying`` are the nodes of the appends whose files stay. One of them at a marker's directory,
    above it or below it may have files there, or put its own marker: then the marker stays. So does
    one that can't be read, or names no job: its owner is not known.
    """
    nodes = tuple(staying)

    def is_past(marker: ListedObject) -> tuple[ListedObject, bool]:
        node = f"{bucket}/{marker.key.removesuffix(SUCCESS)}"
        if any(node.startswith(one) or one.startswith(node) for one in nodes):
            return marker, False
        with suppress(NotFoundError, InvalidInputError, AccessError):
            etag, job_id = read_success(ports.store, bucket, marker.key)
            return marker, etag == marker.etag and job_id != ""
        return marker, False

    return (one for one, past in ports.parallel(is_past, markers) if past)


class Appends:
    """The appends at, above and below the destination of a job that replaces.

    Made before the listing of what is to be replaced: that is the moment. Raises
    `JobRefusedError` (``DESTINATION_BUSY``) if there are more than `MAX_APPENDS`, or if they end
    faster than they can be read.
    """

    def __init__(self, ports: Ports, record: JobRecord) -> None:
        self._ports = ports
        node = destination_node(record.destination)
        self._nodes = [node, *nodes_above([node])]
        self._ended = self._ended_at_one_moment()

    def to_leave(self) -> dict[str, tuple[str, ...]]:
        """The ids of the jobs whose files stay, each with the nodes below which they do.

        Asked after the files were listed. Elsewhere a file with such an id is of another job, since
        a job is an id at a destination (I12).

        An append that was decided since the moment is listed still: it is under way, or has ended
        less than `APPEND_SECONDS` ago, and no call of a step takes so long.
        """
        found: dict[str, tuple[str, ...]] = {}
        for one in self._read():
            if one.ref not in self._ended:
                job_id = one.ref.rpartition("-")[0]
                found[job_id] = (*found.get(job_id, ()), one.node)
        return found

    def _ended_at_one_moment(self) -> set[str]:
        """Those that have ended a while ago, by two readings.

        A reading takes time. If the second finds none that has ended since the first, all was as
        the first says at the moment between the two.
        """
        ended = {one.ref for one in self._read() if one.ended}
        for _ in range(APPEND_READINGS):
            before, ended = ended, {one.ref for one in self._read() if one.ended}
            if ended <= before:
                return before
        raise JobRefusedError(
            "too many jobs append here at the same time to find a moment between their ends;"
            " write again later",
            code="DESTINATION_BUSY",
        )

    def _read(self) -> list[Append]:
        read = self._ports.parallel(self._of_node, self._nodes)
        found = list(islice(chain.from_iterable(read), MAX_APPENDS + 1))
        if len(found) > MAX_APPENDS:
            raise JobRefusedError(
                f"more than {MAX_APPENDS} jobs append at the destination, above it and below it;"
                " write again later",
                code="DESTINATION_BUSY",
            )
        return found

    def _of_node(self, node: str) -> list[Append]:
        """Those at the node and, of the destination's own, below it."""
        appends = self._ports.ledger.appends(node, below=node == self._nodes[0])
        return list(islice(appends, MAX_APPENDS + 1))
