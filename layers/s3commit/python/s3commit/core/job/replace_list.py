"""The replace list, as it lies in the job's directory (I5, I10).

Pages of lines ``{"key","etag","length"}`` and an index of the pages, each object named by the
digest of its bytes (docs/adr/0007); the ledger's record names the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from s3commit.core.formats.documents import VERSION
from s3commit.core.formats.layout import JobDirectory, is_data
from s3commit.core.formats.manifest import digest
from s3commit.core.formats.strict_json import Fields, dump, parse
from s3commit.core.model.errors import JobRefusedError, NotFoundError
from s3commit.core.model.limits import DELETE_AT_ONCE, REPLACED_PAGE
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, ObjectReader

LIST_CHANGED = "LIST_CHANGED"
MAX_INDEX_BYTES = 16 * 1024 * 1024
MAX_PAGE_BYTES = 64 * 1024 * 1024  # REPLACED_PAGE keys, each byte of them escaped
MAX_LINE_BYTES = 8 * 1024
MAX_PAGES = 100_000


def write_list(
    ports: Ports, directory: JobDirectory, files: Iterable[ListedObject]
) -> ReplacedFacts:
    """Put pages and index, with memory for one page; the same files, the same objects."""
    pages = []
    total = size = 0
    for page in in_pages(files):
        pages.append(put_page(ports, directory, page_body(page)))
        total += len(page)
        size += sum(one.length for one in page)
    index = index_body(directory, total, pages)
    ports.store.put(directory.bucket, directory.replaced(digest(index)), index)
    return ReplacedFacts(digest(index), total, size)


def in_pages(files: Iterable[ListedObject]) -> Iterator[list[ListedObject]]:
    """The files page by page; each in key order, so that one page is the same in any order."""
    remaining = iter(files)
    while page := list(islice(remaining, REPLACED_PAGE)):
        yield sorted(page, key=lambda one: one.key)


def page_body(page: Iterable[ListedObject]) -> bytes:
    """A page of the list."""
    return b"".join(
        dump({"key": one.key, "etag": one.etag, "length": one.length}) + b"\n" for one in page
    )


def put_page(ports: Ports, directory: JobDirectory, body: bytes) -> str:
    """Put a page under its name; return its digest."""
    sha256 = digest(body)
    ports.store.put(
        directory.bucket, directory.page(sha256), body, content_type="application/x-ndjson"
    )
    return sha256


def index_body(directory: JobDirectory, files: int, pages: Sequence[str]) -> bytes:
    """The index of a list: how many files it has, and the digests of its pages."""
    return dump(
        {"version": VERSION, "jobId": directory.job_id, "files": files, "pages": list(pages)}
    )


def read_index(
    reader: ObjectReader, directory: JobDirectory, replaced: ReplacedFacts
) -> tuple[str, ...]:
    """The digests of the pages.

    Raises `JobRefusedError` (``LIST_CHANGED``) if the index is not the one that was decided.
    """
    body = _read(
        reader, directory, directory.replaced(replaced.sha256), replaced.sha256, MAX_INDEX_BYTES
    )
    fields = Fields(
        parse(body, what="replace list", max_bytes=MAX_INDEX_BYTES, most=MAX_PAGES + 10), "$"
    )
    return fields.texts("pages", most=MAX_PAGES)


def read_page(
    reader: ObjectReader, directory: JobDirectory, sha256: str
) -> Iterator[list[ListedObject]]:
    """What a page names, in groups as they are deleted; `JobRefusedError` as `read_index`.

    What does not lie in the destination is refused.
    """
    body = _read(reader, directory, directory.page(sha256), sha256, MAX_PAGE_BYTES)
    lines = iter(body.splitlines())
    while group := [_listed(directory, line) for line in islice(lines, DELETE_AT_ONCE)]:
        yield group


def listed_files(
    reader: ObjectReader, directory: JobDirectory, replaced: ReplacedFacts
) -> Iterator[list[ListedObject]]:
    """What the whole list names, in groups; `JobRefusedError` as `read_index`."""
    for sha256 in read_index(reader, directory, replaced):
        yield from read_page(reader, directory, sha256)


def _read(
    reader: ObjectReader, directory: JobDirectory, key: str, sha256: str, max_bytes: int
) -> bytes:
    try:
        body = reader.get(directory.bucket, key, max_bytes=max_bytes).body
    except NotFoundError:
        body = b""
    if digest(body) != sha256:
        raise JobRefusedError(f"{key} is not the replace list that was decided", code=LIST_CHANGED)
    return body


def _listed(directory: JobDirectory, line: bytes) -> ListedObject:
    fields = Fields(parse(line, what="replace list", max_bytes=MAX_LINE_BYTES), "$")
    listed = ListedObject(fields.text("key"), fields.text("etag"), fields.integer("length"))
    # The digests say that the pipeline wrote it; that it never leaves the destination is I7's.
    is_inside = listed.key.startswith(directory.destination.prefix)
    if not is_inside or not is_data(directory.relative(listed.key)):
        raise JobRefusedError(
            f"the replace list names {listed.key[:200]!r}, which is no data of"
            f" {directory.destination.uri}",
            code=LIST_CHANGED,
        )
    return listed
