"""What a job holds, what it waits for, and who is in its way, as the ledger says it."""

from __future__ import annotations

from dataclasses import dataclass

from s3commit.cli.session import Session
from s3commit.core.job.claims import Rival, claimants, with_records
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.locks import Claim, claimed, in_the_way
from s3commit.core.model.record import JobRecord, Stage
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import ParallelMap
from s3commit.core.ports.executions import Execution
from s3commit.core.ports.ledger import Ledger


@dataclass(frozen=True, slots=True)
class InTheWay:
    """A job that keeps another one waiting by a claim.

    It holds what it claims, or (``holds`` False) waits for it longer. ``execution`` is the job's
    where that was asked for.
    """

    claim: Claim
    record: JobRecord
    holds: bool
    execution: Execution | None = None


@dataclass(frozen=True, slots=True)
class LockStatus:
    """How a job stands among others: a job holds all that it needs, or nothing and waits.

    ``since`` is when it first asked, RFC 3339; None if it does not wait. ``kept_waiting`` are the
    jobs that wait for what it holds.
    """

    holds: tuple[Claim, ...]
    waits: tuple[Claim, ...]
    since: str | None
    in_the_way: tuple[InTheWay, ...]
    kept_waiting: tuple[str, ...] = ()


def read_lock_status(
    session: Session, ledger: Ledger, record: JobRecord, now: str
) -> LockStatus | None:
    """Read who claims the same as a job, and their records; None if it needs nothing now.

    A query or two for its destination and each directory above.
    """
    if not record.locks or record.state in ENDED:
        return None
    own, rivals = claimed(record), _rivals(session.parallel, ledger, record)
    if not _waits(record):
        kept = [one.record.job_id for one in rivals if one.record and _waits(one.record)]
        holds = own if record.turn.stage is Stage.HELD else ()
        return LockStatus(holds, (), None, (), tuple(sorted(kept)) if holds else ())
    ahead = [
        InTheWay(one.claim, one.record, not _waits(one.record))
        for one in rivals
        if one.record and in_the_way(one.record, record, now)
    ]
    return LockStatus((), own, record.turn.since, tuple(ahead))


def refs_in_the_way(
    parallel: ParallelMap, ledger: Ledger, record: JobRecord, now: str
) -> tuple[str, ...]:
    """For whom the job waits, by ref: since ``record.turn.since``. Nobody if it does not."""
    rivals = _rivals(parallel, ledger, record) if _waits(record) else []
    found = [one.ref for one in rivals if one.record and in_the_way(one.record, record, now)]
    return tuple(sorted(found))


def _waits(record: JobRecord) -> bool:
    return record.state is JobState.SEALED and record.turn.stage in {Stage.WAITING, Stage.ENTERING}


def _rivals(parallel: ParallelMap, ledger: Ledger, record: JobRecord) -> list[Rival]:
    try:
        found = claimants(ledger, parallel, record)
    except JobRefusedError:
        return []  # more than anybody reads
    return [one for group in with_records(ledger, parallel, found) for one in group]
