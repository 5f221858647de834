"""The ports that the steps of the protocol work on, together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from s3commit.core.ports.clock import Clock
from s3commit.core.ports.executions import Executions
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore


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


@dataclass(frozen=True, slots=True)
class Sweeper:
    """The ports that a sweep works on."""

    ports: Ports
    executions: Executions
