"""One run: a world made from a seed, let go, recovered, and judged."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from s3commit.core.commit import acquire_destination as acquire
from s3commit.core.commit import check_conditions as conditions
from s3commit.core.commit import tidy_up
from s3commit.core.documents import commit_manifest, pages, plan, replace_list
from s3commit.core.jobs import counted_manifests, listings, names_free, ownership
from s3commit.core.model import limits, locks
from s3commit.core.ports import clock
from s3commit.core.ports.bundle import Ports
from s3commit.core.sweep.sweep import Limits
from s3commit.core.undo import bound
from tests.engines.sim.clients import BUCKET, Clients
from tests.engines.sim.decisions import Decisions
from tests.engines.sim.door import Door
from tests.engines.sim.faults import Faults
from tests.engines.sim.furnish import add_job, furnish
from tests.engines.sim.judge import judge_end
from tests.engines.sim.keepers import Keepers
from tests.engines.sim.machine import Machine
from tests.engines.sim.observer import Observer
from tests.engines.sim.ports import as_executions, as_ledger, as_store
from tests.engines.sim.recovery import recover, settle
from tests.engines.sim.scheduler import Process, Scheduler
from tests.engines.sim.troubles import add_keepers, announce
from tests.engines.sim.undoing import add_undos
from tests.fakes.memory import MemoryLedger, MemoryObjectStore

MAX_STEPS = 60_000

# Small jobs have all that large ones have: several units, pages, parts and waits.
_SCALED: list[tuple[tuple[Any, ...], str, list[Any]]] = [
    ((plan,), "UNIT_FILES", [1, 2]),
    ((plan,), "PAGE_FILES", [1, 3]),
    ((pages,), "PAGES_AT_ONCE", [1, 32]),
    ((counted_manifests,), "MANIFESTS_AT_ONCE", [1, 128]),
    ((counted_manifests,), "SMALL_MANIFEST_BYTES", [10, 512 * 1024]),
    ((listings, names_free), "PAGE", [1, 2, 1000]),
    ((names_free,), "FILES_LOOKED_AT", [1, 20_000]),
    ((limits,), "FEW_FILES", [1, 10_000]),
    ((conditions,), "LISTED_AT_ONCE", [1, 10_000]),
    ((listings,), "RANGES", [2, 32]),
    ((replace_list, tidy_up), "DELETE_AT_ONCE", [1, 1000]),
    ((commit_manifest,), "PUT_BYTES", [300, 8 * 1024 * 1024]),
    ((ownership,), "ABORT_ROUNDS", [2, 5]),
    ((clock,), "CALL_SECONDS", [0.002, 600]),
    ((bound,), "CALL_SECONDS", [0.01, 600, 600, 600]),
    ((acquire,), "SHORTEST_WAIT", [300]),
    ((acquire,), "LONGEST_WAIT", [300]),
    ((acquire,), "WHOLE_AFTER_SECONDS", [300, 600]),
    ((locks,), "MAX_NODES", [2, 90]),
]


@contextmanager
def scaled(rng: random.Random) -> Iterator[None]:
    """The numbers of the protocol, made small for one run."""
    with pytest.MonkeyPatch.context() as patch:
        for modules, name, values in _SCALED:
            chosen = rng.choice(values)
            for module in modules:
                patch.setattr(module, name, chosen)
        yield


class World:
    """The world of one seed. After `run`, the counts say what happened.

    ``losses`` is the share of runs in which the ledger's table is lost.
    """

    def __init__(
        self,
        seed: int,
        *,
        losses: float = 0.2,
        store: Callable[..., MemoryObjectStore] = MemoryObjectStore,
        ledger: Callable[..., MemoryLedger] = MemoryLedger,
    ) -> None:
        self.seed = seed
        self.rng = rng = random.Random(seed)
        self.undoers = random.Random(f"undos {seed}")
        self.scheduler = Scheduler(rng, max_steps=MAX_STEPS)
        self.store = store(
            BUCKET,
            versioned=rng.random() < 0.4,
            repeats_complete=rng.random() < 0.5,
            clock=self.scheduler.s3_clock,
            min_part_bytes=1,
        )
        self.ledger = ledger(self.scheduler)
        self.bucket = self.store.bucket(BUCKET)
        self.observer, self.decisions = self._make_judges()
        self.faults = Faults(rng, rng.choice([0.0, 0.003, 0.01, 0.03, 0.08]))
        self.door = Door(
            self.scheduler,
            self.faults,
            self.observer,
            self.decisions,
            self.store,
            self.ledger,
            rng,
            self.announce,
            page=rng.choice([1, 2, 1000]),
            late_uploads=rng.random() < 0.5,
        )
        self.ports = Ports(
            as_store(self.door),
            as_ledger(self.door),
            self.scheduler,
            parallel=self._shuffled_map if rng.random() < 0.3 else map,
            runs=lambda execution: self.executions.describe(execution).is_running,
        )
        self.clients = Clients(self.scheduler, self.ports.store, rng)
        self.machine = Machine(self.scheduler, self.faults, self.ports, self.observer)
        self.executions = as_executions(self.door, self.machine)
        limits = Limits(stuck=15 * 60, abandoned=rng.choice([3600, 7200]), retention=3_000_000)
        self.keepers = Keepers(
            self.scheduler, self.door, self.executions, self.machine, self.ports, limits
        )
        self.loses = self.faults.rate > 0 and rng.random() < losses
        self.foreign: dict[str, bytes] = {}
        self.foreign_uploads: set[str] = set()

    def run(self) -> None:
        """Let everything happen, recover, judge. Raises `Violation`."""
        with scaled(self.rng):
            try:
                furnish(self)
                for _ in range(self.rng.choice([1, 2, 2, 2, 3])):
                    add_job(self)
                add_undos(self)
                add_keepers(self)
                self.begin()
                self.scheduler.run()
                self.restart()
                recover(self)
                self.judge()
                if self.rng.random() < 0.3:
                    settle(self)
            finally:
                self.scheduler.stopped = True

    def _make_judges(self) -> tuple[Observer, Decisions]:
        observer = Observer(self.scheduler, self.bucket)
        return observer, Decisions(self.scheduler, observer)

    def announce(self, process: Process, key: str) -> None:
        """An object was put: events follow."""
        announce(self, process, key)

    def begin(self) -> None:
        """What else there is in a run; see `AttackedWorld`."""

    def restart(self) -> None:
        """What happens when all that was begun has ended."""

    def judge(self) -> None:
        """What holds at the end. Raises `Violation`."""
        judge_end(self)

    def unsettled(self) -> list[str]:
        """What has to end beside the jobs, in words."""
        return []

    def is_written_to(self, prefix: str) -> bool:
        """Whether somebody puts there what a check may stumble over."""
        return False

    def later(
        self, name: str, body: Any, *, job: str, role: str = "pipeline", most: float | None = None
    ) -> Process:
        """Start a process within ``most`` seconds, or at any time."""
        delay = self.rng.choice([0.0, 1.0, 30.0, 600.0, 3000.0]) if most is None else most

        def delayed() -> None:
            self.scheduler.sleep(self.rng.random() * delay)
            body()

        return self.scheduler.spawn(name, delayed, role=role, job=job)

    def _shuffled_map(self, function: Any, items: Any) -> Iterator[Any]:
        found = list(items)
        self.rng.shuffle(found)
        return map(function, found)
