"""Standing still at any call: the answers of before are given again, then one call is made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore

if TYPE_CHECKING:
    from tests.engines.explorer.explorer import Explorer
    from tests.engines.explorer.small import Execution


class Paused(BaseException):
    """The step has made its one call."""


class Port:
    """Store and ledger of one move: known answers first, then a call, then no more of them."""

    def __init__(self, explorer: Explorer, execution: Execution) -> None:
        self.answers = list(execution.answers)
        self.told = execution.told
        self._explorer = explorer
        self._next = 0
        self._called: list[str] = []

    def ports(self) -> Ports:
        """The ports for the code under test."""
        explorer = self._explorer
        return Ports(
            cast("ObjectStore", _Recorded(self, explorer.store)),
            cast("Ledger", _Recorded(self, explorer.ledger)),
            explorer.clock,
        )

    def label(self, step: str) -> str:
        """The move's name: the step, and the call where a move is one."""
        return (
            f"{step} {self._called[0]}" if self._explorer.rules.by_call and self._called else step
        )

    def call(self, verb: str, method: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        """Answer as before, or call."""
        if self._next < len(self.answers):
            answer = self.answers[self._next]
            self._next += 1
            return _given(answer)
        if self._called and self._explorer.rules.by_call:
            raise Paused
        key = args[1] if len(args) > 1 else args[0] if args else ""
        self._called.append(f"{verb}({key if isinstance(key, str) else ''})")
        try:
            answer = method(*args, **kwargs)
            if isinstance(answer, Iterator):
                answer = tuple(answer)
        except S3CommitError as error:
            answer = error
        self.answers.append(answer)
        self._next += 1
        if self._explorer.rules.by_call:
            text = f"{self.told}|{verb}|{answer!r}"
            self.told = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        return _given(answer)


def _given(answer: Any) -> Any:
    if isinstance(answer, S3CommitError):
        raise answer
    return iter(answer) if isinstance(answer, tuple) else answer


class _Recorded:
    def __init__(self, port: Port, target: object) -> None:
        self._port = port
        self._target = target

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        method = getattr(self._target, verb)
        return lambda *args, **kwargs: self._port.call(verb, method, args, kwargs)
