"""The plan of a job: kept in pages of lines and an index of pages, and listed for readers.

The files that a job completes are its plan. They come in units, of which each is one call of a
worker. The lists of what it replaces (`s3commit.core.job.replaced`) are kept in the same way, below
``_s3commit/<ref>/``. Each object is named by the digest of its bytes; the ledger names an index,
and an index names units, which are ranges of pages (docs/adr/0007). No client may write there, so
what a page says was verified when it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from operator import call
from typing import Any, Final, TypeVar

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.documents import SUCCESS_FILES, CommittedFile, commit_lines, header_of
from s3commit.core.formats.layout import META_JOB, JobDirectory
from s3commit.core.formats.manifest import digest, expected_etag
from s3commit.core.formats.strict_json import bounded, dump, parse
from s3commit.core.formats.ticket import Ticket, Unit
from s3commit.core.model.errors import (
    NOT_READABLE,
    PAGE_CHANGED,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
    PreconditionError,
    TransientError,
    UploadGoneError,
)
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
from s3commit.core.ports.bundle import Ports, in_order
from s3commit.core.ports.objects import ObjectReader

T = TypeVar("T")

MAX_INDEX_BYTES: Final = 16 * 1024 * 1024
MAX_PAGE_BYTES: Final = 32 * 1024 * 1024
# A line may be as long as a page: a file of 10,000 parts with etags that need escapes.
LINE: Final[Any] = {"max_bytes": MAX_PAGE_BYTES, "most": 100_000}
PAGES_AT_ONCE: Final = 32
_ANY: Final = 2**63
_NDJSON: Final = "application/x-ndjson"


_UNIT: Final = Codec(Unit, "unit")
_LIMITS: Final[Any] = {
    "what": "index",
    "max_bytes": MAX_INDEX_BYTES,
    "most": 500_000,
}
_NOT_NEEDED: Final = {"job_id": "", "task_id": "", "attempt_id": "", "created": 0, "saved": 0}
_FILE: Final = Codec(PendingFile, "file of the job", unwritten=_NOT_NEEDED, **LINE)


def write_list(
    ports: Ports,
    directory: JobDirectory,
    pages: Iterable[Sequence[Sequence[T]]],
    encode: Callable[[T], bytes],
    beside: Callable[[], object] | None = None,
) -> tuple[str, list[Unit]]:
    """Put the pages, each of one unit or several, and their index; return its digest and the units.

    ``encode`` makes a line of an item, within the limits `LINE`. The same items give the same
    objects. When all of them are known ``beside`` is called, beside the last puts. Raises
    `InvalidInputError` (``TOO_LARGE``) for what could not be read again.
    """
    written: list[Unit] = []
    sha256 = ""

    def puts() -> Iterator[Callable[[], object]]:
        nonlocal sha256
        for page in pages:
            body = b"\n".join(map(encode, chain.from_iterable(page))) + b"\n"
            bounded(body, what="a page", max_bytes=MAX_PAGE_BYTES, most=_ANY)
            key, start = digest(body), 0
            for size in map(len, page):
                written.append(Unit(len(written), key, start, start + size))
                start += size
            yield partial(put, directory.page(key), body, content_type=_NDJSON)
        index = bounded(dump(list(map(_UNIT.write, written))), **_LIMITS)
        sha256 = digest(index)
        yield partial(put, directory.index(sha256), index)
        if beside is not None:
            yield beside

    put = partial(ports.store.put, directory.bucket)
    for _done in ports.parallel(call, puts()):
        pass
    return sha256, written


def decode_unit(value: object) -> Unit:
    """Read a unit as an index names it, the input of a worker. Raises `InvalidInputError`."""
    return _UNIT.read(value)


def read_index(reader: ObjectReader, directory: JobDirectory, sha256: str) -> list[Unit]:
    """The units of the list with that digest. Raises `NeedsOperatorError` (``PAGE_CHANGED``)."""
    body = _read(reader, directory, directory.index(sha256), sha256, MAX_INDEX_BYTES)
    return list(map(_UNIT.read, parse(body, **_LIMITS)))


def whole_pages(units: Iterable[Unit]) -> list[Unit]:
    """The units with those of one page put together, numbered again: each page is read once."""
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
    pages = whole_pages(read_index(ports.store, directory, sha256))
    for some in in_groups(pages, PAGES_AT_ONCE):
        yield from chain.from_iterable(in_order(ports.parallel, read, some))


def in_groups(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """The items in lists of ``most``; the last one may be shorter."""
    remaining = iter(items)
    while some := list(islice(remaining, most)):
        yield some


def grouped(
    items: Iterable[T], most: int, weigh: Callable[[T], int], heaviest: int
) -> Iterator[list[T]]:
    """The items in lists of at most ``most``, and ``heaviest`` together; one item may be heavier.

    The cut depends on the items and their order alone.
    """
    group: list[T] = []
    weight = 0
    for item in items:
        more = weigh(item)
        if group and (len(group) >= most or weight + more > heaviest):
            yield group
            group, weight = [], 0
        group.append(item)
        weight += more
    if group:
        yield group


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
    ports: Ports,
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

    There are at most `MAX_UNITS`, so a larger job gets larger ones.
    """
    small = max(SMALLEST_UNIT, -(-total // UNITS_OF_A_JOB))
    most = max(min(small, UNIT_FILES), -(-total // MAX_UNITS))
    # Files of many parts end a unit early, where even one file a unit would not be too many units.
    return most, UNIT_PARTS if total <= MAX_UNITS else total * MAX_PARTS


def parts_of(file: PendingFile) -> int:
    """How many parts the file's upload has."""
    return len(file.etags)


def files_of_unit(reader: ObjectReader, directory: JobDirectory, unit: Unit) -> list[PendingFile]:
    """The files of one unit of the plan. Raises as `read_unit`."""
    return read_unit(reader, directory, unit, _FILE.decode)


def planned_files(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[PendingFile]:
    """Every file of the plan, in its order. Raises as `read_index`."""
    return read_list(ports, directory, record.planned.sha256, _FILE.decode)


def files_of_few(ports: Ports, ticket: Ticket) -> list[PendingFile]:
    """Every file of a small plan, whose units the ticket has; of a larger one none.

    None either where a page is missing, as when the job has ended: `planned_files` reports it.
    """
    read = partial(files_of_unit, ports.store, ticket.directory)
    with suppress(NeedsOperatorError):
        return [*chain.from_iterable(in_order(ports.parallel, read, whole_pages(ticket.few)))]
    return []


def publish_manifest(
    ports: Ports, directory: JobDirectory, record: JobRecord, files: Iterable[PendingFile]
) -> list[str]:
    """Write ``_commits/_<job_id>.jsonl`` of the plan's ``files``, and return the first keys.

    An object there stays if it is the same, by an earlier try: its time says in what order jobs
    were published. Anything else, a stranger's, is written over (I12). A short one goes up with one
    PUT, a long one in parts. Its name carries the job's id, so that `TidyUp` finds the upload of a
    worker that died on the way. Raises `TransientError` if the upload was aborted.
    """
    names: list[str] = []

    def committed() -> Iterator[CommittedFile]:
        for file in files:
            if len(names) < SUCCESS_FILES:
                names.append(file.key)
            etag = expected_etag(file)
            yield CommittedFile(file.key, file.length, etag, file.rows, file.origin)

    key = directory.commits
    parts = _parts(commit_lines(header_of(record), committed()))
    first = next(parts, b"")
    if len(first) < PUT_BYTES:
        _put_once(ports, directory.bucket, key, first)
        return names
    try:
        upload_id = ports.store.create_upload(
            directory.bucket, key, metadata={META_JOB: directory.job_id}, content_type=_NDJSON
        )
        etags, length = [], 0
        for number, part in enumerate(chain([first], parts), start=1):
            etags.append(ports.store.upload_part(directory.bucket, key, upload_id, number, part))
            length += len(part)
        complete = partial(
            ports.store.complete_upload, directory.bucket, key, upload_id, etags, length=length
        )
        try:
            complete(if_absent=True)
        except PreconditionError:
            facts = None
            with suppress(*NOT_READABLE):  # a stranger's, encrypted with a key of its own
                facts = ports.store.head(directory.bucket, key)
            own = facts is not None and facts.metadata.get(META_JOB) == directory.job_id
            if own and facts is not None and facts.length == length:
                ports.store.abort_upload(directory.bucket, key, upload_id)
            else:
                complete()
    except UploadGoneError as error:
        raise TransientError(error.message) from error
    return names


def _put_once(ports: Ports, bucket: str, key: str, body: bytes) -> None:
    with suppress(PreconditionError):
        ports.store.put(bucket, key, body, if_absent=True, content_type=_NDJSON)
        return
    with suppress(*NOT_READABLE):
        if ports.store.get(bucket, key, max_bytes=len(body)).body == body:
            return
    ports.store.put(bucket, key, body, content_type=_NDJSON)


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
