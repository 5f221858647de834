"""How big the parts are, and how many bytes a task may send at once."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Final

from s3commit.core.model.errors import InvalidInputError

MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB
TIB: Final = 1024 * GIB

# S3's limits: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
MIN_PART_BYTES: Final = 5 * MIB
MAX_PART_BYTES: Final = 5 * GIB
MAX_PARTS: Final = 10_000
MAX_FILE_BYTES: Final = 5 * TIB

DEFAULT_PART_BYTES: Final = 8 * MIB
DEFAULT_THREADS: Final = 4
MAX_THREADS: Final = 256
DEFAULT_IN_FLIGHT_BYTES: Final = 32 * MIB


@dataclass(frozen=True, slots=True)
class PartSizes:
    """The size in bytes of each part of a file; every part but the last has exactly that.

    The first ``flat`` parts have ``first`` bytes. Then each ``every`` parts are ``step`` bytes
    bigger than those before: with the defaults a file of 8 GiB has parts of 8 MiB throughout, and
    10,000 parts hold 5 TiB with the last of them at about 1.1 GiB. Part sizes depend on nothing
    but the part's number, so a file needs no size in advance.
    """

    first: int = DEFAULT_PART_BYTES
    flat: int = 1000
    every: int = 100
    step: int = 13 * MIB
    max_parts: int = MAX_PARTS
    max_bytes: int = MAX_FILE_BYTES

    def size(self, number: int) -> int:
        """The bytes of part ``number`` (from 1)."""
        levels = -(-max(0, number - self.flat) // self.every)
        return min(MAX_PART_BYTES, self.first + levels * self.step)

    @property
    def capacity(self) -> int:
        """The bytes of the largest file that these parts can hold."""
        return _capacity(self)


@functools.lru_cache(maxsize=16)
def _capacity(sizes: PartSizes) -> int:
    return min(sizes.max_bytes, sum(map(sizes.size, range(1, sizes.max_parts + 1))))


@dataclass(frozen=True, slots=True)
class UploadSettings:
    """What a task may use; picklable, and the same for all tasks of a job.

    A task holds in memory what is written and does not fill a part yet, at most one part for each
    open file, and the parts on their way to S3: ``threads`` send them, at most ``in_flight_bytes``
    at once (always one part, however big); a writer that is faster than S3 waits. Raises
    `InvalidInputError` (``BAD_OPTION``).
    """

    parts: PartSizes = field(default_factory=PartSizes)
    threads: int = DEFAULT_THREADS
    in_flight_bytes: int = DEFAULT_IN_FLIGHT_BYTES

    def __post_init__(self) -> None:
        _within("part size", self.parts.first, MIN_PART_BYTES, MAX_PART_BYTES)
        _within("threads", self.threads, 1, MAX_THREADS)
        _within("in-flight bytes", self.in_flight_bytes, 1, TIB)


def _within(what: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInputError(
            f"{what} {value} is not between {least} and {most}", code="BAD_OPTION"
        )
