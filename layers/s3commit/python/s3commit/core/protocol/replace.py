"""The replace list: the files of before, noted before the decision and deleted after it (I5, I10).

Pages of lines ``{"key","etag","length"}`` and an index of the pages, each object named by the
digest of its bytes (docs/adr/0007); the ledger's record names the index. Nothing is deleted that is
not on a page of the index that was decided, and only as it was seen then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from s3commit.core.documents import VERSION
from s3commit.core.errors import JobRefusedError, NotFoundError
from s3commit.core.jsontext import Fields, dump, parse
from s3commit.core.layout import JobDirectory, belongs_to_job, is_data, partition_of
from s3commit.core.manifest import digest
from s3commit.core.model import JobRecord, ReplacedFacts, Scope
from s3commit.core.policy import REPLACED_PAGE
from s3commit.core.ports import ListedObject, ObjectReader
from s3commit.core.protocol.partitions import read_partitions
from s3commit.core.protocol.pipeline import Pipeline

MAX_INDEX_BYTES = 16 * 1024 * 1024
MAX_PAGE_BYTES = 64 * 1024 * 1024  # REPLACED_PAGE keys, each byte of them escaped
MAX_LINE_BYTES = 8 * 1024
MAX_PAGES = 100_000
DELETE_AT_ONCE = 1_000  # DeleteObjects' own limit


def files_of_before(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord
) -> Iterator[ListedObject]:
    """The visible files in the reach of the job's policy that are not the job's own.

    Hidden names are no data. In scope partition a partition reaches down to every depth; the root
    as a partition means the files directly in it. A partition at a location is all that lies there,
    and in scope directory all of the job's locations are in reach. The partitions are listed side
    by side, each in memory: thousands of them are more than one listing after the other could take.
    """
    locations = record.plan.locations if record.plan else {}
    if record.scope is Scope.DIRECTORY:
        for one in (place, *map(place.at, locations.values())):
            yield from _in_reach(pipeline, one, one.destination.prefix, deep=True)
        return
    for found in pipeline.parallel(
        lambda reach: list(_in_reach(pipeline, reach[0], reach[1], deep=reach[2])),
        _partitions(pipeline, place, record, locations),
    ):
        yield from found


def _in_reach(
    pipeline: Pipeline, place: JobDirectory, prefix: str, *, deep: bool
) -> Iterator[ListedObject]:
    for listed in pipeline.store.list(place.bucket, prefix):
        relative = place.relative(listed.key)
        if not is_data(relative) or belongs_to_job(listed.key, place.job_id):
            continue
        if deep or not partition_of(relative):
            yield listed


def _partitions(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord, locations: Mapping[str, str]
) -> Iterator[tuple[JobDirectory, str, bool]]:
    """The prefixes to list, each with its place and whether it reaches down."""
    root = place.destination.prefix
    covered = ""
    for name in sorted(read_partitions(pipeline, place, record)):
        if not name:
            yield place, root, False
        elif name in locations:
            yield place.at(locations[name]), locations[name], True
        elif not covered or not name.startswith(covered):  # one inside another is listed already
            covered = name
            yield place, root + name, True


def write_list(
    pipeline: Pipeline, place: JobDirectory, files: Iterable[ListedObject], *, overwrites: bool
) -> ReplacedFacts:
    """Put pages and index, with memory for one page; the same files, the same objects."""
    pages = []
    total = size = 0
    remaining = iter(files)
    while page := list(islice(remaining, REPLACED_PAGE)):
        body = b"".join(
            dump({"key": one.key, "etag": one.etag, "length": one.length}) + b"\n" for one in page
        )
        sha256 = digest(body)
        pipeline.store.put(
            place.bucket, place.page(sha256), body, content_type="application/x-ndjson"
        )
        pages.append(sha256)
        total += len(page)
        size += sum(one.length for one in page)
    index = dump({"version": VERSION, "jobId": place.job_id, "files": total, "pages": pages})
    pipeline.store.put(place.bucket, place.replaced(digest(index)), index)
    return ReplacedFacts(digest(index), total, size, overwrites)


def remove_listed(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    """Delete what the decided list names, each only with the etag that was seen; repeatable.

    Raises `JobRefusedError` (``LIST_CHANGED``) if the list is not the one that was decided.
    """
    if record.replaced is None or not record.replaced.files:
        return
    locations = record.plan.locations.values() if record.plan else ()
    places = (place, *map(place.at, locations))
    groups = listed_files(pipeline.store, places, record.replaced)
    for _done in pipeline.parallel(
        lambda group: pipeline.store.delete_seen(place.bucket, group), groups
    ):
        pass


def listed_files(
    reader: ObjectReader, places: Sequence[JobDirectory], replaced: ReplacedFacts
) -> Iterator[list[ListedObject]]:
    """What the list names, in groups as they are deleted; `JobRefusedError` as above.

    ``places`` are the job's directories, the main one first: what lies in none is refused.
    """
    place = places[0]
    index = _read(reader, place, place.replaced(replaced.sha256), replaced.sha256)
    fields = Fields(parse(index, what="replace list", max_bytes=MAX_INDEX_BYTES), "$")
    for sha256 in fields.texts("pages", most=MAX_PAGES):
        lines = iter(_read(reader, place, place.page(sha256), sha256).splitlines())
        while group := [_listed(places, line) for line in islice(lines, DELETE_AT_ONCE)]:
            yield group


def _read(reader: ObjectReader, place: JobDirectory, key: str, sha256: str) -> bytes:
    try:
        body = reader.get(place.bucket, key, max_bytes=MAX_PAGE_BYTES).body
    except NotFoundError:
        body = b""
    if digest(body) != sha256:
        raise JobRefusedError(
            f"{key} is not the replace list that was decided", code="LIST_CHANGED"
        )
    return body


def _listed(places: Sequence[JobDirectory], line: bytes) -> ListedObject:
    fields = Fields(parse(line, what="replace list", max_bytes=MAX_LINE_BYTES), "$")
    listed = ListedObject(fields.text("key"), fields.text("etag"), fields.integer("length"))
    # The digests say that the pipeline wrote it; that it never leaves the job's places is I7's.
    if not any(
        listed.key.startswith(place.destination.prefix) and is_data(place.relative(listed.key))
        for place in places
    ):
        raise JobRefusedError(
            f"the replace list names {listed.key[:200]!r}, which is no data of"
            f" {places[0].destination.uri}",
            code="LIST_CHANGED",
        )
    return listed
