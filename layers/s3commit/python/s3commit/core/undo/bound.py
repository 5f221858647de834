"""What a look back may hold and read: an undo ends in its one call, or is refused by it."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from s3commit.core.model.limits import MAX_HELD, MAX_LINES
from s3commit.core.ports.clock import CallTime

T = TypeVar("T")


class PastBoundError(Exception):
    """There is more than the bound, in words; no reader takes it for a list that can't be read."""


class Bound:
    """The bound of one look: files held, lines read, and the ``time`` of its call, if it has one.

    Where lists are read side by side it may be missed by a few.
    """

    def __init__(self, time: CallTime | None = None) -> None:
        self._time = time
        self._held = self._read = 0

    def held(self, items: Iterable[T]) -> Iterator[T]:
        """The items, each of which the caller holds. Raises `PastBoundError`."""
        for one in items:
            self._held += 1
            if self._held > MAX_HELD:
                raise PastBoundError(f"concerns more than {MAX_HELD} files, with copies of them")
            yield one

    def read(self, items: Iterable[T]) -> Iterator[T]:
        """The lines of a list, which the caller does not hold. Raises `PastBoundError`."""
        for one in self.in_time(items):
            self._read += 1
            if self._read > MAX_LINES:
                raise PastBoundError(f"has to read more than {MAX_LINES} lines of lists")
            yield one

    def in_time(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until the call has to end. Raises `PastBoundError`."""
        for number, one in enumerate(items):
            if self._time and number % 1_000 == 0 and self._time.is_over():
                raise PastBoundError("takes longer than a call of a function may")
            yield one
