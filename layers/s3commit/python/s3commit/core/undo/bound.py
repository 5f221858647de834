"""The bound of a look back: an undo is judged in one call, or refused by it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from s3commit.core.model.limits import CALL_SECONDS, MAX_HELD, MAX_LINES, MAX_LISTS
from s3commit.core.model.moments import shifted
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.clock import Clock

T = TypeVar("T")


class PastBoundError(Exception):
    """There is more than the bound, in words; no reader takes it for a list that can't be read."""


class Look:
    """The ports of one look, and its bound: files held, lists and lines read, and by a clock time.

    Where lists are read side by side the bound may be missed by a few. All methods give the items,
    and raise `PastBoundError`.
    """

    def __init__(self, ports: S3Ports, clock: Clock | None = None) -> None:
        self.ports = ports
        self._clock = clock
        self._until = shifted(clock.now(), CALL_SECONDS) if clock else ""
        self._seen = Counter[str]()

    def held(self, items: Iterable[T]) -> Iterator[T]:
        """The caller holds each of the items."""
        return self._counted(items, MAX_HELD, "concerns more than {} files, with copies of them")

    def lists(self, items: Iterable[T]) -> Iterator[T]:
        """The caller reads the list of each of these jobs."""
        return self._counted(items, MAX_LISTS, "has to read the lists of more than {} jobs")

    def lines(self, items: Iterable[T]) -> Iterator[T]:
        """The lines of a list, which the caller does not hold."""
        lines = self.in_time(items)
        return self._counted(lines, MAX_LINES, "has to read more than {} lines of lists")

    def in_time(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until the call has to end."""
        for number, one in enumerate(items):
            if self._clock and number % 1_000 == 0 and self._clock.now() >= self._until:
                raise PastBoundError(
                    f"takes longer than the {CALL_SECONDS} s that it has, enough for about five"
                    " million objects in the directories of its files"
                )
            yield one

    def _counted(self, items: Iterable[T], most: int, why: str) -> Iterator[T]:
        for one in items:
            self._seen[why] += 1
            if self._seen[why] > most:
                raise PastBoundError(why.format(most))
            yield one
