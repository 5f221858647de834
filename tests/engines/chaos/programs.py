"""The simulation's programs on the real wiring: its clients in threads, over S3's own API."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from s3commit.core.formats.layout import (
    META_ATTEMPT,
    META_JOB,
    META_TASK,
    JobDirectory,
)
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Conditions, Conflict, Destination, JobSpec, Scope
from s3commit.core.ports.objects import ObjectStore
from tests.engines.chaos.adversary import Adversary
from tests.engines.sim.clients import BUCKET, Clients
from tests.engines.sim.model import File, Job
from tests.engines.sim.observer import body_of
from tests.engines.sim.scheduler import Process, Scheduler
from tests.fakes.faults import Crash

JOBS_A_TABLE = 4  # those that replace go one after the other, five seconds apart
KEYED = "keyed/"
# A client of the simulation sleeps for minutes where nothing takes time.
FASTER, LONGEST_SLEEP = 60, 5.0
CRASHES = 0.004  # of the calls of programs
KINDS = {"plain": 58, "keyed": 12, "unmet": 4, "gives up": 8, "dies": 6, "loses an upload": 12}


@dataclass(frozen=True)
class Program:
    """A job and what becomes of it. ``start`` is in shares of the time in which jobs begin."""

    job: Job
    kind: str
    tasks: list[list[str]]
    start: float


def draw(seed: int, jobs: int) -> list[Program]:
    """The programs of a run, the same for the same seed and number."""
    rng = Random(f"programs {seed}")
    tables = [f"t{number}/" for number in range(1, max(2, jobs // JOBS_A_TABLE) + 1)]
    return [_program(rng, number, tables) for number in range(jobs)]


def _program(rng: Random, number: int, tables: list[str]) -> Program:
    kind = _weighted(rng, KINDS)
    prefix, below = rng.choice(tables), "dt"
    if rng.random() < 0.25:  # a destination in another's
        prefix, below = f"{prefix}dt={rng.randint(1, 4)}/", "h"
    conflict = _weighted(rng, {Conflict.APPEND: 50, Conflict.REPLACE: 38, Conflict.FAIL: 12})
    scope = _weighted(rng, {Scope.PARTITION: 60, Scope.DIRECTORY: 40})
    key, conditions = None, Conditions()
    if kind == "keyed":
        prefix, below, key = KEYED, "dt", f"day {rng.randint(1, 3)}"
    elif kind == "unmet":
        conditions = Conditions(min_files=1000)
    if kind in {"keyed", "loses an upload"} and conflict is Conflict.FAIL:
        conflict = Conflict.APPEND  # or it would not come to its decision
    job_id = f"{number + 1:08d}-0000-4000-8000-{number + 1:012d}"
    directory = JobDirectory(Destination(BUCKET, prefix), job_id)
    spec = JobSpec(
        job_id, directory.destination, conflict=conflict, scope=scope, idempotency_key=key,
        conditions=conditions,
    )  # fmt: skip
    tasks = [
        [
            f"{below}={value}/part-t{task}-{job_id}.csv"
            for value in sorted(rng.sample(range(1, 6), rng.randint(1, 2)))
        ]
        for task in range(rng.randint(1, 2))
    ]
    return Program(Job(f"job{number + 1}", directory, spec), kind, tasks, rng.random())


def _weighted(rng: Random, weights: dict[Any, int]) -> Any:
    return rng.choices(list(weights), list(weights.values()))[0]


class Threads:
    """The part of the simulation's `Scheduler` that its clients use: each process is a thread."""

    def __init__(self) -> None:
        self.living: list[threading.Thread] = []
        self.failures: list[str] = []

    def spawn(self, name: str, body: Callable[[], Any], *, role: str, job: str) -> Process:
        """Start a thread."""
        process = Process(name, body, role, job)
        process.let = threading.Thread(target=self._run, args=[process], name=name, daemon=True)
        self.living.append(process.let)
        process.let.start()
        return process

    def join(self, *processes: Process) -> None:
        """Wait for all of them."""
        for process in processes:
            process.let.join()

    def sleep(self, seconds: float) -> None:
        """Wait, at another pace."""
        time.sleep(min(seconds / FASTER, LONGEST_SLEEP))

    def is_over(self) -> bool:
        """Whether every process has ended, zombies too."""
        return not any(thread.is_alive() for thread in self.living)

    def _run(self, process: Process) -> None:
        try:
            process.result = process.body()
        except (S3CommitError, Crash) as error:  # whoever waits for it looks at it
            process.error = error
        except Exception as error:
            process.error = error
            self.failures.append(f"code: {process.name}: {error!r}")


class Programs:
    """Runs programs. ``files`` has what their attempts wrote, by key and bytes."""

    def __init__(self, store: ObjectStore, adversary: Adversary, seed: int) -> None:
        self.threads = Threads()
        self.files: dict[tuple[str, bytes], File] = {}
        self._store = store
        self._adversary = adversary
        self._seed = seed

    def start(self, program: Program) -> None:
        """Play a program, in a thread."""
        store = cast("ObjectStore", _Mortal(self._store, program.job, self))
        rng = Random(f"client {self._seed} {program.job.name}")
        clients = Clients(cast("Scheduler", self.threads), store, rng)

        def play() -> None:
            kind = program.kind
            clients.driver(
                program.job, program.tasks, gives_up=kind == "gives up", dies=kind == "dies"
            )

        self.threads.spawn(program.job.name, play, role="driver", job=program.job.name)

    def crash(self, job: Job, verb: str) -> None:
        """Raise `Crash` if the adversary lets the caller die now."""
        if self._adversary.strikes("client killed", CRASHES):
            self._adversary.does("client killed", f"{job.name} at {verb}")
            raise Crash(verb)


class _Mortal:
    """The store of one program, in which its driver and its attempts die at times."""

    def __init__(self, store: ObjectStore, job: Job, programs: Programs) -> None:
        self._store, self._job, self._programs = store, job, programs

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if verb == "create_upload":
                self._note(args[1], kwargs["metadata"])
            self._programs.crash(self._job, f"{verb}, before")
            result = getattr(self._store, verb)(*args, **kwargs)
            self._programs.crash(self._job, f"{verb}, after")
            return result

        return call

    def _note(self, key: str, metadata: dict[str, str]) -> None:
        assert metadata[META_JOB] == self._job.directory.job_id
        task, attempt = metadata[META_TASK], metadata[META_ATTEMPT]
        body = body_of(self._job.name, task, attempt, key)
        self._programs.files[key, body] = File(self._job.name, task, attempt, key, "", body, 0)
