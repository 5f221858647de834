"""An empty ledger that is healed while a test stands still."""

from __future__ import annotations

from s3commit.core.job.decision_record import heal
from tests.core.world import BUCKET, World


def heal_now(world: World) -> None:
    """As the executions do that wait for it, without faults."""
    while pause := heal(world.unplanned, BUCKET):
        world.clock.advance(pause)
