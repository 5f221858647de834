"""The plan of a job: kept in pages of lines and an index of pages, and listed for readers.

The files that a job completes are its plan. They come in units, of which each is one call of a
worker. The lists of what it replaces (`s3commit.core.job.replaced`) are kept in the same way, below
``_s3commit/<ref>/``. Each object is named by the digest of its bytes; the ledger names an index,
and an index names units, which are ranges of pages (docs/adr/0007). No client may write there, so
what a page says was verified when it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any, Final, TypeVar

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.documents import SUCCESS_FILES, CommittedFile, commit_lines, header_of
from s3commit.core.formats.layout import META_JOB, JobDirectory
from s3commit.core.formats.manifest import digest, expected_etag
from s3commit.core.formats.strict_json import bounded, dump, parse
from s3commit.core.formats.ticket import Unit
from s3commit.core.model.errors import (
    PAGE_CHANGED,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
    TransientError,
    UploadGoneError,
)
from s3commit.core.model.fields import Several
from s3commit.core.model.job import MAX_PARTS, PendingFile
from s3commit.core.model.limits import (
    MAX_UNITS,
    PAGE_FILES,
    PUT_BYTES,
    SMALLEST_UNIT,
    UNIT_FILES,
    UNIT_PARTS,
    UNITS_OF_A_JOB,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports, together
from s3commit.core.ports.objects import ObjectReader

T = TypeVar("T")

MAX_INDEX_BYTES: Final = 16 * 1024 * 1024
MAX_UNITS_READ: Final = 100_000
MAX_PAGE_BYTES: Final = 32 * 1024 * 1024
# A line may be as long as a page: a file of 10,000 parts with etags that need escapes.
LINE: Final[Any] = {"max_bytes": MAX_PAGE_BYTES, "most": 100_000}
PAGES_AT_ONCE: Final = 32
_ANY: Final = 2**63
_NDJSON: Final = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class _Index:
    """An index is a list, since a Map reads it (docs/adr/0003); to the codec it is a member."""

    units: Annotated[tuple[Unit, ...], Several(MAX_UNITS_READ)]


_UNIT: Final = Codec(Unit, "unit")
_LIMITS: Final[Any] = {
    "what": "index",
    "max_bytes": MAX_INDEX_BYTES,
    "most": 5 * MAX_UNITS_READ,
}
_INDEX: Final = Codec(_Index, **_LIMITS)
_NOT_NEEDED: Final = {"job_id": "", "task_id": "", "attempt_id": "", "created": 0, "saved": 0}
_FILE: Final = Codec(PendingFile, "file of the job", unwritten=_NOT_NEEDED, **LINE)


def write_list(
    ports: Ports,
    directory: JobDirectory,
    pages: Iterable[Sequence[Sequence[T]]],
    encode: Callable[[T], bytes],
) -> tuple[str, list[Unit]]:
    """Put the pages, each of one unit or several, and their index; return its digest and the units.

    ``encode`` makes a line of an item, within the limits `LINE`. The same items give the same
    objects. Raises `InvalidInputError` (``TOO_LARGE``) for what could not be read again.
    """

    def put(numbered: tuple[int, Sequence[Sequence[T]]]) -> tuple[int, str, list[int]]:
        number, units = numbered
        lines = [encode(item) + b"\n" for unit in units for item in unit]
        body = bounded(b"".join(lines), what="a page", max_bytes=MAX_PAGE_BYTES, most=_ANY)
        sha256 = digest(body)
        ports.store.put(directory.bucket, directory.page(sha256), body, content_type=_NDJSON)
        return number, sha256, [len(unit) for unit in units]

    written: list[Unit] = []
    for _, sha256, sizes in sorted(ports.parallel(put, enumerate(pages))):
        start = 0
        for size in sizes:
            written.append(Unit(len(written), sha256, start, start + size))
            start += size
    index = bounded(dump(list(map(_UNIT.write, written))), **_LIMITS)
    ports.store.put(directory.bucket, directory.index(digest(index)), index)
    return digest(index), written


def decode_unit(value: object) -> Unit:
    """Read a unit as an index names it, the input of a worker. Raises `InvalidInputError`."""
    return _UNIT.read(value)


def read_index(reader: ObjectReader, directory: JobDirectory, sha256: str) -> list[Unit]:
    """The units of the list with that digest. Raises `NeedsOperatorError` (``PAGE_CHANGED``)."""
    body = _read(reader, directory, directory.index(sha256), sha256, MAX_INDEX_BYTES)
    return list(_INDEX.read({"units": parse(body, **_LIMITS)}).units)


def whole_pages(units: Iterable[Unit]) -> list[Unit]:
    """The units with those of one page put together, numbered anew: each page is read once."""
    pages: list[Unit] = []
    for unit in units:
        if pages and (pages[-1].page, pages[-1].stop) == (unit.page, unit.start):
            pages[-1] = replace(pages[-1], stop=unit.stop)
        else:
            pages.append(replace(unit, number=len(pages)))
    return pages


def read_unit(
    reader: ObjectReader, directory: JobDirectory, unit: Unit, decode: Callable[[bytes], T]
) -> list[T]:
    """The items of a unit. Raises as `read_index`."""
    body = _read(reader, directory, directory.page(unit.page), unit.page, MAX_PAGE_BYTES)
    return list(map(decode, body.splitlines()[unit.start : unit.stop]))


def read_list(
    ports: Ports, directory: JobDirectory, sha256: str, decode: Callable[[bytes], T]
) -> Iterator[T]:
    """The items of the list with that digest, in order. Raises as `read_index`.

    `PAGES_AT_ONCE` pages are read side by side, and held.
    """
    read = partial(read_unit, ports.store, directory, decode=decode)
    for some in in_groups(whole_pages(read_index(ports.store, directory, sha256)), PAGES_AT_ONCE):
        for items in together(ports.parallel, *[partial(read, page) for page in some]):
            yield from items


def in_groups(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """The items in lists of ``most``; the last one may be shorter."""
    remaining = iter(items)
    while some := list(islice(remaining, most)):
        yield some


def _read(reader: ObjectReader, directory: JobDirectory, key: str, sha256: str, most: int) -> bytes:
    try:
        body = reader.get(directory.bucket, key, max_bytes=most).body
    except (NotFoundError, InvalidInputError):
        body = b""
    if digest(body) != sha256:
        raise NeedsOperatorError(
            f"{key} is missing, or not what the pipeline wrote: restore it, then run"
            f" `s3commit commit {directory.typed}`",
            code=PAGE_CHANGED,
        )
    return body


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


def publish_manifest(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[str]:
    """Write ``_commits/<job_id>.jsonl`` and return the first keys. Raises as `read_index`.

    Whatever lies there, by an earlier try or by a stranger, is written over (I12). A short one goes
    up with one PUT, a long one in parts. Its name carries the job's id, so that `TidyUp` finds the
    upload of a worker that died on the way. Raises `TransientError` if the upload was aborted.
    """
    names: list[str] = []

    def committed() -> Iterator[CommittedFile]:
        for file in planned_files(ports, directory, record):
            if len(names) < SUCCESS_FILES:
                names.append(file.key)
            yield CommittedFile(file.key, file.length, expected_etag(file), file.rows)

    key = directory.commits
    parts = _parts(commit_lines(header_of(record), committed()))
    first = next(parts, b"")
    if len(first) < PUT_BYTES:
        ports.store.put(directory.bucket, key, first, content_type=_NDJSON)
        return names
    try:
        upload_id = ports.store.create_upload(
            directory.bucket, key, metadata={META_JOB: directory.job_id}, content_type=_NDJSON
        )
        etags, length = [], 0
        for number, part in enumerate(chain([first], parts), start=1):
            etags.append(ports.store.upload_part(directory.bucket, key, upload_id, number, part))
            length += len(part)
        ports.store.complete_upload(directory.bucket, key, upload_id, etags, length=length)
    except UploadGoneError as error:
        raise TransientError(error.message) from error
    return names


def _parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in parts, of which only the last has less than `PUT_BYTES`."""
    buffer = bytearray()
    for line in lines:
        buffer += line
        if len(buffer) >= PUT_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)
