"""What a roll back and a replacement remove, in calls that end in time."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from s3commit.core.documents import plan, replace_list
from s3commit.core.documents.ticket import Ticket, decode_ticket, encode_ticket
from s3commit.core.formats.layout import JobDirectory, is_data
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import TransientError
from s3commit.core.model.limits import CALL_SECONDS, DELETE_AT_ONCE
from s3commit.core.model.moments import seconds, shifted
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.bundle import Ports
from tests.core.policy_world import fill, is_removal
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.execution import STEPS
from tests.moments import Table

TASKS = [f"t{number}" for number in range(12)]
SLOW = CALL_SECONDS / 5  # of a request: five in a call, and what it has begun


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "UNIT_FILES", 2)
    monkeypatch.setattr(plan, "PAGE_FILES", 2)
    monkeypatch.setattr(replace_list, "DELETE_AT_ONCE", 7)


def to_be_aborted() -> World:
    world = World()
    for task in TASKS:
        world.attempt(job_directory(), task)
    world.request_abort(job_directory())
    return world


def to_be_rolled_back() -> World:
    """One upload is lost after the decision."""
    world = World()
    world.ask(job_directory(), *TASKS, conflict=Conflict.REPLACE)
    world.lose_after_decision("sales/part-t5")
    return world


def slow_down(world: World, verb: str, wait: float = SLOW) -> None:
    """Such a request takes its time."""
    world.plan.run_before(verb, lambda: world.clock.advance(wait), times=None)


def left(world: World) -> tuple[Any, ...]:
    """What a job has left: all that anybody can see of it."""
    result = replace(world.result(job_directory()), decided_at="", finished_at="", execution="")
    return result, world.visible(), world.open_uploads(), world.record(job_directory()).state


@pytest.fixture
def lasted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each call of the steps took; the ticket travels as it does between them."""
    found: list[float] = []

    def timed(step: Callable[[Ports, Ticket], Ticket], ports: Ports, ticket: Ticket) -> Ticket:
        before, refusal = ports.clock.now(), ticket.refusal
        after = step(ports, replace(decode_ticket(encode_ticket(ticket)), refusal=refusal))
        found.append(seconds(before, ports.clock.now()))
        return after

    for name in ("AbortJob", "RollBack", "RemoveReplaced"):
        monkeypatch.setitem(STEPS, name, partial(timed, STEPS[name]))
    return found


@pytest.mark.parametrize("make", [to_be_aborted, to_be_rolled_back])
def test_i2_i4_many_files_are_undone_in_calls_that_end_in_time(
    make: Callable[[], World], lasted: list[float]
) -> None:
    at_once = make()
    at_once.run(job_directory())
    assert len(lasted) == 1
    lasted.clear()
    world = make()
    for verb in ("abort_upload", "head", "delete"):
        slow_down(world, verb)
    world.run(job_directory())
    assert left(world) == left(at_once)
    assert len(lasted) > 2
    unit = 3 * 2 * SLOW  # up to three requests for each file of a unit
    assert max(lasted) < CALL_SECONDS + unit


def test_i4_while_tasks_open_uploads_the_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that nobody stops: an upload is open whenever the step looks again."""
    world, directory = World(), job_directory()
    world.request_abort(directory)
    tasks_end = shifted(world.clock.now(), 4 * 3600)
    pauses: list[int] = []
    create = partial(world.store.create_upload, BUCKET, f"sales/x-{JOB}.csv")

    def open_one_more() -> None:
        if world.clock.now() < tasks_end:
            create(metadata={}, content_type="")

    def noted(ports: Ports, ticket: Ticket) -> Ticket:
        after = abort(ports, ticket)
        pauses.append(after.pause)
        return after

    abort = STEPS["AbortJob"]
    monkeypatch.setitem(STEPS, "AbortJob", noted)
    world.plan.run_before("list_uploads", open_one_more, times=None)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ABORTED
    assert world.open_uploads() == []
    assert pauses == [*sorted(pauses[:-1]), 0]
    assert (pauses[0], pauses[-2]) == (5, 600)
    assert len(pauses) < 100


# TidyUp: what goes when a job has ended, how, and what stays


def test_all_manifests_go_with_a_request_for_each_thousand() -> None:
    world, directory = World(), job_directory()
    world.ask(directory)
    for number in range(2 * DELETE_AT_ONCE + 1):
        world.store.put(BUCKET, directory.manifest(f"loser{number}", "a0"), b"")
    world.store.put(BUCKET, directory.catalog, b"a note for people")
    world.run(directory)
    groups = [call.arguments["objects"] for call in world.plan.calls if call.verb == "delete_seen"]
    assert [len(group) for group in groups] == [DELETE_AT_ONCE, DELETE_AT_ONCE, 4]
    assert world.plan.counts().get("delete", 0) == 0
    assert world.all_keys(directory.tasks) == []
    assert world.all_keys(directory.pipeline_prefix) == [directory.catalog, directory.decision]


def test_i4_more_uploads_than_a_call_has_time_for_are_left_to_the_next_one() -> None:
    world, directory = World(), job_directory()
    for number in range(20):
        world.attempt(directory, f"loser{number}")
    world.request(directory, world.attempt(directory, "t0"))
    slow_down(world, "abort_upload")
    assert world.run(directory).count("TidyUp") == 4
    assert world.open_uploads() == []
    assert world.all_keys(directory.tasks) == []


@pytest.mark.parametrize("partitioned", [False, True])
def test_what_vanishes_when_no_job_waits_for_its_answer_is_hidden(partitioned: bool) -> None:
    """As the page on readers says. A job that replaces files is answered when they are gone."""
    world = World()
    table = Table(world.ports, BUCKET, "json", partitioned)
    seen: list[set[str]] = []

    def look() -> None:
        keys = world.store.list(BUCKET, table.prefix)
        seen.append({one.key.removeprefix(table.prefix) for one in keys})

    table.live(look, tuple(STEPS))
    vanished: dict[bool, set[str]] = {True: set(), False: set()}
    for before, after in pairwise(seen):
        asked = sum(name.endswith("_request.json") for name in after)
        answered = sum(name.endswith("_result.json") for name in after)
        vanished[asked == answered] |= before - after
    assert len([name for name in vanished[False] if is_data(name)]) == 4
    assert vanished[True]
    assert [name for name in vanished[True] if is_data(name)] == []


OLD = [f"sales/dt=1/{number:03d}.parquet" for number in range(40)]
NEW = f"sales/dt=1/part-0-{JOB}.parquet"
PAGES = 6  # of 7 files, the last of 5


def replacing() -> tuple[World, JobDirectory]:
    world, directory = World(), job_directory()
    fill(world, OLD)
    files = {NEW.removeprefix("sales/"): b"new"}
    world.ask(directory, files=files, conflict=Conflict.REPLACE)
    return world, directory


def test_i10_a_long_list_is_gone_through_in_calls_that_end_in_time(lasted: list[float]) -> None:
    world, directory = replacing()
    slow_down(world, "delete_seen", CALL_SECONDS / 4)  # four pages in the time
    assert world.run(directory).count("RemoveReplaced") == 2
    assert [round(one) for one in lasted] == [600, 300]
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
    slow_down(world, "delete_seen", CALL_SECONDS)
    world.plan.fail("delete_seen", TransientError("503"), nth=3)
    assert world.run(directory).count("RemoveReplaced") == PAGES + 1
    assert set(world.visible()) == {NEW}
