"""RemoveReplaced: a long list in calls of bounded time, and a list that somebody has taken away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from s3commit.core.commit.remove_replaced import remove_replaced
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket, decode_ticket, encode_ticket
from s3commit.core.job import replace_list
from s3commit.core.model.errors import JobRefusedError, TransientError
from s3commit.core.model.job import Conflict, Outcome, Scope
from s3commit.core.model.limits import CALL_SECONDS
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.execution import STEPS, run_execution

OLD = [f"sales/dt=1/{number:03d}.parquet" for number in range(40)]
NEW = f"sales/dt=1/part-0-{JOB}.parquet"
PAGES = 6  # of 7 files, the last of 5

TamperWith = Callable[[World, JobDirectory], None]


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace_list, "REPLACED_PAGE", 7)
    monkeypatch.setattr(replace_list, "DELETE_AT_ONCE", 3)


def replacing(scope: Scope = Scope.DIRECTORY, **spec: Any) -> tuple[World, JobDirectory]:
    world, directory = World(), job_directory()
    for key in OLD:
        world.store.put(BUCKET, key, key.encode())
    world.open(directory, conflict=Conflict.REPLACE, scope=scope, **spec)
    files = {NEW.removeprefix("sales/"): b"new"}
    world.request(directory, world.attempt(directory, "0", files=files))
    return world, directory


def pages_of(world: World, directory: JobDirectory) -> list[str]:
    return world.all_keys(directory.pages)


def index_of(world: World, directory: JobDirectory) -> str:
    (key,) = world.all_keys(f"{directory.pipeline_prefix}replaced-")
    return key


def pages_in_order(world: World, directory: JobDirectory) -> list[str]:
    return [directory.page(sha256) for sha256 in world.json(index_of(world, directory))["pages"]]


# In rounds


def slow_deletes(world: World, seconds: float) -> None:
    for nth in range(1, 60):
        world.plan.run_before("delete_seen", lambda: world.clock.advance(seconds), nth=nth)


def test_i10_a_long_list_is_gone_through_in_calls_that_end_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, directory = replacing()
    slow_deletes(world, CALL_SECONDS / 12)  # three calls for a page: four pages in the time
    lasted: list[float] = []

    def timed(ports: Ports, ticket: Ticket) -> Ticket:
        began = datetime.fromisoformat(world.clock.now())
        after = remove_replaced(ports, decode_ticket(encode_ticket(ticket)))
        lasted.append((datetime.fromisoformat(world.clock.now()) - began).total_seconds())
        return after

    monkeypatch.setitem(STEPS, "RemoveReplaced", timed)
    assert world.run(directory).count("RemoveReplaced") == 2
    assert [round(seconds) for seconds in lasted] == [600, 250]
    assert set(world.visible()) == {NEW}
    assert world.result(directory).replaced == len(OLD)
    reads = [call.key for call in world.plan.calls if call.verb == "get"]
    pages = [key for key in reads if key.startswith(directory.pages)]
    assert len(pages) == len(set(pages)) == PAGES  # each call goes on where the last has stopped


def test_a_call_that_takes_no_time_does_all() -> None:
    world, directory = replacing()
    assert world.run(directory).count("RemoveReplaced") == 1


def test_i10_a_round_that_dies_is_repeated_from_its_own_page() -> None:
    world, directory = replacing()
    slow_deletes(world, CALL_SECONDS)
    world.plan.fail("delete_seen", TransientError("503"), nth=5)
    assert world.run(directory).count("RemoveReplaced") == PAGES
    assert set(world.visible()) == {NEW}


def test_another_execution_begins_with_the_first_page_and_gets_through() -> None:
    world, directory = replacing()
    world.plan.fail("delete_seen", JobRefusedError("stop", code="STOP"), nth=8)
    with pytest.raises(JobRefusedError):
        world.run(directory)
    assert 0 < len(world.visible()) - 1 < len(OLD)
    world.run(directory, "execution-2")
    assert set(world.visible()) == {NEW}


# Taken away


def lose_index(world: World, directory: JobDirectory) -> None:
    world.store.delete(BUCKET, index_of(world, directory))


def lose_pages(world: World, directory: JobDirectory) -> None:
    for key in pages_of(world, directory):
        world.store.delete(BUCKET, key)


def lose_all(world: World, directory: JobDirectory) -> None:
    lose_pages(world, directory)
    lose_index(world, directory)


def change_a_page(world: World, directory: JobDirectory) -> None:
    key = pages_in_order(world, directory)[2]
    world.store.put(BUCKET, key, world.store.get(BUCKET, key, max_bytes=9999).body + b"\n")


LOSSES: list[TamperWith] = [lose_index, lose_pages, lose_all, change_a_page]


def test_i5_a_page_that_was_made_again_and_is_another_one_is_not_written() -> None:
    """Its name is its digest, so nothing reads it: the call would make it again for ever."""
    world, directory = replacing()

    def strike() -> None:
        world.store.delete(BUCKET, OLD[1])
        world.store.delete(BUCKET, pages_in_order(world, directory)[0])
        no_more = partial(pytest.fail, "a page that the index does not name is written")
        world.plan.run_before(
            "put", no_more, where=lambda call: call.key.startswith(directory.pages)
        )

    world.plan.run_after("decide", strike)
    with pytest.raises(JobRefusedError, match="not what it named"):
        world.run(directory)
    assert set(world.visible()) == {NEW, *OLD} - {OLD[1]}


@pytest.mark.parametrize("lose", LOSSES)
def test_i5_i10_a_list_that_is_gone_is_made_again_if_what_lies_there_proves_it(
    lose: TamperWith,
) -> None:
    world, directory = replacing()
    world.plan.run_after("decide", lambda: lose(world, directory))
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert set(world.visible()) == {NEW}
    assert world.all_keys(directory.pages) == []


def test_i5_i10_a_page_that_goes_while_files_are_deleted_is_made_again() -> None:
    world, directory = replacing()

    def lose() -> None:
        for key in pages_in_order(world, directory)[3:5]:
            world.store.delete(BUCKET, key)

    world.plan.run_before("delete_seen", lose, nth=4)
    world.run(directory)
    assert set(world.visible()) == {NEW}


@pytest.mark.parametrize("lose", LOSSES)
def test_i5_what_nothing_proves_is_not_deleted_until_a_person_has_done_it(
    lose: TamperWith,
) -> None:
    world, directory = replacing()
    stranger = "sales/dt=1/000-stranger.parquet"

    def strike() -> None:
        world.store.put(BUCKET, stranger, b"x")
        world.store.delete(BUCKET, OLD[1])
        lose(world, directory)

    world.plan.run_after("decide", strike)
    with pytest.raises(JobRefusedError) as refused:
        world.run(directory)
    assert refused.value.code == "LIST_CHANGED"
    assert "remove by hand" in refused.value.message
    assert stranger in world.visible()
    assert world.record(directory).state is JobState.PUBLISHING
    for key in [stranger, *OLD]:
        world.store.delete(BUCKET, key)
    run_execution(world.ports, directory, execution="execution-2")
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert set(world.visible()) == {NEW}


def test_i5_a_stranger_who_is_moved_away_again_is_in_nobodys_way() -> None:
    world, directory = replacing()
    stranger = "sales/dt=1/000-stranger.parquet"

    def strike() -> None:
        world.store.put(BUCKET, stranger, b"x")
        lose_all(world, directory)

    world.plan.run_after("decide", strike)
    with pytest.raises(JobRefusedError):
        world.run(directory)
    assert set(OLD) < set(world.visible())
    world.store.delete(BUCKET, stranger)
    world.run(directory, "execution-2")
    assert set(world.visible()) == {NEW}


def test_i5_a_list_of_partitions_is_made_again_if_it_fits_into_one_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Partitions are listed side by side, and come in any order; a page has one order."""
    monkeypatch.setattr(replace_list, "REPLACED_PAGE", 100)
    world, directory = replacing(Scope.PARTITION)
    world.plan.run_after("decide", lambda: lose_all(world, directory))
    world.run(directory)
    assert set(world.visible()) == {NEW}
