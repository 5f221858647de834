"""Listings of millions of keys: ranges of keys are listed side by side.

S3 gives 1,000 keys a request, and a request names the key that it starts after: one after the
other, a million keys take minutes. A range that has given two pages is cut in two at a key that may
not exist, since S3 starts anywhere. What a page gives beyond its range is read in vain, so a caller
that knows some of the keys names those to cut at
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html, StartAfter;
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html, key-marker).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, OpenUpload

PAGE: Final = 1_000  # keys of one request
# Ranges under way at a time, as many as a step has threads; in memory is a page of each.
RANGES: Final = 32

_ABOVE_ALL: Final = 0x7F  # a cut ends in a character of ASCII: most keys are made of those

T = TypeVar("T", ListedObject, OpenUpload)


@dataclass(slots=True)
class _Range(Generic[T]):
    """What its listing has yet to give, up to the key ``last``; to the end if that is empty."""

    prefix: str
    listing: Iterator[T]
    last: str = ""
    pages: int = 0


def list_objects(
    ports: Ports, bucket: str, prefixes: Iterable[str]
) -> Iterator[tuple[str, ListedObject]]:
    """Every object below the prefixes, with its prefix; twice if one lies inside another.

    The order depends on the keys alone: the same objects come in the same order again.
    """
    listing = ports.store.list
    ranges = (_Range(prefix, listing(bucket, prefix, after="")) for prefix in prefixes)
    return _in_ranges(ports, listing, bucket, ranges)


def list_uploads(
    ports: Ports, bucket: str, prefix: str, cuts: Iterable[str] = ()
) -> Iterator[OpenUpload]:
    """Every open upload below the prefix, in an order that depends on the keys alone.

    ``cuts`` are keys in order, with less than a page of uploads between one and the next; those
    outside the prefix are ignored.
    """
    listing = ports.store.list_uploads
    ends = [*(cut for cut in cuts if cut.startswith(prefix)), ""]
    ranges = (
        _Range(prefix, listing(bucket, prefix, after=after), last)
        for after, last in zip(("", *ends), ends, strict=False)
    )
    return (one for _, one in _in_ranges(ports, listing, bucket, ranges))


def _in_ranges(
    ports: Ports, listing: Callable[..., Iterator[T]], bucket: str, waiting: Iterable[_Range[T]]
) -> Iterator[tuple[str, T]]:
    waiting = iter(waiting)
    ranges: list[_Range[T]] = []
    while True:
        ranges.extend(islice(waiting, RANGES - len(ranges)))
        if not ranges:
            return
        pages: dict[int, list[T]] = dict(ports.parallel(_next_page, enumerate(ranges)))
        unfinished: list[_Range[T]] = []
        for number, one in enumerate(ranges):
            found = pages[number]
            for item in found:
                yield one.prefix, item
            if len(found) == PAGE:
                one.pages += 1
                unfinished.append(one)
                idle = RANGES - len(ranges) + number + 1 - len(unfinished)
                is_long = one.pages > 1 and idle > 0
                cut = _between(one.prefix, found[-1].key, one.last) if is_long else ""
                if cut:
                    rest = listing(bucket, one.prefix, after=cut)
                    unfinished.append(_Range(one.prefix, rest, one.last))
                    one.last = cut
        ranges = unfinished


def _next_page(numbered: tuple[int, _Range[T]]) -> tuple[int, list[T]]:
    number, one = numbered
    found = list(islice(one.listing, PAGE))
    if one.last:
        found = [item for item in found if item.key <= one.last]
    return number, found


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
