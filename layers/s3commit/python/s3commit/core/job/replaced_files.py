"""The files that a job's policy replaces: those there before it, in its reach (I5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from s3commit.core.formats.layout import JobDirectory, belongs_to_job, is_data, partition_of
from s3commit.core.job.partitions import read_partitions
from s3commit.core.job.plan import planned_files
from s3commit.core.model.job import Names, Scope
from s3commit.core.model.pending import PendingFile
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject

LISTED_AHEAD = 5_000  # files of a partition, while others are listed


_Reach = tuple[JobDirectory, str, bool]  # a place, a prefix in it, and whether that reaches down


def files_of_before(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[ListedObject]:
    """The visible files in the reach of the job's policy that are not the job's own.

    Hidden names are no data. In scope partition a partition reaches down to every depth; the root
    as a partition means the files directly in it. A partition at a location is all that lies there,
    and in scope directory all of the job's locations are in reach. The partitions are listed side
    by side: thousands of them are more than one listing after the other could take. In memory is
    the beginning of each, so that one of millions of files fits as well.
    """
    locations = record.plan.locations if record.plan else {}
    if record.scope is Scope.DIRECTORY:
        for one in (directory, *map(directory.at, locations.values())):
            yield from _in_reach(ports, one, one.destination.prefix, deep=True)
        return

    def begin(reach: _Reach) -> tuple[list[ListedObject], Iterator[ListedObject]]:
        found = _in_reach(ports, reach[0], reach[1], deep=reach[2])
        return list(islice(found, LISTED_AHEAD)), found

    partitions = _partitions(ports, directory, record, locations)
    for beginning, rest in ports.parallel(begin, partitions):
        yield from beginning
        yield from rest


def _in_reach(
    ports: Ports, directory: JobDirectory, prefix: str, *, deep: bool
) -> Iterator[ListedObject]:
    for listed in ports.store.list(directory.bucket, prefix):
        relative = directory.relative(listed.key)
        if not is_data(relative) or belongs_to_job(listed.key, directory.job_id):
            continue
        if deep or not partition_of(relative):
            yield listed


def _partitions(
    ports: Ports, directory: JobDirectory, record: JobRecord, locations: Mapping[str, str]
) -> Iterator[_Reach]:
    """The prefixes to list."""
    root = directory.destination.prefix
    covered = ""
    for name in sorted(read_partitions(ports, directory, record)):
        if not name:
            yield directory, root, False
        elif name in locations:
            yield directory.at(locations[name]), locations[name], True
        elif not covered or not name.startswith(covered):  # one inside another is listed already
            covered = name
            yield directory, root + name, True


def files_to_replace(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[ListedObject]:
    """`files_of_before` without the job's own, where their names do not tell."""
    own = own_files(ports, directory, record)
    return (one for one in files_of_before(ports, directory, record) if one.key not in own)


def own_files(ports: Ports, directory: JobDirectory, record: JobRecord) -> dict[str, PendingFile]:
    """The job's own files where their names do not tell, by key."""
    if record.names is not Names.EXACT:
        return {}
    return {file.key: file for file in planned_files(ports, directory, record)}
