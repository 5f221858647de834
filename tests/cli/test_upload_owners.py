"""The sweep goes by the rule that says whose an open upload is (I4, I5, I12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from s3commit.core.ownership.open_uploads import Ownership
from s3commit.core.sweep.steps import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep
from tests.cli.support import JOB, OTHER, Desk
from tests.core.world import BUCKET, job_directory
from tests.fakes.executions import MemoryExecutions

STRANGER = "33333333-7425-40de-944b-e07fc1f90ae7"
DAY = 86_400
ENDED, UNDER_WAY, UNKNOWN, FOREIGN = Ownership


@dataclass(frozen=True)
class Case:
    """An upload whose key is ``name``, and whose it is."""

    name: str
    owner: Ownership
    arrange: Callable[[Desk], object] = lambda _desk: None


def _forged_below(desk: Desk) -> None:
    """A result below the job's directory, by somebody who may write there alone."""
    desk.world.store.put(BUCKET, job_directory(JOB, "sales/b/").result, b"{}")


CASES = {
    "no id in its name": Case("sales/backup.tar", FOREIGN),
    "an id and no end of a name": Case(f"sales/{OTHER}/part.{OTHER}", FOREIGN),
    "a write of Spark's own": Case(f"sales/part-00000-{STRANGER}-c000.parquet", FOREIGN),
    "a file of Delta's": Case(f"sales/part-00000-{STRANGER}.c000.parquet", FOREIGN),
    "a uuid where no job ever was": Case(f"exports/report-{STRANGER}.csv", FOREIGN),
    "an unknown job where jobs have been": Case(f"sales/part-{STRANGER}.parquet", UNKNOWN),
    "a job under way": Case(f"sales/part-{JOB}.parquet", UNDER_WAY),
    "a job under way above": Case(f"sales/dt=1/h=2/part-{JOB}.parquet", UNDER_WAY),
    "a job under way, forged below": Case(
        f"sales/b/part-{JOB}.parquet", UNDER_WAY, arrange=_forged_below
    ),
    "a job under way elsewhere": Case(f"other/part-{JOB}.parquet", UNDER_WAY),
    "a job that has ended": Case(f"sales/part-{OTHER}.parquet", ENDED),
    "a job that has ended above": Case(f"sales/dt=1/part-{OTHER}.c000.parquet", ENDED),
    "a job that ended elsewhere": Case(f"other/part-{OTHER}.parquet", UNDER_WAY),
}


@pytest.fixture
def arranged(desk: Desk) -> Callable[[str], Case]:
    """A job under way and one that has ended, at ``sales/``; the case's upload is 9 days old."""

    def arrange(name: str) -> Case:
        case = CASES[name]
        desk.open_job(JOB, tasks=1)
        desk.aborted_job(OTHER)
        case.arrange(desk)
        store = desk.world.store
        upload = store.create_upload(BUCKET, case.name, metadata={}, content_type="")
        store.upload_part(BUCKET, case.name, upload, 1, b"12345")
        desk.world.clock.advance(9 * DAY)
        return case

    return arrange


@pytest.mark.parametrize("name", CASES)
def test_i4_i5_the_sweep_aborts_what_is_of_ended_and_unknown_jobs(
    desk: Desk, arranged: Callable[[str], Case], name: str
) -> None:
    case, world = arranged(name), desk.world
    limits = Limits(abandoned=100 * DAY)  # the job under way stays so
    run_sweep(lambda report: Sweep(BUCKET, world.ports, MemoryExecutions(), limits, report))
    assert (case.name not in world.open_uploads()) == (case.owner in {ENDED, UNKNOWN})
