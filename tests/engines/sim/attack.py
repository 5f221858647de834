"""A run with an adversary: its world, the events of what it puts, and its end."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from s3commit.core.model.states import JobState
from tests.engines.sim.adversary import PREFIXES, Adversary
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.decisions import Decisions
from tests.engines.sim.escalation import EscalatedDecisions, Escalation
from tests.engines.sim.furnish import add_job
from tests.engines.sim.model import ENDED, UNDER_WAY, Job
from tests.engines.sim.observer import Observer
from tests.engines.sim.ports import as_store
from tests.engines.sim.recovery import is_untidy
from tests.engines.sim.scheduler import Process, fail
from tests.engines.sim.world import World

_HOLDING = UNDER_WAY | {JobState.OPEN}  # in the other states a lock can be taken away


class AttackedWorld(World):
    """The world of a seed, with one client more, which means harm."""

    def __init__(self, seed: int, **options: Any) -> None:
        self.dice = random.Random(f"adversary {seed}")
        self.prefix = self.dice.choice(PREFIXES)
        super().__init__(seed, **{"losses": 0.1, **options})
        self.door.page = self.dice.choice([3, 1000])  # there is much to list
        self.adversary = Adversary(
            self.scheduler, as_store(self.door), self.bucket, self.dice, self.prefix
        )

    def _make_judges(self) -> tuple[Observer, Decisions]:
        self.escalation = Escalation(self.scheduler, self.bucket, self.prefix)
        return self.escalation, EscalatedDecisions(self.scheduler, self.escalation)

    # The run.

    def begin(self) -> None:
        """Beside the others, from the first moment on or later."""
        for _ in range(self.dice.choice([0, 1, 1, 2])):
            add_job(self, self.prefix)
        jobs = self.observer.jobs
        for name in [name for name, job in jobs.items() if job.prefix.startswith(self.prefix)]:
            job = jobs.pop(name)
            job.intruder, job.hostile = True, False
            self.escalation.intruders[job.directory.prefix] = job
        self._attack("adversary", self.dice.choice([1, 2, 3]))

    def restart(self) -> None:
        """Then against what has ended: records expire, documents are retired, people look."""
        for job in self.observer.everyone:
            if job.record_state in ENDED and self.dice.random() < 0.5 and not is_untidy(self, job):
                self._forget(job, wholly=job.intruder and self.dice.random() < 0.5)
        self._attack("adversary again", self.dice.choice([1, 2, 4]))
        if self.dice.random() < 0.5:
            prefix = self.dice.choice(["sales/", "sales2/", self.prefix])
            commit = partial(self.keepers.commit_requested, prefix)
            command = partial(self.keepers.command, f"commit {prefix}", commit)
            self.later("commit!", command, job="", role="clock")
        if self.dice.random() < 0.3:
            self.later("sweep!", partial(self.keepers.sweep, "sweep"), job="", role="clock")
        self.scheduler.run()

    def _attack(self, name: str, plots: int) -> None:
        body = partial(self.adversary.run, plots)
        self.later(name, body, job="", role="adversary")

    def _forget(self, job: Job, *, wholly: bool) -> None:
        """Thirty days later; with ``wholly`` its documents were kept no longer, either."""
        self.faults.strike("record expired")
        job.expired = True
        self.ledger.expire(job.directory.ref)
        for key in list(self.bucket.objects) if wholly else ():
            if key.startswith((job.directory.prefix, job.directory.pipeline_prefix)):
                self.store.delete(BUCKET, key)

    # Events of what it puts.

    def announce(self, process: Process, key: str) -> None:
        if not self.escalation.is_below(key):
            super().announce(process, key)
            return
        if process.role not in {"adversary", "driver", "task", "sweep"}:
            return
        job = self.escalation.intruder_of(key)
        if key.endswith(".pendingset"):
            self._deliver(f"{job.name}:ingest", partial(self.machine.ingest, key), job)
        elif key.endswith("/_request.json"):
            self._deliver(f"{job.name}:dispatch", partial(self.machine.dispatch, job), job)

    def _deliver(self, name: str, body: Callable[[], object], job: Job) -> None:
        for _ in range(self.dice.choice([1, 1, 1, 2])):
            most = self.dice.choice([0.0, 0.05, 1.0, 600.0])
            self.later(name, body, job=job.name, most=most)

    # The end.

    def unsettled(self) -> list[str]:
        """Decided jobs below the prefix that hold what another one may want."""
        return [
            f"{job.name} ({job.record_state}: {job.message}) holds {lock.node}"
            for lock in self.ledger.locks_below("")
            for job in self.escalation.intruders.values()
            if job.directory.ref == lock.ref and job.record_state in _HOLDING
        ]

    def judge(self) -> None:
        """See `World.judge`; nobody else was kept from an end by it, nor people from their work."""
        super().judge()
        for job in self.observer.jobs.values():
            if job.failure == "DESTINATION_BUSY" and self._is_alone(job):
                fail("I12", f"job {job.name} waited for jobs below {self.prefix}: {job.message}")
        for said in self.keepers.stopped:
            fail("I12", said)

    def _is_alone(self, job: Job) -> bool:
        """Whether neither the adversary nor another job has to do with the job's places."""
        others = [other.prefix for other in self.observer.jobs.values() if other is not job]
        return not any(
            one.startswith(job.prefix) or job.prefix.startswith(one)
            for one in [self.prefix, *others]
        )

    def is_written_to(self, prefix: str) -> bool:
        return self.prefix.startswith(prefix) or prefix.startswith(self.prefix)
