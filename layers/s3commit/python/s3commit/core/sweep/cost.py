"""What a call of the sweep may cost: S3's requests are counted, and nobody gets more than a share.

Whoever may put objects below one prefix can make what lies there as costly to look at as they
like. So one thing (a job, an upload, a directory) may cost `THING_REQUESTS`, and what lies below
one directory a share of a call, which is half of what the directory above it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeVar, cast

from s3commit.core.model.errors import UnchangedError

T = TypeVar("T")
PAGE: Final = 1_000  # entries of a listing that one request brings
CALL_REQUESTS: Final = 50_000  # 0.25 USD if all of them are listings, in us-east-1
THING_REQUESTS: Final = 4_000  # a job may have left a million uploads, which is 1,000 listings
SHARES: Final = (8_000, 4_000, 2_000, 1_000, 500, 250)  # below directories of depth 1, 2, ...


class CostlyError(UnchangedError):
    """Looking at one thing takes more than it may: it is left alone. Nothing was changed."""

    code = "COSTLY"


@dataclass(slots=True)
class Cost:
    """The requests of one call, and whose they were."""

    too_late: Callable[[], bool] = lambda: False
    used: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))  # threads count as well
    _limit: int | None = None
    _spent: dict[str, int] = field(default_factory=dict)

    def request(self) -> None:
        """Count a request, before it is made. Raises `CostlyError`."""
        if self._limit is not None and (self.used >= self._limit or self.too_late()):
            raise CostlyError("it takes more requests, or more time, than it may cost")
        self.used = max(self.used, next(self._numbers))

    def begin(self, allowance: int) -> int:
        """From now on all requests are one thing's; returns how many there were before it."""
        self._limit = self.used + allowance
        return self.used

    def end(self, before: int, key: str, *, free: int = 0) -> None:
        """The thing is through: what it cost, less ``free``, is the share's of each directory."""
        self._limit = None
        for directory in _shared(key):
            self._spent[directory] = self._spent.get(directory, 0) + max(
                0, self.used - before - free
            )

    def overspent(self, key: str) -> str:
        """The nearest directory above ``key`` whose share is used up; empty if none is."""
        shares = zip(_shared(key), SHARES, strict=False)
        over = [one for one, share in shares if self._spent.get(one, 0) >= share]
        return over[-1] if over else ""


def _shared(key: str) -> list[str]:
    """The first directories of a key, from the top."""
    elements = key.split("/", len(SHARES))[:-1]
    return ["/".join(elements[:depth]) + "/" for depth in range(1, len(elements) + 1)]


def metered(port: T, cost: Cost) -> T:
    """``port``, each call of which is counted, and each further page of a listing."""
    return cast("T", _Metered(port, cost))


class _Metered:
    def __init__(self, port: object, cost: Cost) -> None:
        self._port = port
        self._cost = cost

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            self._cost.request()
            answer = attribute(*args, **kwargs)
            return self._pages(answer) if isinstance(answer, Iterator) else answer

        return method

    def _pages(self, entries: Iterator[Any]) -> Iterator[Any]:
        for number, entry in enumerate(entries, start=1):
            if number % PAGE == 1 and number > PAGE:
                self._cost.request()
            yield entry
