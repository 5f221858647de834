"""Listings of many keys, in ranges side by side.

S3 gives 1,000 keys a request, and a request names the key that it starts after: one after the
other, a million keys take minutes. A range that has given two pages is cut in two at a key that
need not exist, since S3 starts anywhere. The part of a page beyond its range is read in vain, so a
caller that knows some of the keys names those to cut at
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html, StartAfter;
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html, key-marker).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, Generic, TypeVar

from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ListedObject, OpenUpload
from s3commit.core.ports.parallel import ParallelMap, in_order

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


def list_objects(ports: S3Ports, bucket: str, prefixes: Iterable[str]) -> Iterator[ListedObject]:
    """Every object below the prefixes, none of which is inside another.

    The order depends on the keys alone: the same objects come in the same order again.
    """
    listing = partial(ports.store.list, bucket)
    ranges = (_Range(prefix, listing(prefix, after="")) for prefix in prefixes)
    return _side_by_side(ports.parallel, listing, ranges)


def list_uploads(
    ports: S3Ports, bucket: str, prefix: str, cuts: Iterable[str] = ()
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
