"""Lists of the pipeline's own: pages of lines, and an index that names the pages.

The plan of a job, its replace list and its list of partitions are kept so, below
``_s3commit/<ref>/``. A list comes in units, of which each is one call of a worker: ranges of
the lines of a page. Each object is named by the digest of its bytes; the ledger names an index, and
an index names units (docs/adr/0007). No client may write there, so what a page says was verified
when it was written.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import chain, islice
from operator import call
from typing import Annotated, Any, Final, TypeVar

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import bounded, digest, dump, parse
from s3commit.core.model.errors import (
    PAGE_CHANGED,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
)
from s3commit.core.model.fields import Name, Text
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ObjectReader
from s3commit.core.ports.parallel import in_order


@dataclass(frozen=True, slots=True)
class Unit:
    """A range of the lines of one page, named by its digest; ``stop`` is excluded.

    ``number`` counts the units of a list from 0 without a gap.
    """

    number: Annotated[int, Name("unit")]
    page: Annotated[str, Text(64)]
    start: Annotated[int, Name("from")]
    stop: Annotated[int, Name("to")]


T = TypeVar("T")
MAX_INDEX_BYTES: Final = 16 * 1024 * 1024
MAX_PAGE_BYTES: Final = 32 * 1024 * 1024

# A line may be as long as a page: a file of 10,000 parts with etags that need escapes.
LINE: Final[Any] = {"max_bytes": MAX_PAGE_BYTES, "most": 100_000}
PAGES_AT_ONCE: Final = 32
_ANY: Final = 2**63
NDJSON: Final = "application/x-ndjson"
UNIT: Final = Codec(Unit, "unit")  # as an index names it, the input of a worker
_LIMITS: Final[Any] = {"what": "index", "max_bytes": MAX_INDEX_BYTES, "most": 500_000}


def write_list(
    ports: S3Ports,
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
            yield partial(put, directory.page(key), body, content_type=NDJSON)
        index = bounded(dump(list(map(UNIT.write, written))), **_LIMITS)
        sha256 = digest(index)
        yield partial(put, directory.index(sha256), index)
        if beside is not None:
            yield beside

    put = partial(ports.store.put, directory.bucket)
    for _done in ports.parallel(call, puts()):
        pass
    return sha256, written


def read_index(reader: ObjectReader, directory: JobDirectory, sha256: str) -> list[Unit]:
    """The units of the list with that digest. Raises `NeedsOperatorError` (``PAGE_CHANGED``)."""
    body = _read(reader, directory, directory.index(sha256), sha256, MAX_INDEX_BYTES)
    return list(map(UNIT.read, parse(body, **_LIMITS)))


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
    lines = islice(BytesIO(body), unit.start, unit.stop)
    return [decode(line.removesuffix(b"\n")) for line in lines]


def read_list(
    ports: S3Ports, directory: JobDirectory, sha256: str, decode: Callable[[bytes], T]
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
            f" `s3commit commit {directory.typed}`; if it can't be restored,"
            f" `s3commit abort {directory.typed} --lists-lost`",
            code=PAGE_CHANGED,
        )
    return body
