"""RemoveReplaced: a long list in calls of bounded time (I5, I10)."""

from datetime import datetime
from typing import Any

import pytest

from s3commit.core.commit.remove_replaced import remove_replaced
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket, decode_ticket, encode_ticket
from s3commit.core.job import replaced
from s3commit.core.model.errors import TransientError
from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.limits import CALL_SECONDS
from s3commit.core.ports.bundle import Ports
from tests.core.policy_world import is_removal
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.execution import STEPS

OLD = [f"sales/dt=1/{number:03d}.parquet" for number in range(40)]
NEW = f"sales/dt=1/part-0-{JOB}.parquet"
PAGES = 6  # of 7 files, the last of 5


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaced, "DELETE_AT_ONCE", 7)


def replacing(scope: Scope = Scope.DIRECTORY, **spec: Any) -> tuple[World, JobDirectory]:
    world, directory = World(), job_directory()
    for key in OLD:
        world.store.put(BUCKET, key, key.encode())
    world.open(directory, conflict=Conflict.REPLACE, scope=scope, **spec)
    files = {NEW.removeprefix("sales/"): b"new"}
    world.request(directory, world.attempt(directory, "0", files=files))
    return world, directory


def slow_deletes(world: World, seconds: float) -> None:
    world.plan.run_before("delete_seen", lambda: world.clock.advance(seconds), times=None)


def test_i10_a_long_list_is_gone_through_in_calls_that_end_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, directory = replacing()
    slow_deletes(world, CALL_SECONDS / 4)  # four pages in the time
    lasted: list[float] = []

    def timed(ports: Ports, ticket: Ticket) -> Ticket:
        began = datetime.fromisoformat(world.clock.now())
        after = remove_replaced(ports, decode_ticket(encode_ticket(ticket)))
        lasted.append((datetime.fromisoformat(world.clock.now()) - began).total_seconds())
        return after

    monkeypatch.setitem(STEPS, "RemoveReplaced", timed)
    assert world.run(directory).count("RemoveReplaced") == 2
    assert [round(seconds) for seconds in lasted] == [600, 300]
    assert set(world.visible()) == {NEW}
    assert world.result(directory).replaced == len(OLD)
    removals = [call for call in world.plan.calls if is_removal(call)]
    assert len(removals) == PAGES  # each call resumes where the last one has stopped


def test_i2_a_file_that_carries_the_jobs_id_is_not_in_its_list() -> None:
    world, directory = replacing()
    own = f"sales/dt=1/before-{JOB}.parquet"
    world.store.put(BUCKET, own, b"x")
    world.run(directory)
    assert set(world.visible()) == {NEW, own}


def test_i10_a_round_that_dies_is_repeated_from_its_own_page() -> None:
    world, directory = replacing()
    slow_deletes(world, CALL_SECONDS)
    world.plan.fail("delete_seen", TransientError("503"), nth=3)
    assert world.run(directory).count("RemoveReplaced") == PAGES
    assert set(world.visible()) == {NEW}
