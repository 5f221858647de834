"""The simulation's programs on the real wiring: its clients in threads, over S3's own API."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, cast

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.objects import ObjectStore
from tests.engines.chaos.adversary import Adversary
from tests.engines.sim.clients import ATTEMPTS, BUCKET, Clients
from tests.engines.sim.furnish import draw_spec, file_names
from tests.engines.sim.model import File, Job
from tests.engines.sim.observer import body_of
from tests.engines.sim.scheduler import Process, Scheduler
from tests.fakes.faults import Crash

JOBS_A_TABLE = 4  # those that replace go one after the other, five seconds apart
# A client of the simulation sleeps for minutes where nothing takes time.
FASTER, LONGEST_SLEEP = 60, 5.0
CRASHES = 0.004  # of the calls of programs
KINDS = {"plain": 74, "gives up": 8, "dies": 6, "loses an upload": 12}


@dataclass(frozen=True)
class Program:
    """A job and what becomes of it. ``start`` is in shares of the time in which jobs begin."""

    job: Job
    kind: str
    tasks: list[list[str]]
    start: float

    def files(self) -> Iterator[File]:
        """What each of its attempts may write."""
        name, prefix = self.job.name, self.job.prefix
        for number, names in enumerate(self.tasks):
            for task, attempt, path in product([f"t{number}"], ATTEMPTS, names):
                body = body_of(name, task, attempt, prefix + path)
                yield File(name, task, attempt, prefix + path, "", body, 0)


def draw(seed: int, jobs: int) -> list[Program]:
    """The programs of a run, the same for the same seed and number, in the order of their start."""
    rng = Random(f"programs {seed}")
    tables = [f"t{number}/" for number in range(1, max(2, jobs // JOBS_A_TABLE) + 1)]
    drawn = [_program(rng, number, tables) for number in range(1, jobs + 1)]
    return sorted(drawn, key=lambda program: program.start)


def _program(rng: Random, number: int, tables: list[str]) -> Program:
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    prefix = rng.choice(tables)
    if rng.random() < 0.25:  # a destination in another's
        prefix += "dt=1/"
    job_id = f"{number:08d}-0000-4000-8000-{number:012d}"
    directory = JobDirectory(Destination(BUCKET, prefix), job_id)
    tasks = [file_names(rng, directory, f"t{task}") for task in range(rng.randint(1, 2))]
    return Program(
        Job(f"job{number}", directory, draw_spec(rng, directory)), kind, tasks, rng.random()
    )


class Threads:
    """The part of the simulation's `Scheduler` that its clients use: each process is a thread."""

    def __init__(self) -> None:
        self.living: list[threading.Thread] = []
        self.failures: list[str] = []

    def spawn(self, name: str, body: Callable[[], Any], *, role: str, job: str) -> Process:
        process = Process(name, body, role, job)
        process.let = threading.Thread(target=self._run, args=[process], name=name, daemon=True)
        self.living.append(process.let)
        process.let.start()
        return process

    def join(self, *processes: Process) -> None:
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
    def __init__(self, store: ObjectStore, adversary: Adversary, seed: int) -> None:
        self.threads = Threads()
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
        if self._adversary.strikes("client killed", CRASHES, f"{job.name} at {verb}"):
            raise Crash(verb)


class _Mortal:
    """The store of one program, in which its driver and its attempts die at times."""

    def __init__(self, store: ObjectStore, job: Job, programs: Programs) -> None:
        self._store, self._job, self._programs = store, job, programs

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._programs.crash(self._job, f"{verb}, before")
            result = getattr(self._store, verb)(*args, **kwargs)
            self._programs.crash(self._job, f"{verb}, after")
            return result

        return call
