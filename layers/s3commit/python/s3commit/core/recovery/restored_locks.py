"""The locks of jobs that were decided when the ledger was lost (I6).

That a job was decided its decision record tells. One that has none has done nothing yet, and may as
well be decided anew.
"""

from __future__ import annotations

from dataclasses import replace

from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Scope
from s3commit.core.model.locks import Claimed, claims
from s3commit.core.model.record import JobRecord, Stage, Turn
from s3commit.core.ports.bundle import Ports


def hold_again(ports: Ports, record: JobRecord, *, dry_run: bool) -> JobRecord:
    """Put the claims of all that the job may have held; the record as it then has to be made.

    Instead of partitions it claims the whole destination: which ones it wrote is not worth reading
    all its manifests for, and covers what it asks for when it goes on. Whoever else was decided
    holds beside it: they were let in together, and nobody can be put out. Who waited asks again.
    """
    try:
        whole = replace(record, scope=Scope.DIRECTORY)
        wanted = claims(whole, ())
    except JobRefusedError:
        return record  # it was never decided
    held = Turn(Stage.HELD, record.created_at, record.generation + 1)
    for claim in () if dry_run else wanted:
        ports.ledger.put_claim(Claimed(claim, record.ref, epoch=held.epoch))
    return replace(record, locks=tuple(claim.node for claim in wanted), turn=held)
