"""The bound of a look back: an undo is judged in one call, or refused by it."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from s3commit.core.model.limits import CALL_SECONDS, MAX_HELD, MAX_LINES, MAX_LISTS
from s3commit.core.model.moments import shifted
from s3commit.core.ports.clock import Clock

T = TypeVar("T")


class PastBoundError(Exception):
    """There is more than the bound, in words; no reader takes it for a list that can't be read."""


class Bound:
    """The bound of one look: files held, lists and lines read, and the time, if it has a clock.

    Where lists are read side by side it may be missed by a few.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._until = shifted(clock.now(), CALL_SECONDS) if clock else ""
        self._held = self._lists = self._read = 0

    def held(self, items: Iterable[T]) -> Iterator[T]:
        """The items, each of which the caller holds. Raises `PastBoundError`."""
        for one in items:
            self._held += 1
            if self._held > MAX_HELD:
                raise PastBoundError(f"concerns more than {MAX_HELD} files, with copies of them")
            yield one

    def lists(self, items: Iterable[T]) -> Iterator[T]:
        """The jobs whose lists the caller reads. Raises `PastBoundError`."""
        for one in items:
            self._lists += 1
            if self._lists > MAX_LISTS:
                raise PastBoundError(f"has to read the lists of more than {MAX_LISTS} jobs")
            yield one

    def lines(self, items: Iterable[T]) -> Iterator[T]:
        """The lines of a list, which the caller does not hold. Raises `PastBoundError`."""
        for one in self.in_time(items):
            self._read += 1
            if self._read > MAX_LINES:
                raise PastBoundError(f"has to read more than {MAX_LINES} lines of lists")
            yield one

    def in_time(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until the call has to end. Raises `PastBoundError`."""
        for number, one in enumerate(items):
            if self._clock and number % 1_000 == 0 and self._clock.now() >= self._until:
                raise PastBoundError(
                    f"takes longer than the {CALL_SECONDS} s that it has, enough for about five"
                    " million objects in the directories of its files"
                )
            yield one
