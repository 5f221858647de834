"""Time, executions, and all ports that the steps of the protocol work on, together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import parse_refusal
from s3commit.core.model import errors
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Failure
from s3commit.core.model.limits import CALL_SECONDS
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore

T = TypeVar("T")
FORGOTTEN: Final = "FORGOTTEN"  # by Step Functions, 90 days after its end
SHOWN_MESSAGE: Final = 600  # characters; a key may take 1,024 bytes of it
_ALIVE: Final = frozenset({"RUNNING", "PENDING_REDRIVE"})
# The state machine tells an error by its class, whose code is known here.
_CODES: Final = {
    name: kind.code
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, S3CommitError)
}


class Clock(Protocol):
    """Time comes in from outside."""

    def now(self) -> str:
        """The present as RFC 3339 in UTC with milliseconds: ``2026-11-21T22:07:22.123Z``."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for half of the time to all of it, by chance: who lost together part here."""
        ...


def rfc3339(moment: datetime) -> str:
    """A moment in UTC, in the form of `Clock.now`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shifted(moment: str, seconds: float) -> str:
    """A moment so many seconds later, in the form of `Clock.now`."""
    return rfc3339(datetime.fromisoformat(moment) + timedelta(seconds=seconds))


class CallTime:
    """The time of one call of a step: after `CALL_SECONDS` it hands over to another call.

    ``is_cut`` says that it has left something to that one, ``taken`` how many items it has begun.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = datetime.fromisoformat(clock.now()) + timedelta(seconds=CALL_SECONDS)
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


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of the machine; ``error`` and ``cause`` are empty unless it failed.

    ``status`` is ``RUNNING``, ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT``, ``ABORTED`` and so on, or
    `FORGOTTEN`.
    """

    status: str
    error: str = ""
    cause: str = ""

    @property
    def is_running(self) -> bool:
        """True if it still does something, or will."""
        return self.status in _ALIVE

    @property
    def failure(self) -> Failure | None:
        """Why it failed: the code that there is advice on, and one line without a stack trace."""
        if not self.error and not self.cause:
            return None
        code = _CODES.get(self.error, self.error) or self.status
        refusal = parse_refusal(self.cause, code)
        message = refusal.message
        if len(message) > SHOWN_MESSAGE:
            message = message[:SHOWN_MESSAGE] + "..."
        return Failure(refusal.code, ": ".join(filter(None, (self.error, message))))


class Executions(Protocol):
    """The executions of the pipeline's state machine."""

    def describe(self, execution: str) -> Execution:
        """The facts of an execution, by its ARN or its name."""
        ...

    def start(self, name: str, directory: JobDirectory, gives_up: str = "") -> str | None:
        """Start one for the job. Returns its ARN; None if one of that name was started before.

        One that ``gives_up`` aborts the job for that reason, unless it is decided.
        """
        ...


class ParallelMap(Protocol):
    """``map`` with several workers: results in any order, memory bounded, first error raised."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Apply ``function`` to each item."""
        ...


@dataclass(frozen=True, slots=True)
class Workers:
    """Concurrent calls that complete units: ``of_all`` jobs together, and ``of_one``, at most."""

    of_all: int = 1
    of_one: int = 1


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


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that the steps work on. ``parallel`` is sequential unless an adapter says else.

    ``runs`` says of an execution, by its ARN or its name, whether it is at work.
    ``replace_below`` are the prefixes below which jobs may replace what is there, each with its
    ``/`` at the end; the empty one allows it everywhere, none at all nowhere. ``workers`` are the
    deployment's. ``check_deletes`` raises `JobRefusedError` for a bucket whose store ignores etags.
    """

    store: ObjectStore
    ledger: Ledger
    clock: Clock
    parallel: ParallelMap = field(default=map)
    runs: Callable[[str], bool] = field(default=lambda _execution: False)
    replace_below: tuple[str, ...] = ("",)
    check_deletes: Callable[[str], None] = field(default=lambda _bucket: None)
    workers: Workers = Workers()
