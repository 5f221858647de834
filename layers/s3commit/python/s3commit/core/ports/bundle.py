"""The ports that the steps of the protocol work on, together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, Protocol, TypeVar

from s3commit.core.ports.clock import Clock
from s3commit.core.ports.executions import Executions
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore

T = TypeVar("T")


class ParallelMap(Protocol):
    """``map`` with several workers: results in any order, memory bounded, first error raised."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Apply ``function`` to each item."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that the steps work on. ``parallel`` is sequential unless an adapter says else.

    ``replace_below`` are the prefixes below which jobs may replace what is there, each with its
    ``/`` at the end; the empty one allows it everywhere, none at all nowhere.
    """

    store: ObjectStore
    ledger: Ledger
    clock: Clock
    parallel: ParallelMap = field(default=map)
    replace_below: tuple[str, ...] = ("",)

    def in_order(self, calls: Iterable[Callable[[], T]]) -> Iterator[T]:
        """What each call returns, in order, or raises, though they are made side by side.

        Whoever stops at one hears of no error of a later one. A call must not use ``parallel``.
        """
        ended: dict[int, Callable[[], T]] = {}
        turn = 0
        for number, answer in self.parallel(_called, enumerate(calls)):
            ended[number] = answer
            while turn in ended:
                yield ended.pop(turn)()
                turn += 1


def _called(numbered: tuple[int, Callable[[], T]]) -> tuple[int, Callable[[], T]]:
    number, call = numbered
    try:
        result = call()
    except Exception as error:
        return number, partial(_raise, error)
    return number, lambda: result


def _raise(error: Exception) -> NoReturn:
    raise error


@dataclass(frozen=True, slots=True)
class Sweeper:
    """The ports that a sweep works on."""

    ports: Ports
    executions: Executions
