"""Locks as the protocol takes them: read, ask, put on condition, and again if that was lost."""

from __future__ import annotations

from s3commit.core.ledger import Ledger
from s3commit.core.locks import LockMode, ask, let_go

MOMENT = "2026-11-21T22:00:00.000Z"


def take(ledger: Ledger, node: str, job_id: str, mode: LockMode, *, since: str = MOMENT) -> bool:
    """Ask for the node; whether the job holds it now (it waits in the queue otherwise)."""
    while True:
        record, in_the_way = ask(ledger.lock(node), job_id, mode, since=since, now=MOMENT)
        if ledger.put_lock(record):
            return not in_the_way


def give_back(ledger: Ledger, node: str, job_id: str) -> None:
    """Neither hold the node nor wait for it any more."""
    while not ledger.put_lock(let_go(ledger.lock(node), job_id)):
        pass
