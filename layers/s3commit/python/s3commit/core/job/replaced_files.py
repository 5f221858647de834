"""The files that a job's policy replaces: those there before it, in its reach (I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import JobDirectory, is_data, partition_of
from s3commit.core.job.listings import list_objects
from s3commit.core.job.partitions import read_partitions
from s3commit.core.model.job import Scope
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject


def files_of_before(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[ListedObject]:
    """The visible files in the reach of the job's policy that are not the job's own.

    Hidden names are no data. In scope partition a partition reaches down to every depth; the root
    as a partition means the files directly in it. The order is the same for the same files.
    """
    root = directory.destination.prefix
    is_deep = record.scope is Scope.DIRECTORY
    prefixes: Iterable[str] = (root,) if is_deep else _partitions(ports, directory, record)
    for prefix, listed in list_objects(ports, directory.bucket, prefixes):
        relative = directory.relative(listed.key)
        if not is_data(relative) or belongs_to_job(listed.key, directory.job_id):
            continue
        if is_deep or prefix != root or not partition_of(relative):
            yield listed


def _partitions(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[str]:
    """The prefixes to list; none lies inside another, save in the root."""
    covered = ""
    for name in sorted(read_partitions(ports, directory, record)):
        if not covered or not name.startswith(covered):
            covered = name
            yield directory.destination.prefix + name
