"""Many jobs at once over overlapping destinations (I6): none interleaves, starves or hangs.

On real threads over the fakes, with seeded pauses between the calls; the ledger notes who is
decided and who has ended. Afterwards the table must look as if the committed jobs had run one after
the other, in the order of their decisions.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from s3commit.core.commit import acquire_destination as acquire
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import Conflict, Outcome, Scope
from s3commit.core.model.limits import (
    HOLDER_SECONDS,
    MAX_WAIT_SECONDS,
)
from s3commit.core.model.locks import Claim
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from tests.core.jittered import Jittered
from tests.core.world import World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import MemoryLedger

PATIENCE = 60  # seconds, for a thread that hangs

TABLE = ["w/t/", "w/t/dt=1/", "w/t/dt=2/", "w/t/dt=3/", "w/t/dt=1/h=2/"]
EVERYTHING = [*TABLE, "w/", "w/u/", "w/t0/"]


@dataclass(frozen=True)
class Kind:
    """A way to write; ``touches`` are the directories whose own files the job may change."""

    prefix: str
    conflict: Conflict
    scope: Scope
    directories: tuple[str, ...]
    touches: frozenset[str]
    key: str | None = None

    @property
    def minds(self) -> bool:
        return self.conflict is not Conflict.APPEND


def kind(
    prefix: str,
    conflict: Conflict,
    scope: Scope,
    *directories: str,
    touches: list[str],
    key: str | None = None,
) -> Kind:
    return Kind(prefix, conflict, scope, directories, frozenset(touches), key)


A, F, R = Conflict
D, P = Scope
KINDS = [
    kind("w/t/", A, D, "dt=1/", "dt=2/", touches=TABLE),
    kind("w/t/", A, D, "", touches=TABLE),
    kind("w/t/", R, D, "dt=1/", "dt=2/", touches=TABLE),
    kind("w/t/", R, P, "dt=1/", touches=["w/t/dt=1/", "w/t/dt=1/h=2/"]),
    kind("w/t/", R, P, "dt=1/h=2/", touches=["w/t/dt=1/h=2/"]),
    kind("w/t/", R, P, "dt=2/", touches=["w/t/dt=2/"]),
    kind("w/t/", R, P, "dt=2/", "dt=3/", touches=["w/t/dt=2/", "w/t/dt=3/"]),
    kind("w/t/", R, P, "", touches=["w/t/"]),
    kind("w/t/", F, P, "dt=3/", touches=["w/t/dt=3/"]),
    kind("w/t/dt=1/", A, D, "h=2/", touches=["w/t/dt=1/", "w/t/dt=1/h=2/"]),
    kind("w/t/dt=2/", R, D, "", touches=["w/t/dt=2/"]),
    kind("w/", A, D, "u/", touches=EVERYTHING),
    kind("w/", R, D, "t/dt=1/", "", touches=EVERYTHING),
    kind("w/u/", A, D, "", touches=["w/u/"], key="day"),
    kind("w/t0/", R, D, "", touches=["w/t0/"]),
]


class Chronicle(MemoryLedger):
    """A ledger that notes decisions and ends in their order, and tells when a lock was let go."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, JobState]] = []
        self.released = threading.Condition()
        self.releases = 0

    def decide(self, ref: str, **facts: Any) -> JobRecord:
        with self._lock:
            record = super().decide(ref, **facts)
            self.told.append((ref, JobState.COMMITTING))
            return record

    def advance(self, ref: str, **facts: Any) -> JobRecord:
        with self._lock:
            record = super().advance(ref, **facts)
            if record.state in ENDED:
                self.told.append((ref, record.state))
            return record

    def drop_claim(self, ref: str, claim: Claim) -> None:
        super().drop_claim(ref, claim)
        with self.released:
            self.releases += 1
            self.released.notify_all()


@dataclass
class Job:
    """One of the many: its kind, where it is, and what its driver asked for."""

    kind: Kind
    directory: JobDirectory
    plan: FaultPlan = field(default_factory=FaultPlan)
    entered: list[str] = field(default_factory=list)

    @property
    def job_id(self) -> str:
        return self.directory.job_id

    @property
    def ref(self) -> str:
        return self.directory.ref

    @property
    def keys(self) -> set[str]:
        return {
            f"{self.kind.prefix}{directory}part-{self.job_id}.csv"
            for directory in self.kind.directories
        }

    def conflicts_with(self, other: Job) -> bool:
        meet = bool(self.kind.touches & other.kind.touches)
        return meet and (self.kind.minds or other.kind.minds)


class Crowd:
    """A world with many jobs that have been asked for."""

    def __init__(self, seed: int, count: int) -> None:
        self.world = World()
        self.ledger = Chronicle()
        self.world.ledger = self.ledger
        self.seed = seed
        order = random.Random(seed)
        kinds = KINDS + order.choices(KINDS, k=count - len(KINDS))
        order.shuffle(kinds)
        self.jobs = [self._ask(number, one) for number, one in enumerate(kinds)]

    def _ask(self, number: int, one: Kind) -> Job:
        job = Job(one, job_directory(f"{number:08x}-0000-4000-8000-000000000000", one.prefix))
        self.world.open(
            job.directory, conflict=one.conflict, scope=one.scope, idempotency_key=one.key
        )
        files = {key.removeprefix(one.prefix): job.job_id.encode() for key in job.keys}
        self.world.request(job.directory, self.world.attempt(job.directory, "t", files=files))
        return job

    def run(self, job: Job, execution: str, pause: Callable[[], object]) -> None:
        seed = f"{self.seed} {job.job_id} {execution}"
        store: Any = Jittered(self.world.store, seed)
        ledger: Any = Jittered(self.ledger, seed)
        if execution == "execution-1":
            store, ledger = job.plan.wrap(store), job.plan.wrap(ledger)
        ports = Ports(store, ledger, self.world.clock)
        job.entered += run_execution(ports, job.directory, execution=execution, pause=pause)

    def await_release(self, seconds: float = 0.5) -> bool:
        """Until some job lets a lock go; False if none did."""
        with self.ledger.released:
            before = self.ledger.releases
            return self.ledger.released.wait_for(lambda: self.ledger.releases > before, seconds)

    def all_at_once(self, work: Callable[[Job], None]) -> None:
        with ThreadPoolExecutor(len(self.jobs)) as pool:
            for done in [pool.submit(work, job) for job in self.jobs]:
                done.result(PATIENCE)

    def check(self) -> None:
        self._check_ends()
        self._check_intervals()
        self._check_table()
        assert self.ledger._claims == {}
        assert self.world.open_uploads() == []

    def outcome(self, job: Job) -> Outcome:
        return self.world.result(job.directory).outcome

    def code(self, job: Job) -> str:
        error = self.world.result(job.directory).error
        return error.code if error else ""

    def _check_ends(self) -> None:
        for job in self.jobs:
            record = self.ledger.job(job.directory.ref)
            assert record is not None
            assert record.state in ENDED
            assert JobState(self.outcome(job)) is record.state
        keyed = [job for job in self.jobs if job.kind.key]
        committed = [job for job in keyed if self.outcome(job) is Outcome.COMMITTED]
        assert len(committed) <= 1
        if committed:
            assert {self.code(job) for job in keyed} - {""} <= {"ALREADY_COMMITTED", "STALLED"}

    def _check_intervals(self) -> None:
        """From decision to end no job overlaps one that it conflicts with."""
        jobs = {job.ref: job for job in self.jobs}
        inside: list[Job] = []
        for ref, state in self.ledger.told:
            job = jobs[ref]
            if state is JobState.COMMITTING:
                clash = [other.kind for other in inside if other.conflicts_with(job)]
                assert clash == [], f"{job.kind} was decided beside them"
                inside.append(job)
            elif job in inside:
                inside.remove(job)
        assert inside == []

    def _check_table(self) -> None:
        jobs = {job.ref: job for job in self.jobs}
        table: set[str] = set()
        for ref, state in self.ledger.told:
            job = jobs[ref]
            if state is not JobState.COMMITTING or self.outcome(job) is not Outcome.COMMITTED:
                continue
            minded = {key for key in table if key.rpartition("/")[0] + "/" in job.kind.touches}
            if job.kind.conflict is Conflict.FAIL:
                assert minded == set()
            if job.kind.conflict is Conflict.REPLACE:
                assert self.world.result(job.directory).replaced == len(minded)
                table -= minded
            table |= job.keys
        assert set(self.world.visible("w/")) == table


@pytest.mark.parametrize("seed", range(4))
def test_i2_i6_i10_i11_many_jobs_at_once_end_as_if_one_after_the_other(seed: int) -> None:
    crowd = Crowd(seed, 28)

    def work(job: Job) -> None:
        crowd.run(job, "execution-1", crowd.await_release)

    crowd.all_at_once(work)
    crowd.check()
    refused = {crowd.code(job) for job in crowd.jobs} - {""}
    assert refused <= {"DESTINATION_NOT_EMPTY", "ALREADY_COMMITTED"}


# After which of its calls an execution dies: before and behind its decision, and ended.
DEATHS = ["note", "put_claim", "take_turn", "list", "decide", "advance", "drop_claim"]


@pytest.mark.parametrize("seed", range(4))
def test_i2_i6_i10_i11_executions_that_die_among_many_jobs_block_nobody(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third of the executions die; another one goes on with the job, at once or much later.

    Each that waits moves the one clock on, so that the hour of a wait would be over too soon.
    """
    monkeypatch.setattr(acquire, "MAX_WAIT_SECONDS", 100 * MAX_WAIT_SECONDS)
    crowd = Crowd(seed, 28)
    chance = random.Random(seed)
    late: list[Job] = []
    for number, job in enumerate(crowd.jobs):
        if number % 3 == 0:
            job.plan.crash_after(DEATHS[number // 3 % len(DEATHS)], nth=chance.randint(1, 2))
            if chance.random() < 0.5:
                late.append(job)

    def nobody_moves() -> None:
        if not crowd.await_release(0.05):
            crowd.world.clock.advance(HOLDER_SECONDS / 20)

    def work(job: Job) -> None:
        try:
            crowd.run(job, "execution-1", nobody_moves)
        except Crash:
            record = crowd.ledger.job(job.directory.ref)
            undecided = record is None or record.state in {JobState.OPEN, JobState.SEALED}
            if job not in late or not undecided:
                crowd.run(job, "execution-2", nobody_moves)

    crowd.all_at_once(work)
    for job in crowd.jobs:  # the sweep: those left, and those that were taken for dead
        record = crowd.ledger.job(job.directory.ref)
        if record is None or record.state not in ENDED or job.entered[-1:] != ["TidyUp"]:
            crowd.run(job, "execution-3", nobody_moves)
    crowd.check()
    allowed = {"", "DESTINATION_NOT_EMPTY", "ALREADY_COMMITTED", "STALLED", "DESTINATION_BUSY"}
    assert {crowd.code(job) for job in crowd.jobs} <= allowed
    assert sum(crowd.outcome(job) is Outcome.COMMITTED for job in crowd.jobs) > 14
