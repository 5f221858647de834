"""The small world's rules, one state of it, and what its processes see of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.pages import Unit
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore

if TYPE_CHECKING:
    from tests.engines.explorer.explorer import Explorer


BUCKET = "lake"
PREFIX = "sales/"
OLD = f"{PREFIX}old.parquet"


@dataclass(frozen=True)
class Rules:
    """What may happen in the small world; the bounds that keep it finite."""

    jobs: tuple[JobSpec, ...]
    executions: tuple[int, ...]  # of each job
    zombies: bool = True
    losses: int = 0  # uploads of the first job that may be lost
    by_call: bool = False
    old: bool = True  # whether there is a file of before
    before: tuple[JobSpec, ...] = ()  # jobs that are committed already, and replaced that file
    apart: float = 0  # seconds between the requests; nobody is known to be alive


def key_of(told: object) -> bytes:
    """A digest of what is told."""
    return hashlib.blake2b(repr(told).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Execution:
    """Where an execution stands; ``answers`` are those of the step that it is in the middle of."""

    name: str
    step: str
    ticket: Ticket
    results: tuple[UnitResult, ...] = ()
    planned: tuple[Unit, ...] | None = None  # the Map's units, as it read them
    unit: Unit | None = None
    answers: tuple[Any, ...] = ()
    told: bytes = b""  # digest of the answers
    failures: int = 0
    key: bytes = b""  # digest of all that

    def keyed(self) -> Self:
        """The same, with its key."""
        where = (self.name, self.step, self.ticket, self.results, self.planned)
        return replace(self, key=key_of((where, self.unit, self.told, self.failures)))


@dataclass(frozen=True, slots=True)
class World:
    """S3 and the ledger. Dictionaries here are never changed in place."""

    objects: dict[str, list[Any]]
    uploads: dict[str, Any]
    completed: dict[str, Any]
    ledger: tuple[dict[Any, Any], ...]  # its parts
    key: bytes = b""  # digest of all that

    def keyed(self) -> Self:
        """The same, with its key."""
        objects = sorted((key, found[-1].etag) for key, found in self.objects.items())
        ledger = [sorted(one.items()) for one in self.ledger]
        return replace(self, key=key_of((objects, sorted(self.uploads), ledger)))

    @property
    def records(self) -> dict[str, JobRecord]:
        return self.ledger[0]


@dataclass(frozen=True, slots=True)
class State:
    """The world, where the executions stand, and what may happen besides."""

    world: World
    executions: tuple[Execution, ...]
    to_finish: frozenset[tuple[int, str]]
    losses: int
    path: tuple[Any, ...] = field(default=(), compare=False)  # linked list of what was done


def spec(number: int, conflict: Conflict = Conflict.APPEND, **more: Any) -> JobSpec:
    """A job of the small world, by its number."""
    job_id = f"0000000{number}-0000-4000-8000-00000000000{number}"
    return JobSpec(
        job_id, Destination(BUCKET, PREFIX), conflict=conflict, scope=Scope.DIRECTORY, **more
    )


def undo(number: int) -> JobSpec:
    """An undo of the first job."""
    return spec(number, Conflict.REPLACE, undoes=spec(1).job_id)


def own_files(job: JobSpec) -> dict[str, str]:
    """What its tasks write, each by its name; an undo brings one file back."""
    tasks = ("t0",) if job.undoes else ("t0", "t1")
    return {task: f"{PREFIX}part-{task}-{job.job_id}.parquet" for task in tasks}


def way_there(state: State) -> list[str]:
    """What was done, in order."""
    found = []
    path = state.path
    while path:
        path, label = path
        found.append(label)
    return found[::-1]


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
        explorer = self._explorer
        if not explorer.rules.by_call:
            return Ports(explorer.store, explorer.ledger, explorer.clock)
        return Ports(
            cast("ObjectStore", _Recorded(self, explorer.store)),
            cast("Ledger", _Recorded(self, explorer.ledger)),
            explorer.clock,
        )

    @property
    def known(self) -> dict[str, Any]:
        """What the next try of the step is told."""
        return {"answers": tuple(self.answers), "told": self.told}

    def label(self, step: str) -> str:
        """The move's name: the step, and the call where a move is one."""
        return " ".join([step, *self._called[:1]])

    def call(self, verb: str, method: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        """Answer as before, or call."""
        if self._next < len(self.answers):
            answer = self.answers[self._next]
            self._next += 1
            return _given(answer)
        if self._called:
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
        self.told = key_of((self.told, verb, answer))
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
