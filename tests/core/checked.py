"""A world that can be checked."""

from __future__ import annotations

from dataclasses import dataclass

from s3commit.core.check import Report, check
from s3commit.core.model.job import Destination
from tests.core.world import BUCKET, World

SALES = Destination(BUCKET, "sales/")


@dataclass
class Checked:
    """A world under check, which has its own connection."""

    world: World
    destination: Destination = SALES

    def report(self) -> Report:
        return check(
            self.world.plan.wrap(self.world.store), self.world.ledger, map, self.destination
        )
