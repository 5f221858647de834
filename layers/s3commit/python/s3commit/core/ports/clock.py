"""The present, and the time that a call of a step has."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from s3commit.core.model.limits import CALL_SECONDS, LONGEST_CALL

T = TypeVar("T")


class Clock(Protocol):
    """The pipeline's time."""

    def now(self) -> str:
        """The present as RFC 3339 in UTC with milliseconds: ``2026-11-21T22:07:22.123Z``."""

    def sleep(self, seconds: float) -> None:
        """Wait for half of the time to all of it, by chance: who lost together part here."""


class CallTime:
    """The time of one call of a step: after `CALL_SECONDS`, or ``most``, another one continues.

    ``is_cut`` says that it has left something to that one, ``taken`` how many items it has begun.
    """

    def __init__(self, clock: Clock, most: int = LONGEST_CALL) -> None:
        self._clock = clock
        given = timedelta(seconds=min(CALL_SECONDS, most))
        self._until = datetime.fromisoformat(clock.now()) + given
        self.is_cut = False
        self.taken = 0

    def is_over(self) -> bool:
        """True if the call should begin nothing more."""
        return datetime.fromisoformat(self._clock.now()) >= self._until

    def take(self, items: Iterable[T]) -> Iterator[T]:
        """The items until the time is over, and one at least; then ``is_cut``, if some are left."""
        self.taken = 0
        for item in items:
            if self.taken and self.is_over():
                self.is_cut = True
                return
            self.taken += 1
            yield item
