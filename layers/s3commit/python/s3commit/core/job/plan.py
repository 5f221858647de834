"""What is decided of a job, as three lists: its files, its partitions, and what it replaces.

The files are the plan. They come in units, of which each is one call of a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import JobDirectory, is_data, owner_of, partition_of
from s3commit.core.formats.manifest import expected_etag
from s3commit.core.formats.ticket import Unit
from s3commit.core.job.listings import list_objects
from s3commit.core.job.pages import (
    LINE,
    in_groups,
    read_index,
    read_list,
    read_unit,
    write_list,
)
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import MAX_PARTS, PendingFile, Scope
from s3commit.core.model.limits import (
    DELETE_AT_ONCE,
    MAX_UNITS,
    PAGE_FILES,
    SMALLEST_UNIT,
    UNIT_FILES,
    UNIT_PARTS,
    UNITS_OF_A_JOB,
)
from s3commit.core.model.record import JobRecord, ReplacedFacts
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, ObjectFacts, ObjectReader

_NOT_NEEDED: Final = {"job_id": "", "task_id": "", "attempt_id": "", "created": 0, "saved": 0}
_FILE: Final = Codec(PendingFile, "file of the job", unwritten=_NOT_NEEDED, **LINE)
MAX_NAMES: Final = 90 * 1024 * 1024  # characters of all names together, which are held at once
NAMES_AT_ONCE: Final = 1_000
_REPLACED: Final = Codec(ListedObject, "replaced file", unwritten={"modified": ""}, **LINE)


def write_plan(
    ports: Ports, directory: JobDirectory, files: Iterable[PendingFile], *, total: int
) -> tuple[str, list[Unit]]:
    """Put the ``total`` files as pages and an index. Raises as `write_list`."""
    pages = _in_pages(cut_units(files, total=total))
    return write_list(ports, directory, pages, _FILE.encode)


def _in_pages(units: Iterable[list[PendingFile]]) -> Iterator[list[list[PendingFile]]]:
    page: list[list[PendingFile]] = []
    files = parts = 0
    for unit in units:
        weight = sum(len(file.etags) for file in unit)
        if page and (files + len(unit) > PAGE_FILES or parts + weight > UNIT_PARTS):
            yield page
            page, files, parts = [], 0, 0
        page.append(unit)
        files, parts = files + len(unit), parts + weight
    if page:
        yield page


def unit_files(total: int) -> int:
    """The files of a unit. There are at most `MAX_UNITS`, so a larger job gets larger ones."""
    small = max(SMALLEST_UNIT, -(-total // UNITS_OF_A_JOB))
    return max(min(small, UNIT_FILES), -(-total // MAX_UNITS))


def cut_units(files: Iterable[PendingFile], *, total: int) -> Iterator[list[PendingFile]]:
    """The ``total`` files in units, of which each is one worker call.

    The cut depends on the files and their order alone.
    """
    most = unit_files(total)
    # Files of many parts end a unit early, where even one file a unit would not be too many units.
    most_parts = UNIT_PARTS if total <= MAX_UNITS else total * MAX_PARTS
    unit: list[PendingFile] = []
    parts = 0
    for file in files:
        if unit and (len(unit) >= most or parts + len(file.etags) > most_parts):
            yield unit
            unit, parts = [], 0
        unit.append(file)
        parts += len(file.etags)
    if unit:
        yield unit


def read_plan(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[Unit]:
    """The units of the plan that the ledger names. Raises as `read_index`."""
    return read_index(ports.store, directory, record.plan.sha256) if record.plan else []


def files_of_unit(reader: ObjectReader, directory: JobDirectory, unit: Unit) -> list[PendingFile]:
    """The files of one unit of the plan. Raises as `read_unit`."""
    return read_unit(reader, directory, unit, _FILE.decode)


def planned_files(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[PendingFile]:
    """Every file of the plan, in its order. Raises as `read_index`."""
    sha256 = record.plan.sha256 if record.plan else ""
    return read_list(ports, directory, sha256, _FILE.decode)


def is_file(file: PendingFile, facts: ObjectFacts) -> bool:
    """Whether the object is the planned file: of its length, and made of its parts.

    Where S3 encrypts with KMS the length alone tells, since the etag does not depend on the bytes
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html, ETag).
    """
    expected = "" if facts.opaque else expected_etag(file)
    return facts.length == file.length and expected in {"", facts.etag}


@dataclass(frozen=True, slots=True)
class _Partition:
    partition: str


_PARTITION: Final = Codec(_Partition, "partition", **LINE)


def write_partitions(ports: Ports, directory: JobDirectory, partitions: Iterable[str]) -> str:
    """Put the list; return the digest of its index.

    A partition is a directory relative to the destination, with its ``/``; the root is empty.
    Raises as `write_list`.
    """
    pages = ([unit] for unit in in_groups(map(_Partition, sorted(partitions)), NAMES_AT_ONCE))
    sha256, _ = write_list(ports, directory, pages, _PARTITION.encode)
    return sha256


def read_partitions(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[str]:
    """The list that the plan in the ledger names. Raises as `read_index`."""
    sha256 = record.plan.partitions if record.plan else ""
    return [line.partition for line in read_list(ports, directory, sha256, _PARTITION.decode)]


def existing_files(
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
        relative = listed.key[len(directory.destination.prefix) :]
        if not is_data(relative) or owner_of(listed.key) == directory.job_id:
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


def write_replaced(
    ports: Ports, directory: JobDirectory, files: Iterable[ListedObject]
) -> ReplacedFacts:
    """Put the replace list, of which a page is one DeleteObjects call. Raises as `write_list`."""
    count = size = 0

    def counted() -> Iterator[ListedObject]:
        nonlocal count, size
        for one in files:
            count += 1
            size += one.length
            yield one

    pages = ([unit] for unit in in_groups(counted(), DELETE_AT_ONCE))
    sha256, _ = write_list(ports, directory, pages, _REPLACED.encode)
    return ReplacedFacts(sha256, count, size)


def decode_replaced(line: bytes, directory: JobDirectory) -> ListedObject:
    """Read a line of the replace list. Raises `InvalidInputError` for what is no data (I7)."""
    listed = _REPLACED.decode(line)
    is_inside = listed.key.startswith(directory.destination.prefix)
    if not is_inside or not is_data(listed.key[len(directory.destination.prefix) :]):
        raise InvalidInputError(
            f"the replace list names {listed.key[:200]!r}, which is no data of"
            f" {directory.destination.uri}",
            code="NOT_CONTAINED",
        )
    return listed
