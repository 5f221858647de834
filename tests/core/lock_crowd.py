"""A ledger with jobs in any stage of getting their locks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.claims import release_locks
from s3commit.core.model.job import Conflict, Destination, Scope
from s3commit.core.model.locks import (
    Claim,
    Claimed,
    LockMode,
    claims,
)
from s3commit.core.model.record import JobRecord, PlanFacts, Stage, Turn
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.fakes.faults import FaultPlan
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

START = datetime.fromisoformat("2026-11-21T22:00:00.000+00:00")
JOB_ID = "0b6f6f0e-0000-4000-8000-{:012d}"

S, X, K = LockMode


def at(seconds: float) -> str:
    moment = START + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


NOW = at(0)


# A ledger of jobs that stand anywhere on their way


class Crowd:
    """Jobs in a ledger that are SEALED and have a plan."""

    def __init__(self) -> None:
        self.ledger = MemoryLedger()
        self.refs: dict[str, str] = {}
        self.clock = ManualClock(NOW)
        self.plan = FaultPlan()
        store = MemoryObjectStore("lake", clock=self.clock)
        self.ports = Ports(store, self.plan.wrap(self.ledger), self.clock)

    def put(
        self,
        job_id: str,
        own: tuple[Claim, ...] | list[Claim],
        stage: Stage,
        *,
        since: str = NOW,
        seen: str = NOW,
        conflict: Conflict = Conflict.REPLACE,
        prefix: str = "t/",
        state: JobState = JobState.SEALED,
        waits: bool = False,
    ) -> JobRecord:
        record = JobRecord(
            job_id,
            Destination("lake", prefix),
            state,
            1,
            seen,
            seen,
            conflict=conflict,
            plan=PlanFacts("0" * 64, 1, 1, 1, 1),
            locks=tuple(claim.node for claim in own),
            turn=Turn(stage, "" if stage is Stage.NONE else since, int(stage is not Stage.NONE)),
            execution=job_id,
        )
        turn = record.turn
        for claim in own:
            self.ledger.put_claim(Claimed(claim, record.ref, epoch=turn.epoch))
            if waits:
                asked = Claimed(claim, record.ref, True, turn.since, turn.epoch)
                self.ledger.put_claim(asked)
        self.ledger._jobs[record.ref] = record
        self.refs[job_id] = record.ref
        return record

    def new(self, number: int, prefix: str = "t/", conflict: Conflict = Conflict.REPLACE) -> str:
        job_id = JOB_ID.format(number)
        self.put(job_id, (), Stage.NONE, conflict=conflict, prefix=prefix)
        return job_id

    def record(self, job_id: str) -> JobRecord:
        record = self.ledger.job(self.refs[job_id])
        assert record is not None
        return record

    def ask(self, job_id: str, before: Ticket | None = None) -> Ticket:
        """Ask; ``before`` is what it was told when it asked last, if the same execution asks."""
        record = self.record(job_id)
        first = Ticket(job_id, "lake", JobDirectory.of(record).prefix, execution=job_id)
        return acquire_destination(self.ports, before or first.after(record))

    def end(self, job_id: str) -> None:
        record = self.record(job_id)
        self.ledger._jobs[record.ref] = replace(record, state=JobState.ABORTED)
        release_locks(self.ports, record)

    def stage(self, job_id: str) -> Stage:
        return self.record(job_id).turn.stage


def claims_of(
    destination: Destination,
    conflict: Conflict = Conflict.APPEND,
    scope: Scope = Scope.DIRECTORY,
    partitions: Iterable[str] = (),
    key: str | None = None,
) -> tuple[Claim, ...]:
    """What a job of that policy claims."""
    record = JobRecord(
        JOB_ID.format(1),
        destination,
        JobState.SEALED,
        0,
        NOW,
        NOW,
        conflict=conflict,
        scope=scope,
        idempotency_key=key,
    )
    return claims(record, partitions)
