"""A7: S3's hosts have clocks of their own, as has each function; ADR 46 has the table."""

from dataclasses import dataclass

import pytest

from s3commit.core.jobs.healing import heal
from s3commit.core.model.destination import Conflict
from s3commit.core.model.limits import FUNCTION_CLOCKS, LONGEST_CALL, S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.bundle import Ports
from tests.core.test_appends import MOMENT
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.clock import ManualClock
from tests.fakes.execution import run_execution

DIRECTORY = job_directory()
APART = [-FUNCTION_CLOCKS, 0, FUNCTION_CLOCKS]


@dataclass
class Hosts:
    """S3's clocks: those that set the time of uploads are late by so much, in whole seconds."""

    clock: ManualClock
    late: float = 0.0

    def now(self) -> str:
        return shifted(self.clock.now(), -self.late)[: len("2026-11-21T22:00:00")] + ".000Z"

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)


def on_late_hosts(late: float) -> World:
    """A job was opened by a host that is right; then others, which are late, take its uploads."""
    world = World()
    world.clock.advance(0.9)
    hosts = Hosts(world.clock)
    world.store.clock = hosts
    world.open(DIRECTORY)
    hosts.late = late
    return world


def function(world: World, apart: float) -> Ports:
    """The ports of a function whose clock differs from the world's by so much."""
    clock = ManualClock(shifted(world.clock.now(), apart), step=0.001)
    return Ports(world.store, world.ledger, clock)


@pytest.mark.parametrize("late", [0.02, 1, S3_CLOCKS])
def test_i4_a7_uploads_are_the_jobs_though_another_host_took_its_job_json(late: float) -> None:
    """They are counted, and those that are not are aborted."""
    world = on_late_hosts(late)
    counted = world.attempt(DIRECTORY, "t0")
    world.attempt(DIRECTORY, "t0", "loser", files={f"loser-{JOB}.parquet": b"lost"})
    world.request(DIRECTORY, counted)
    world.run(DIRECTORY)
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED
    assert world.open_uploads() == []


def test_i12_a7_what_seconds_hide_is_an_upload_below_its_own_destination_and_no_object() -> None:
    """Who opens a job with the id of an upload that has just begun has it aborted, and no more."""
    world, evil = World(), job_directory(OTHER_JOB, "sales/dt=1/")
    names = [f"sales/dt=1/part-{OTHER_JOB}.parquet", f"sales/part-{OTHER_JOB}.parquet"]
    for key in names:
        world.store.put(BUCKET, key.replace("part", "old"), b"stands")
        world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    before = world.visible()
    world.request_abort(evil)
    world.run(evil)
    assert world.open_uploads() == names[1:]
    assert world.visible() == before


@pytest.mark.parametrize("apart", APART)
def test_i6_a7_an_append_that_ends_by_another_clock_is_not_removed_in_part(apart: int) -> None:
    assert left_of_an_append(apart) == 2


def left_of_an_append(apart: float) -> int:
    """Of two files. One was visible when a replace listed them; then the append ended."""
    world, appending = World(), job_directory(OTHER_JOB, "top/")
    files = {f"sales/{number}-{OTHER_JOB}.csv": b"new" for number in range(2)}
    world.ask(appending, files=files)
    world.plan.crash_after("complete_upload")
    world.dies(appending)
    replacing = job_directory(JOB, "top/sales/")
    world.ask(replacing, "t", conflict=Conflict.REPLACE)
    world.plan.run_before(
        "appends",
        lambda: run_execution(function(world, apart), appending, execution="execution-2"),
        nth=MOMENT + 1,
    )
    world.run(replacing)
    for directory in (appending, replacing):
        assert world.result(directory).outcome is Outcome.COMMITTED
    return sum(OTHER_JOB in key for key in world.visible("top/sales/"))


@pytest.mark.parametrize("apart", APART)
def test_i8_a7_an_empty_ledger_waits_for_the_last_call_by_any_clock(apart: int) -> None:
    """One function notes that the table is new, another one reckons when those of before ended."""
    world = World()
    world.plan.crash_after("decide")
    world.ask(DIRECTORY, "t")
    world.dies(DIRECTORY)
    world.ledger.lose()
    assert heal(world.unplanned, BUCKET) > 0
    world.clock.advance(LONGEST_CALL - 1)
    assert heal(function(world, apart), BUCKET) > 0
