"""Calls side by side."""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, Protocol


class ParallelMap(Protocol):
    """``map`` with several workers: results in any order, memory bounded, first error raised."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Apply ``function`` to each item."""


def in_order(
    parallel: ParallelMap, function: Callable[[Any], Any], items: Iterable[Any]
) -> list[Any]:
    """The results of ``function`` for the items, in their order.

    Raises one of the errors, the first item's if one is done after the other.
    """
    numbered = parallel(lambda one: (one[0], function(one[1])), enumerate(items))
    return [answer for _, answer in sorted(numbered, key=itemgetter(0))]


def together(parallel: ParallelMap, *calls: Callable[[], Any]) -> list[Any]:
    """The answers of calls that need nothing of each other. Raises as `in_order`.

    Each may be parallel in itself, as long as there are more workers than calls.
    """
    return in_order(parallel, lambda call: call(), calls)
