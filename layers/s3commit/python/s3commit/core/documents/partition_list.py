"""The list of partitions that a job with dynamic overwrite writes, in pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from s3commit.core.documents.pages import LINE, in_groups, read_list, write_list
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import S3Ports

NAMES_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Partition:
    partition: str


_PARTITION: Final = Codec(_Partition, "partition", **LINE)


def write_partitions(ports: S3Ports, directory: JobDirectory, partitions: Iterable[str]) -> str:
    """Put the list; return the digest of its index.

    A partition is a directory relative to the destination, with its ``/``; the root is empty.
    Raises as `write_list`.
    """
    pages = ([unit] for unit in in_groups(map(_Partition, sorted(partitions)), NAMES_AT_ONCE))
    sha256, _ = write_list(ports, directory, pages, _PARTITION.encode)
    return sha256


def read_partitions(ports: S3Ports, directory: JobDirectory, record: JobRecord) -> list[str]:
    """The list that the plan in the ledger names. Raises as `read_index`."""
    lines = read_list(ports, directory, record.planned.partitions, _PARTITION.decode)
    return [line.partition for line in lines]
