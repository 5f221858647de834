"""Of the jobs with one idempotency key at one destination at most one is ever committed (I11)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import dump
from s3commit.core.model.job import Conditions, Conflict, Outcome
from s3commit.core.model.limits import HOLDER_SECONDS
from s3commit.core.model.locks import key_digest
from s3commit.core.ports.bundle import Ports
from tests.core.enumerated import every_point
from tests.core.jittered import Jittered
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan

KEY = "orders 2026-11-21"
FIRST, SECOND = job_directory(JOB), job_directory(OTHER_JOB)
NOTE = FIRST.once(key_digest(KEY))


def ask(world: World, directory: JobDirectory, key: str | None = KEY, **spec: Any) -> None:
    world.open(directory, idempotency_key=key, **spec)
    files = {f"part-{directory.job_id}.csv": directory.job_id.encode()}
    world.request(directory, world.attempt(directory, "t", files=files))


def ended(world: World, directory: JobDirectory) -> tuple[Outcome, str]:
    result = world.result(directory)
    return result.outcome, result.error.code if result.error else ""


COMMITTED = (Outcome.COMMITTED, "")
ALREADY = (Outcome.ABORTED, "ALREADY_COMMITTED")


def forget(world: World) -> None:
    """The ledger is lost; what runs from now on has an empty one."""
    world.ledger.lose()
    world.ports = Ports(world.store, world.ledger, world.clock)


def check_one_of(world: World, *directories: JobDirectory) -> JobDirectory:
    """One job is committed, the others have added nothing and know which (I2, I4, I11)."""
    winners = [directory for directory in directories if ended(world, directory) == COMMITTED]
    assert len(winners) == 1
    assert list(world.visible().values()) == [winners[0].job_id.encode()]
    for directory in directories:
        if directory is not winners[0]:
            assert ended(world, directory) == ALREADY
            assert world.result(directory).already_committed
            error = world.result(directory).error
            assert error is not None
            assert winners[0].job_id in error.message
        assert (world.store.head(BUCKET, directory.commits) is None) == (
            directory is not winners[0]
        )
    assert world.open_uploads() == []
    assert world.json(NOTE) == {"version": 1, "key": KEY, "jobId": winners[0].job_id}
    return winners[0]


# One after the other


@pytest.mark.parametrize("conflict", Conflict)
def test_i11_a_job_that_is_run_again_adds_nothing_and_names_the_one_that_did(
    conflict: Conflict,
) -> None:
    world = World()
    ask(world, FIRST, conflict=conflict)
    ask(world, SECOND, conflict=conflict)
    world.run(FIRST)
    marker = world.json("sales/_SUCCESS")
    world.run(SECOND)
    assert check_one_of(world, FIRST, SECOND) is FIRST
    assert world.json("sales/_SUCCESS") == marker


def test_i11_it_is_told_so_before_its_own_conditions_are_judged() -> None:
    world = World()
    ask(world, FIRST)
    ask(world, SECOND, conditions=Conditions(min_rows=10**9))
    world.run(FIRST)
    world.run(SECOND)
    assert check_one_of(world, FIRST, SECOND) is FIRST


def test_i11_another_key_and_no_key_are_other_jobs() -> None:
    world = World()
    ask(world, FIRST)
    ask(world, SECOND, key="another day")
    third = job_directory("0b6f6f0e-0000-4000-8000-00000000000a")
    ask(world, third, key=None)
    for directory in (FIRST, SECOND, third):
        world.run(directory)
        assert ended(world, directory) == COMMITTED
    assert len(world.visible()) == 3


@pytest.mark.parametrize("prefix", ["sales2/", "sales/t/", "s/"])
def test_i11_a_key_is_of_one_destination(prefix: str) -> None:
    world, elsewhere = World(), job_directory(OTHER_JOB, prefix)
    ask(world, FIRST)
    ask(world, elsewhere)
    for directory in (FIRST, elsewhere):
        world.run(directory)
        assert ended(world, directory) == COMMITTED


@pytest.mark.parametrize("key", ["x" * 1024, "語" * 1024, '"\\\n\x01' * 256, "a/../b", " "])
def test_i11_a_key_is_any_text(key: str) -> None:
    world = World()
    for directory in (FIRST, SECOND):
        ask(world, directory, key=key)
        world.run(directory)
    assert [ended(world, directory) for directory in (FIRST, SECOND)] == [COMMITTED, ALREADY]


# A key that nobody has got


def test_i11_the_key_of_a_job_that_was_refused_is_free() -> None:
    world = World()
    ask(world, FIRST, conditions=Conditions(min_rows=10**9))
    ask(world, SECOND)
    world.run(FIRST)
    assert ended(world, FIRST) == (Outcome.ABORTED, "CONDITION_FAILED")
    assert NOTE not in world.all_keys()
    world.run(SECOND)
    assert ended(world, SECOND) == COMMITTED
    assert world.json(NOTE)["jobId"] == OTHER_JOB


@pytest.mark.parametrize("lost", [False, True], ids=["the ledger knows", "the ledger is lost"])
def test_i11_the_key_of_a_job_that_was_rolled_back_is_free(lost: bool) -> None:
    world = World()
    ask(world, FIRST)
    ask(world, SECOND)
    world.lose_after_decision(f"sales/part-{JOB}", slice(1))
    world.run(FIRST)
    assert ended(world, FIRST)[0] is Outcome.ROLLED_BACK
    assert world.json(NOTE)["jobId"] == JOB
    if lost:
        forget(world)
    world.run(SECOND)
    assert ended(world, SECOND) == COMMITTED
    assert world.json(NOTE)["jobId"] == OTHER_JOB
    assert list(world.visible().values()) == [OTHER_JOB.encode()]


def test_i11_the_key_of_a_job_that_died_before_its_decision_is_free_when_it_is_dead() -> None:
    world = World(plan=FaultPlan().crash_before("decide"))
    ask(world, FIRST)
    ask(world, SECOND)
    with pytest.raises(Crash):
        world.run(FIRST)
    assert world.json(NOTE)["jobId"] == JOB
    run_execution(world.ports, SECOND, pause=lambda: world.clock.advance(HOLDER_SECONDS / 2))
    world.run(FIRST, "execution-2")
    assert ended(world, FIRST) == (Outcome.ABORTED, "STALLED")
    assert ended(world, SECOND) == COMMITTED
    assert list(world.visible().values()) == [OTHER_JOB.encode()]


@pytest.mark.parametrize("left", [False, True], ids=["first note", "over one that is left"])
def test_i11_a_job_that_slept_before_it_put_its_note_puts_it_over_nobody_elses(left: bool) -> None:
    world = World()
    ask(world, FIRST)
    ask(world, SECOND)
    if left:
        third = "0b6f6f0e-0000-4000-8000-00000000000a"  # which died, and of which nothing is there
        world.store.put(BUCKET, NOTE, dump({"version": 1, "key": KEY, "jobId": third}))

    def sleeps() -> None:
        world.clock.advance(HOLDER_SECONDS + 1)
        world.run(SECOND)

    world.plan.run_before("put", sleeps, where=lambda call: call.key == NOTE)
    assert world.run(FIRST)[-1] == "Superseded"
    world.run(FIRST, "execution-2")
    assert ended(world, SECOND) == COMMITTED
    assert ended(world, FIRST) == (Outcome.ABORTED, "STALLED")
    assert world.json(NOTE)["jobId"] == OTHER_JOB


# The note


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"version":1,"key":"orders 2026-11-21","jobId":"../x"}',
        b'{"version":1,"key":"orders 2026-11-21"}',
        dump({"version": 1, "key": "another", "jobId": OTHER_JOB}),
        b'{"version":1,"key":"' + b"x" * 20_000 + b'"}',
    ],
    ids=["empty", "no text", "no object", "bad id", "no id", "another key", "too long"],
)
def test_i11_a_note_that_cannot_be_read_refuses_the_job_and_stays(body: bytes) -> None:
    """Nobody knows whether the key is taken: the message says where to look."""
    world = World()
    world.store.put(BUCKET, NOTE, body)
    ask(world, FIRST)
    world.run(FIRST)
    assert ended(world, FIRST) == (Outcome.ABORTED, "BAD_ONCE_NOTE")
    error = world.result(FIRST).error
    assert error is not None
    assert NOTE in error.message
    assert world.visible() == {}
    assert world.store.get(BUCKET, NOTE, max_bytes=10**6).body == body


# Races


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("seed", range(5))
def test_i11_of_jobs_that_race_for_a_key_one_is_committed(seed: int, count: int) -> None:
    world = World()
    directories = [
        job_directory(f"{number:08x}-0000-4000-8000-000000000000") for number in range(count)
    ]
    for directory in directories:
        ask(world, directory)

    def work(directory: JobDirectory) -> None:
        store: Any = Jittered(world.store, f"{seed} {directory.job_id} store")
        ledger: Any = Jittered(world.ledger, f"{seed} {directory.job_id} ledger")
        run_execution(Ports(store, ledger, world.clock), directory, pause=lambda: time.sleep(0.001))

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, directory) for directory in directories]:
            done.result(60)
    check_one_of(world, *directories)


def test_i11_whenever_the_first_one_dies_one_of_two_is_committed() -> None:
    """The second one waits while the first may be decided; then the first is continued."""

    def check(point: int) -> FaultPlan:
        plan = FaultPlan().crash_after(nth=point)
        world = World(plan=plan)
        ask(world, FIRST)
        ask(world, SECOND)
        with suppress(Crash):
            world.run(FIRST)
        world.ports = Ports(world.store, world.ledger, world.clock)
        waits = count(1)

        def pause() -> None:
            if next(waits) == 3:
                world.run(FIRST, "execution-2")

        run_execution(world.ports, SECOND, pause=pause)
        world.run(FIRST, "execution-3")
        check_one_of(world, FIRST, SECOND)
        return plan

    every_point(check, least=30)


# A ledger that forgets


@pytest.mark.parametrize("retained", [True, False], ids=["directory kept", "directory gone"])
def test_i11_a_key_outlives_the_ledgers_time_to_live(retained: bool) -> None:
    world = World()
    ask(world, FIRST)
    world.run(FIRST)
    forget(world)
    if not retained:
        for key in world.all_keys(FIRST.prefix):
            world.store.delete(BUCKET, key)
    ask(world, SECOND)
    world.run(SECOND)
    assert ended(world, SECOND) == ALREADY
    assert list(world.visible().values()) == [JOB.encode()]


def test_a_key_that_is_used_for_other_data_is_said_to_be() -> None:
    world = World()
    ask(world, FIRST)
    world.run(FIRST)
    world.open(SECOND, idempotency_key=KEY)
    files = {f"part-{SECOND.job_id}.csv": b"more rows"}
    world.request(SECOND, world.attempt(SECOND, "t", files=files))
    world.run(SECOND)
    error = world.result(SECOND).error
    assert error is not None
    assert error.message.endswith(
        f"was committed by job {FIRST.job_id}; this job adds nothing, though it has 9 rows and that"
        " one 36: is the key of other data?"
    )
