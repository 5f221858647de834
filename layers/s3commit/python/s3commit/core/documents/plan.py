"""The plan of a job: the files that it completes, in pages."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Final

from s3commit.core.documents.pages import (
    LINE,
    Unit,
    grouped,
    read_list,
    read_unit,
    whole_pages,
    write_list,
)
from s3commit.core.documents.pendingset import MAX_PARTS, PendingFile
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import NeedsOperatorError
from s3commit.core.model.limits import (
    MAX_UNITS,
    PAGE_FILES,
    SMALLEST_UNIT,
    UNIT_FILES,
    UNIT_PARTS,
    UNITS_OF_A_JOB,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ObjectReader
from s3commit.core.ports.parallel import in_order

_NOT_NEEDED: Final = {"job_id": "", "task_id": "", "attempt_id": ""}
_FILE: Final = Codec(PendingFile, "file of the job", unwritten=_NOT_NEEDED, **LINE)


def write_plan(
    ports: S3Ports,
    directory: JobDirectory,
    files: Iterable[PendingFile],
    *,
    total: int,
    beside: Callable[[], object] | None = None,
) -> tuple[str, list[Unit]]:
    """Put the ``total`` files as pages and an index. Raises as `write_list`."""
    most, most_parts = unit_limits(total)
    units = grouped(files, most, parts_of, most_parts)
    pages = grouped(units, PAGE_FILES // most, lambda unit: sum(map(parts_of, unit)), UNIT_PARTS)
    return write_list(ports, directory, pages, _FILE.encode, beside)


def unit_limits(total: int) -> tuple[int, int]:
    """The files and the parts that a unit has at most, where a job has ``total`` files.

    Files of many parts end a unit early. So many parts are allowed that there are no more than
    `MAX_UNITS` even if all files have the most: a unit that ends early lacks those of one file.
    """
    most = min(max(SMALLEST_UNIT, -(-total // UNITS_OF_A_JOB)), UNIT_FILES)
    left = MAX_UNITS - -(-total // most)
    return most, max(UNIT_PARTS, MAX_PARTS - -total * MAX_PARTS // left)


def parts_of(file: PendingFile) -> int:
    """How many parts the file's upload has."""
    return len(file.etags)


def files_of_unit(reader: ObjectReader, directory: JobDirectory, unit: Unit) -> list[PendingFile]:
    """The files of one unit of the plan. Raises as `read_unit`."""
    return read_unit(reader, directory, unit, _FILE.decode)


def planned_files(
    ports: S3Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[PendingFile]:
    """Every file of the plan, in its order. Raises as `read_index`."""
    return read_list(ports, directory, record.planned.sha256, _FILE.decode)


def files_of_few(ports: S3Ports, ticket: Ticket) -> list[PendingFile]:
    """Every file of a small plan, whose units the ticket has; of a larger one none.

    None either where a page is missing, as when the job has ended: `planned_files` reports it.
    """
    read = partial(files_of_unit, ports.store, ticket.directory)
    with suppress(NeedsOperatorError):
        return [*chain.from_iterable(in_order(ports.parallel, read, whole_pages(ticket.few)))]
    return []
