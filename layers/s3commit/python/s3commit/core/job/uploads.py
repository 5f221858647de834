"""The uploads of a job: whose an upload is, and how the job's own end (I4, I5, I12); and listings.

The id in a file's name says whose the upload is. A job above wins: of directories inside each other
with one id, the outer one is the job: a client with rights below the inner one alone can't have
made it.

Listings of many keys are made in ranges, side by side. S3 gives 1,000 keys a request, and a request
names the key that it starts after: one after the other, a million keys take minutes. A range that
has given two pages is cut in two at a key that need not exist, since S3 starts anywhere. The part
of a page beyond its range is read in vain, so a caller that knows some of the keys names those to
cut at (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html, StartAfter;
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html, key-marker).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Final, Generic, TypeVar

from s3commit.core.formats.layout import JobDirectory, directories_above, owner_of
from s3commit.core.job.documents import opened_at
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.core.model.limits import ABORT_ROUNDS, S3_CLOCKS
from s3commit.core.model.locks import seconds
from s3commit.core.ports.bundle import CallTime, ParallelMap, Ports, in_order
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import ListedObject, ObjectStore, OpenUpload

PAGE: Final = 1_000  # keys of one request
# Ranges under way at a time, as many as a step has threads; in memory is a page of each.
RANGES: Final = 32

# Of the tree of all keys, on the way to a random one; and of one fork.
FORKS: Final = 8
WAYS: Final = 100
_LAST: Final = "\U0010ffff"
_ABOVE_ALL: Final = 0x7F  # a cut ends in a character of ASCII: most keys are made of those

T = TypeVar("T", ListedObject, OpenUpload)


@dataclass(slots=True)
class _Range(Generic[T]):
    """The rest of its listing, up to the key ``last``; to the end if that is empty."""

    prefix: str
    listing: Iterator[T]
    last: str = ""
    pages: int = 0


def is_further_up(ports: Ports, directory: JobDirectory) -> bool:
    """True if a directory above has a job of this id, which then owns the uploads (I12).

    Two listings for each directory above: a HEAD takes more rights.
    """
    traces: list[str] = []
    for above in directories_above(directory.destination.prefix):
        job = JobDirectory(Destination(directory.bucket, above), directory.job_id)
        traces += job.prefix, job.commits
    first = ports.parallel(lambda one: next(ports.store.list(directory.bucket, one), None), traces)
    return any(first)


def is_older(upload: OpenUpload, opened_at: str) -> bool:
    """True if the upload was begun before the job's ``_job.json``: it is another program's (I12).

    Its name, or a manifest, proves nothing: anyone who sees an open upload can open a job with the
    id in its name. ``opened_at`` is when S3 got that document; another of its hosts says when the
    upload was begun, by a clock that may be late (A7).
    """
    is_before = upload.initiated < opened_at  # most are not, and a million are asked about
    return is_before and seconds(upload.initiated, opened_at) > S3_CLOCKS


def uploads_of_job(
    ports: Ports, directory: JobDirectory, opened_at: str, uploads: Iterable[OpenUpload]
) -> Iterator[OpenUpload]:
    """The job's of these uploads at its destination, and none that `is_older` (I12).

    ``opened_at`` is when S3 got the ``_job.json``. Without one a name proves nothing: anyone may
    choose it. Nor does it where a directory above has a job of the same id.
    """
    if not opened_at:
        return
    of_outer: bool | None = None
    for upload in uploads:
        if owner_of(upload.key) != directory.job_id or is_older(upload, opened_at):
            continue
        if of_outer is None:
            of_outer = is_further_up(ports, directory)
        if of_outer:
            return
        yield upload


def abort_uploads(ports: Ports, directory: JobDirectory, time: CallTime) -> bool:
    """Abort every open upload of the job, counted or not; True if none is left (I4, I5).

    Each as it is listed: a call that ends before, by ``time`` or by a crash, leaves less to the
    next one.

    The job's id in the file name, before the first dot, proves whose an upload is; manifests are
    not asked, since an attempt that was killed has none. Listed again until nothing is left, since
    a task that still runs may open new ones faster than they are aborted; and each is
    aborted until ListParts does not know it: a part that was under way may have survived the abort
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html).
    """
    left: list[OpenUpload] = []
    listed: Iterable[OpenUpload]
    for _ in range(ABORT_ROUNDS):
        known, is_cut = set(left), time.is_cut
        listed = () if is_cut else time.take(own_uploads(ports, directory))
        new = (one for one in listed if one not in known)
        again, left, found = left, [], False
        for upload, is_gone in ports.parallel(
            lambda one: (one, abort(ports.store, directory.bucket, one.key, one.upload_id)),
            chain(again, new),
        ):
            found = True
            if not is_gone:  # S3 still holds parts of it
                left.append(upload)
        if not found:
            return not is_cut
    return False


def own_uploads(ports: Ports, directory: JobDirectory) -> Iterator[OpenUpload]:
    """Every open upload of the job. Raises `LostRaceError` if the ledger has lost it since."""
    record = ports.ledger.job(directory.ref)
    if record is None:
        raise LostRaceError(f"job {directory.job_id} is not in the ledger any more", None)
    listed = list_uploads(ports, directory.bucket, directory.destination.prefix)
    yield from uploads_of_job(ports, directory, opened_at(ports.store, record), listed)


def abort(store: ObjectStore, bucket: str, key: str, upload_id: str) -> bool:
    """Abort an upload; True if S3 has none of it left: it may keep parts that were in flight.

    A listing finds an upload with checksums under another account's key, whose parts can't be
    listed: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListParts.html
    """
    store.abort_upload(bucket, key, upload_id)
    try:
        return not store.upload_is_open(bucket, key, upload_id)
    except (AccessError, InvalidInputError):
        return all(one.upload_id != upload_id for one in store.list_uploads(bucket, key))


def list_objects(ports: Ports, bucket: str, prefixes: Iterable[str]) -> Iterator[ListedObject]:
    """Every object below the prefixes, none of which is inside another.

    The order depends on the keys alone: the same objects come in the same order again.
    """
    listing = partial(ports.store.list, bucket)
    ranges = (_Range(prefix, listing(prefix, after="")) for prefix in prefixes)
    return _side_by_side(ports.parallel, listing, ranges)


def list_uploads(
    ports: Ports, bucket: str, prefix: str, cuts: Iterable[str] = ()
) -> Iterator[OpenUpload]:
    """Every open upload below the prefix, in an order that depends on the keys alone.

    ``cuts`` are keys in order, with less than a page of uploads between one and the next; those
    outside the prefix are ignored.
    """
    listing = partial(ports.store.list_uploads, bucket)
    ends = [*(cut for cut in cuts if cut.startswith(prefix)), ""]
    ranges = (
        _Range(prefix, listing(prefix, after=after), last)
        for after, last in zip(("", *ends), ends, strict=False)
    )
    return _side_by_side(ports.parallel, listing, ranges)


def _side_by_side(
    parallel: ParallelMap, listing: Callable[..., Iterator[T]], waiting: Iterator[_Range[T]]
) -> Iterator[T]:
    ranges: list[_Range[T]] = []
    while True:
        ranges.extend(islice(waiting, RANGES - len(ranges)))
        if not ranges:
            return
        unfinished: list[_Range[T]] = []
        pages = in_order(parallel, _next_page, ranges)
        for number, (one, found) in enumerate(zip(ranges, pages, strict=True), start=1):
            yield from found
            if len(found) == PAGE:
                one.pages += 1
                unfinished.append(one)
                idle = RANGES - len(ranges) + number - len(unfinished)
                is_long = one.pages > 1 and idle > 0
                cut = _between(one.prefix, found[-1].key, one.last) if is_long else ""
                if cut:
                    unfinished.append(_Range(one.prefix, listing(one.prefix, after=cut), one.last))
                    one.last = cut
        ranges = unfinished


def _next_page(one: _Range[T]) -> list[T]:
    found = list(islice(one.listing, PAGE))
    return [item for item in found if item.key <= one.last] if one.last else found


def _between(prefix: str, low: str, high: str) -> str:
    """A key below ``prefix`` between the two, halfway where they differ; empty if none is found.

    An empty ``high`` is the end. S3 orders keys by their bytes in UTF-8, as Python does texts.
    """
    for at in range(len(prefix), len(low)):
        least = ord(low[at])
        most = min(ord(high[at]), _ABOVE_ALL) if high else _ABOVE_ALL
        if least + 1 < most:
            return low[:at] + chr((least + most) // 2)
        if high and low[at] != high[at]:
            high = ""  # every key that is like `low` up to here is below it
    return ""


def random_key(listing: Callable[..., Iterator[OpenUpload]], prefix: str, lot: int) -> str:
    """A key below ``prefix``, of an upload or between two, that the number ``lot`` chooses.

    Where keys part, each way on has the same chance, however many keys it has: so a writer that
    fills one can't keep a listing that begins at the key, itself included, from those of the first
    `WAYS` ways of each of the first `FORKS` forks (I12). Requests: ten for each fork, and one for
    each way.
    """
    place = prefix

    def behind(start: str) -> str:
        """The first key behind all that begin so; empty if there is none."""
        return next((one.key for one in listing(place, after=start + _LAST)), "")

    for _ in range(FORKS):
        key = next((one.key for one in listing(place, after=place)), "")
        least = min(len(place), len(key))
        shorter = [key[:length] for length in range(least, len(key) + 1)]
        fork = least + bisect_left(shorter, True, key=lambda start: behind(start) != "")
        ways: list[str] = []
        while key and len(ways) < WAYS:
            ways.append(key[:fork])
            key = behind(ways[-1])
        if not ways:
            break
        lot, way = divmod(lot, len(ways))
        place = ways[way]
    return place
