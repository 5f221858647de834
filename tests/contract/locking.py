"""A turn as the protocol takes it: claim, enter, and hold."""

from __future__ import annotations

from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.record import JobRecord, Stage, Turn
from s3commit.core.ports.ledger import Ledger

MOMENT = "2026-11-21T22:00:00.000Z"


def enter(
    ledger: Ledger,
    ref: str,
    *nodes: str,
    mode: LockMode = LockMode.EXCLUSIVE,
    since: str = MOMENT,
) -> JobRecord:
    """Claim the nodes, and say that the job enters."""
    record = ledger.job(ref)
    assert record is not None
    for node in nodes:
        ledger.put_claim(Claimed(Claim(node, mode), ref))
    return ledger.take_turn(
        ref,
        generation=record.generation,
        before=record.turn,
        after=Turn(Stage.ENTERING, since, record.turn.epoch + 1),
        locks=nodes,
        now=record.updated_at,
    )


def hold(ledger: Ledger, ref: str, *nodes: str, mode: LockMode = LockMode.EXCLUSIVE) -> JobRecord:
    """The same, and hold them, whoever else is there."""
    return move(ledger, enter(ledger, ref, *nodes, mode=mode), Stage.HELD)


def waits(ledger: Ledger, ref: str) -> bool:
    """The job waits for others."""
    record = ledger.job(ref)
    return record is not None and record.turn.stage is Stage.WAITING


def move(ledger: Ledger, record: JobRecord, stage: Stage) -> JobRecord:
    """The next stage, under the epoch that the record has."""
    return ledger.take_turn(
        record.ref,
        generation=record.generation,
        before=record.turn,
        after=Turn(stage, record.turn.since, record.turn.epoch),
        now=record.updated_at,
    )
