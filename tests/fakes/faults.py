"""Faults at chosen calls: what fails, crashes or gets lost at the n-th call of a verb.

A plan wraps stores and ledgers (any object, in fact), counts the calls over all of them, and
strikes where a rule says so::

    plan = FaultPlan().lose_response("complete_upload", nth=2).crash_after("advance")
    store = plan.wrap(MemoryObjectStore("lake"))
    ledger = plan.wrap(MemoryLedger())

To enumerate every crash point of a run, crash at call 1, 2, 3, ... until `FaultPlan.fired`
stays empty.
"""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack, cast

from s3commit.core.model.errors import TransientError

T = TypeVar("T")


class Crash(BaseException):
    """The process dies here. No ``except Exception`` of the code under test survives it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its number in the whole plan (from 1), its verb, its arguments by name."""

    number: int
    verb: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        return f"call {self.number}, {self.verb} {self.key}"

    @property
    def key(self) -> str:
        """The object key of the call, or an empty text where the verb has none."""
        return str(self.arguments.get("key", self.arguments.get("prefix", "")))


Moment = Literal["before", "after", "instead"]
Predicate = Callable[[Call], bool]


class When(TypedDict, total=False):
    """At which of the calls that match ``where`` a rule strikes: the ``nth``, and so many times.

    The first and once, unless it is said; ``times`` None is for ever.
    """

    nth: int
    times: int | None
    where: Predicate | None


Action = Callable[[Call], object]


@dataclass(slots=True)
class _Rule:
    verb: str | None
    moment: Moment
    act: Action
    nth: int = 1
    times: int | None = 1
    where: Predicate | None = None
    seen: int = 0

    def strikes(self, call: Call) -> bool:
        if self.verb is not None and self.verb != call.verb:
            return False
        if self.where is not None and not self.where(call):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.seen < self.nth + self.times)


class FaultPlan:
    """Rules about calls, and the record of all calls; thread-safe.

    Each rule counts the calls that match it, by ``verb`` (None: any) and as `When` says.
    """

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._calls: list[Call] = []
        self._fired: list[Call] = []
        self._lock = threading.Lock()

    def fail(self, verb: str | None, error: Exception, **when: Unpack[When]) -> Self:
        """Raise ``error`` instead of the call."""
        return self._add(verb, "before", _raising(lambda _: error), when)

    def crash_before(self, verb: str | None = None, **when: Unpack[When]) -> Self:
        """Die before the call."""
        return self._add(verb, "before", _raising(lambda call: Crash(f"before {call}")), when)

    def crash_after(self, verb: str | None = None, **when: Unpack[When]) -> Self:
        """Die when the call has been performed."""
        return self._add(verb, "after", _raising(lambda call: Crash(f"after {call}")), when)

    def lose_response(self, verb: str | None = None, **when: Unpack[When]) -> Self:
        """Perform the call, then raise `TransientError` as if the answer had been lost."""
        lost = _raising(lambda call: TransientError(f"the answer to {call} was lost"))
        return self._add(verb, "after", lost, when)

    def run_before(
        self, verb: str | None, action: Callable[[], object], **when: Unpack[When]
    ) -> Self:
        """Run ``action`` before the call: another process that gets in between."""
        return self._add(verb, "before", lambda _: action(), when)

    def run_after(
        self, verb: str | None, action: Callable[[], object], **when: Unpack[When]
    ) -> Self:
        """Run ``action`` when the call has been performed, before its caller continues."""
        return self._add(verb, "after", lambda _: action(), when)

    def answer(self, verb: str | None, give: Action, **when: Unpack[When]) -> Self:
        """What ``give`` returns or raises is the answer, and the call does not happen."""
        return self._add(verb, "instead", give, when)

    def wrap(self, target: T) -> T:
        """``target`` under this plan: the same methods, recorded and struck."""
        return cast("T", _Wrapped(self, target))

    @property
    def calls(self) -> list[Call]:
        """All calls so far, in order; failed ones as well."""
        with self._lock:
            return list(self._calls)

    @property
    def fired(self) -> list[Call]:
        """The calls at which a rule struck."""
        with self._lock:
            return list(self._fired)

    def count(self, verb: str | None = None) -> int:
        """How often ``verb`` (None: anything) was called."""
        return sum(verb in {None, call.verb} for call in self.calls)

    def counts(self) -> dict[str, int]:
        """How often each verb was called, by verb."""
        verbs = [call.verb for call in self.calls]
        return {verb: verbs.count(verb) for verb in sorted(set(verbs))}

    def forget_calls(self) -> None:
        """Empty the record of calls, to count from here; the rules and their counts stay."""
        with self._lock:
            self._calls.clear()
            self._fired.clear()

    def perform(self, verb: str, arguments: Mapping[str, Any], call: Callable[[], Any]) -> Any:
        """Record and perform one call under the rules."""
        with self._lock:
            record = Call(len(self._calls) + 1, verb, arguments)
            self._calls.append(record)
            struck = [rule for rule in self._rules if rule.strikes(record)]
            if struck:
                self._fired.append(record)
        for rule in struck:
            if rule.moment == "before":
                rule.act(record)
        for rule in struck:
            if rule.moment == "instead":
                return rule.act(record)
        result = call()
        if isinstance(result, Iterator):  # a lazy listing has not happened yet
            result = iter(list(result))
        for rule in struck:
            if rule.moment == "after":
                rule.act(record)
        return result

    def _add(self, verb: str | None, moment: Moment, act: Action, when: When) -> Self:
        with self._lock:
            self._rules.append(_Rule(verb, moment, act, **when))
        return self


class _Wrapped:
    def __init__(self, plan: FaultPlan, target: object) -> None:
        self._plan = plan
        self._target = target

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if name.startswith("_") or not callable(attribute):
            return attribute
        function = getattr(attribute, "__func__", None)
        names = _names(function)[1:] if function else _names(attribute)

        def method(*args: Any, **kwargs: Any) -> Any:
            arguments = {**dict(zip(names, args, strict=False)), **kwargs}
            return self._plan.perform(name, arguments, lambda: attribute(*args, **kwargs))

        return method


@functools.cache
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters' names. Kept: to find them takes longer than most calls of a fake."""
    return tuple(inspect.signature(function).parameters)


def _raising(make: Callable[[Call], BaseException]) -> Action:
    def act(call: Call) -> None:
        raise make(call)

    return act
