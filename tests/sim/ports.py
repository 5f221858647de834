"""The fakes behind a door at which the scheduler, the faults and the observer stand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import greenlet

from s3commit.core.errors import PreconditionError, S3CommitError, TransientError
from s3commit.core.ports import Ledger, ListedObject, ObjectStore, OpenUpload
from s3commit.testing.faults import Crash
from s3commit.testing.memory import MemoryLedger, MemoryObjectStore
from tests.sim.faults import Faults
from tests.sim.observer import Observer
from tests.sim.scheduler import Process, Scheduler

STORE_VERBS = (
    "get", "head", "is_versioned", "upload_is_open", "put", "delete", "delete_seen",
    "create_upload", "upload_part", "abort_upload", "complete_upload",
)  # fmt: skip
LEDGER_VERBS = (
    "job", "open_job", "take_over", "advance", "decide", "note", "begin_unit",
    "record_attempts", "attempts", "lock", "put_lock", "put_locks",
)  # fmt: skip
_OBSERVED = frozenset({"put", "delete", "delete_seen", "abort_upload", "complete_upload"})
_MOVES = frozenset({"open_job", "take_over", "advance", "decide", "note"})


@dataclass(slots=True)
class Line:
    """One line of a trace."""

    number: int
    seconds: float
    process: str
    what: str
    outcome: str


@dataclass
class Door:
    """Every port call goes through `call`."""

    scheduler: Scheduler
    faults: Faults
    observer: Observer
    store: MemoryObjectStore
    ledger: MemoryLedger
    rng: random.Random
    announce: Callable[[Process, str], None]
    page: int = 1000
    trace: list[Line] | None = None
    _seen: dict[str, int] = field(default_factory=dict)

    def as_store(self) -> ObjectStore:
        """The object store, as the processes see it."""
        return cast("ObjectStore", _Store(self))

    def as_ledger(self) -> Ledger:
        """The ledger, as the processes see it."""
        return cast("Ledger", _Ledger(self))

    def call(self, verb: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One call: others may run first, then it may fail, and all are told what it did."""
        self.scheduler.pause()
        process = self.scheduler.current
        assert process is not None
        conditional = verb in {"put", "complete_upload"} and bool(
            kwargs.get("if_absent") or kwargs.get("if_match")
        )
        kind = self.faults.draw(verb, conditional=conditional)
        try:
            if kind:
                result = self._struck(kind, process, verb, method, args, kwargs)
            else:
                result = self._perform(process, verb, method, args, kwargs)
        except BaseException as error:
            if self.trace is not None and not isinstance(error, greenlet.GreenletExit):
                self._write(process, verb, args, kwargs, f"{type(error).__name__}: {error}", kind)
            raise
        if self.trace is not None:
            self._write(process, verb, args, kwargs, _brief(result), kind)
        return result

    def _struck(
        self,
        kind: str,
        process: Process,
        verb: str,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        perform = partial(self._perform, process, verb, method, args, kwargs)
        if kind == "crash before":
            raise Crash(f"before {verb}")
        if kind in {"error", "throttled"}:
            raise TransientError("500" if kind == "error" else "503 Slow Down")
        if kind == "conflict 409":
            return self._conflict(verb, args)
        if kind == "clock jump":
            self.scheduler.seconds += self.faults.stall()
        if kind == "stall before":
            self.scheduler.sleep(self.faults.stall())
        if kind == "sent twice":
            with suppress(S3CommitError):
                perform()
            self.scheduler.pause()
        if kind == "answer lost" and verb in {"delete_seen", "record_attempts"}:
            self.faults.strike("half done")
            many = list(args[-1])
            perform = partial(
                self._perform, process, verb, method, (*args[:-1], many[: len(many) // 2]), kwargs
            )
        result = perform()
        if kind == "crash after":
            raise Crash(f"after {verb}")
        if kind == "answer lost":
            raise TransientError("the answer was lost")
        if kind == "stall after":
            self.scheduler.sleep(self.faults.stall())
        return result

    def _conflict(self, verb: str, args: tuple[Any, ...]) -> Any:
        """S3's 409: nothing has happened; after a completion the parts have to be sent again."""
        if verb == "put":
            raise TransientError("409", code="CONFLICT")
        file = self.observer.files.get(args[2])
        if file is not None:
            self.observer.jobs[file.job].sabotaged.add("409")
        self.store.abort_upload(*args[:3])
        raise PreconditionError("409", code="CONFLICT")

    def _perform(
        self,
        process: Process,
        verb: str,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if verb in _OBSERVED:
            result = getattr(self.observer, verb)(process, partial(method, *args, **kwargs), args)
            if verb == "put":
                self.announce(process, args[1])
            return result
        if verb == "create_upload":
            return self.observer.create_upload(
                process, partial(method, *args, **kwargs), args, kwargs["metadata"]
            )
        result = method(*args, **kwargs)
        if verb in _MOVES:
            self.observer.moved(process, result)
        return result

    def _write(
        self,
        process: Process,
        verb: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        outcome: str,
        kind: str,
    ) -> None:
        assert self.trace is not None
        words = [_brief(one) for one in args if one != "lake"]
        words += [f"{name}={_brief(value)}" for name, value in kwargs.items() if name in _TELLING]
        struck = f"  [{kind}]" if kind else ""
        line = Line(
            self.scheduler.steps,
            self.scheduler.seconds,
            process.name,
            f"{verb}({', '.join(words)})",
            outcome + struck,
        )
        self.trace.append(line)


_TELLING = frozenset(
    {"if_absent", "if_match", "version_id", "source", "target", "generation", "execution", "locks",
     "plan", "replaced", "failure"}
)  # fmt: skip


def _brief(value: object) -> str:
    if isinstance(value, bytes):
        return _short(value.decode(errors="replace"))
    if isinstance(value, list | tuple):
        if value and hasattr(value[0], "key"):
            return "[" + " ".join(getattr(one, "key", "") for one in value) + "]"
        return _short(" ".join(_brief(one) for one in value))
    state = getattr(value, "state", None)
    if state is not None:
        return f"{state} g{getattr(value, 'generation', '?')}"
    name = type(value).__name__
    if name == "StoredObject":
        return _brief(getattr(value, "body", b""))
    if name == "ObjectFacts":
        return f"object {getattr(value, 'etag', '')[:9]}"
    if name == "LockRecord":
        held = [f"{job} {mode}" for job, mode in getattr(value, "holders", {}).items()]
        waiting = sorted(getattr(value, "waiting", {}))
        return f"{getattr(value, 'node', '')} held by {held} waiting {waiting}"
    if name in {"PlanFacts", "ReplacedFacts"}:
        return str(getattr(value, "sha256", ""))[:8]
    if name == "Failure":
        return str(getattr(value, "code", ""))
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"


class _Store:
    def __init__(self, door: Door) -> None:
        self._door = door
        for verb in STORE_VERBS:
            setattr(self, verb, partial(door.call, verb, getattr(door.store, verb)))

    def list(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        """Page by page: others may change what the next page shows."""
        last = ""

        def read(bucket: str, prefix: str, after: str) -> Any:
            return [one for one in self._door.store.list(bucket, prefix) if one.key > after]

        while True:
            found = self._door.call("list", read, bucket, prefix, last)
            yield from found[: self._door.page]
            if len(found) <= self._door.page:
                return
            last = found[self._door.page - 1].key

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        """As `list`."""
        last = ("", "", "")

        def mark(one: OpenUpload) -> tuple[str, str, str]:
            return one.key, one.initiated, one.upload_id

        def read(bucket: str, prefix: str, after: tuple[str, str, str]) -> Any:
            found = self._door.store.list_uploads(bucket, prefix)
            return sorted((one for one in found if mark(one) > after), key=mark)

        while True:
            found = self._door.call("list_uploads", read, bucket, prefix, last)
            yield from found[: self._door.page]
            if len(found) <= self._door.page:
                return
            last = mark(found[self._door.page - 1])


class _Ledger:
    def __init__(self, door: Door) -> None:
        for verb in LEDGER_VERBS:
            if hasattr(door.ledger, verb):
                setattr(self, verb, partial(door.call, verb, getattr(door.ledger, verb)))
