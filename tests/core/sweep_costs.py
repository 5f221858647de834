"""Jobs that cost the sweep much, for the suites of its cost."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger
from tests.core.swept import MINUTE, Schedule, Swept, ended
from tests.core.world import BUCKET, JOB, job_directory
from tests.fakes.item_limits import item_size, job_item

QUARTER = 15 * MINUTE
THEIRS = "tenants/a/"  # where somebody may put what they like
OURS = "tenants/b/"  # behind it in every listing


def ids(count: int) -> Iterator[str]:
    chance = random.Random(9)
    return (str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(count))


def begin(world: Swept, key: str) -> None:
    world.store.create_upload(BUCKET, key, metadata={}, content_type="")


def zombie(world: Swept, prefix: str = OURS) -> JobDirectory:
    """A job that has ended, and an upload of its that has not."""
    directory = job_directory(prefix=prefix)
    ended(world, directory)
    world.upload(directory, f"zombie-{JOB}.x", b"1", task="t9", attempt="a0")
    return directory


# A table in which jobs have ended


class Reads:
    """The ledger of a sweep: reads of single jobs, and the records that the index has brought."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.jobs = 0
        self.listed = 0
        self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def job(self, ref: str) -> JobRecord | None:
        self.jobs += 1
        return self._ledger.job(ref)

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        for record in self._ledger.jobs_in(state, before=before, since=since):
            self.listed += 1
            self.bytes += item_size(job_item(record))
            yield record


def passes(world: Swept, count: int) -> tuple[Reads, int]:
    """What so many passes, a quarter of an hour apart, take of the ledger, and requests of S3.

    After a first pass, which looks at all that nobody knows when it was looked at.
    """
    reads, spent = Reads(world.ledger), 0
    schedule = Schedule(world)
    for number in range(count + 1):
        if number == 1:
            world.ports = replace(world.ports, ledger=cast("Ledger", reads))
        schedule.sweep()
        spent += schedule.spent if number else 0
        world.later(QUARTER)
    return reads, spent
