"""The ledger's locks: what every implementation of them does."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.ledger import Ledger
from s3commit.core.locks import COMPATIBLE, LockMode, LockRecord, Waiting, ask, let_go
from tests.contract.conftest import THREADS, at_once
from tests.contract.locking import MOMENT, give_back, take

NODE = "lake/table/"
LATER = "2026-11-21T22:00:05.000Z"
MANY = 16
PATIENCE = 60  # seconds


def test_a_node_that_nobody_asked_for_is_free(ledger: Ledger) -> None:
    assert ledger.lock(NODE) == LockRecord(NODE)
    assert ledger.lock(NODE).empty


@pytest.mark.parametrize("mode", LockMode)
def test_a_lock_is_read_as_it_was_put(ledger: Ledger, mode: LockMode) -> None:
    record = LockRecord(
        NODE,
        holders={"job-1": mode, "job-2": LockMode.INTENT_SHARED},
        waiting={"job-3": Waiting(mode, MOMENT, LATER)},
    )

    assert ledger.put_lock(record)

    assert ledger.lock(NODE) == replace(record, version=1)


def test_each_change_is_one_version_on(ledger: Ledger) -> None:
    for version in range(4):
        record = ledger.lock(NODE)
        assert record.version == version
        assert ledger.put_lock(replace(record, holders={f"job-{version}": LockMode.SHARED}))

    assert ledger.lock(NODE).holders == {"job-3": LockMode.SHARED}


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_change_of_another_version_is_refused_and_changes_nothing(
    ledger: Ledger, version: int
) -> None:
    take(ledger, NODE, "job-1", LockMode.SHARED)
    take(ledger, NODE, "job-2", LockMode.SHARED)
    before = ledger.lock(NODE)
    assert before.version == 2

    assert not ledger.put_lock(LockRecord(NODE, version, {"late": LockMode.EXCLUSIVE}))

    assert ledger.lock(NODE) == before


def test_i6_a_record_read_before_the_lock_got_free_is_stale_for_ever(ledger: Ledger) -> None:
    """Else who read it, and was slow, would bring back a holder that has let go."""
    take(ledger, NODE, "job-1", LockMode.SHARED)
    seen = ledger.lock(NODE)
    give_back(ledger, NODE, "job-1")
    assert ledger.lock(NODE).empty

    slow, _ = ask(seen, "slow", LockMode.SHARED, since=MOMENT, now=MOMENT)
    assert not ledger.put_lock(slow)
    assert take(ledger, NODE, "job-2", LockMode.EXCLUSIVE)
    assert not ledger.put_lock(slow)
    assert ledger.lock(NODE).holders == {"job-2": LockMode.EXCLUSIVE}


def test_an_empty_record_may_be_put_where_there_is_none(ledger: Ledger) -> None:
    assert ledger.put_lock(let_go(ledger.lock(NODE), "job-1"))

    assert ledger.lock(NODE).empty
    assert take(ledger, NODE, "job-2", LockMode.EXCLUSIVE)


def test_a_prefix_of_a_name_is_another_node(ledger: Ledger) -> None:
    assert take(ledger, "lake/data1/", "one", LockMode.EXCLUSIVE)

    assert take(ledger, "lake/data10/", "two", LockMode.EXCLUSIVE)
    assert take(ledger, "lake/", "three", LockMode.EXCLUSIVE)


@pytest.mark.parametrize(
    "node",
    [
        "lake/table/dt=2026-11-21/länd=語/",
        "lake/a b+c%20/",
        "lake/table/.",
        f"lake/table/?once={'0f' * 32}",
        "lake/" + "x" * 1000 + "/",
    ],
)
def test_a_node_has_whatever_name_a_prefix_may_have(ledger: Ledger, node: str) -> None:
    assert take(ledger, node, "one", LockMode.EXCLUSIVE)

    assert ledger.lock(node) == LockRecord(node, 1, {"one": LockMode.EXCLUSIVE})


def test_hundreds_of_jobs_share_a_node(ledger: Ledger) -> None:
    holders = {
        f"{number:08d}-0000-4000-8000-000000000000": LockMode.SHARED for number in range(300)
    }

    assert ledger.put_lock(LockRecord(NODE, holders=holders))

    assert ledger.lock(NODE).holders == holders


def test_of_changes_at_once_one_stands(ledger: Ledger) -> None:
    for version in range(5):
        record = replace(ledger.lock(NODE), holders={})
        changes = [
            replace(record, holders={f"job-{number}": LockMode.EXCLUSIVE})
            for number in range(THREADS)
        ]

        outcomes = at_once([partial(ledger.put_lock, change) for change in changes])

        assert sorted(outcomes, key=bool) == [False] * (THREADS - 1) + [True]
        assert ledger.lock(NODE) == replace(changes[outcomes.index(True)], version=version + 1)


def test_i6_who_ask_at_once_hold_it_only_side_by_side(ledger: Ledger) -> None:
    """Sixteen jobs in all modes: each holds the node once, never beside one it may not be beside.

    Whoever must wait asks again as soon as another lets go.
    """
    modes = {f"job-{number:02d}": list(LockMode)[number % 4] for number in range(MANY)}
    changed = threading.Condition()
    inside: dict[str, LockMode] = {}
    releases = 0

    def hold_once(job_id: str) -> None:
        nonlocal releases
        mode = modes[job_id]
        while True:
            with changed:
                before = releases
            if take(ledger, NODE, job_id, mode, since=f"2026-11-21T21:59:{job_id[4:]}.000Z"):
                break
            with changed:
                assert changed.wait_for(lambda: releases > before, PATIENCE)  # noqa: B023
        with changed:
            beside = dict(inside)
            inside[job_id] = mode
        assert [other for other, held in beside.items() if held not in COMPATIBLE[mode]] == []
        assert ledger.lock(NODE).holders[job_id] is mode
        with changed:
            del inside[job_id]
        give_back(ledger, NODE, job_id)
        with changed:
            releases += 1
            changed.notify_all()

    assert at_once([partial(hold_once, job_id) for job_id in modes]) == [None] * MANY
    assert ledger.lock(NODE).empty


def test_i6_no_change_is_lost_among_many(ledger: Ledger) -> None:
    jobs = [f"job-{number}" for number in range(MANY)]

    outcomes = at_once([partial(take, ledger, NODE, job, LockMode.SHARED) for job in jobs])

    assert outcomes == [True] * MANY
    record = ledger.lock(NODE)
    assert record.version == MANY
    assert record.holders == dict.fromkeys(jobs, LockMode.SHARED)
    assert at_once([partial(give_back, ledger, NODE, job) for job in jobs]) == [None] * MANY
    assert ledger.lock(NODE).empty


NODES = [f"lake/table/dt={number}/" for number in range(5)]


def all_of(job_id: str, version: int = 0) -> list[LockRecord]:
    return [LockRecord(node, version, {job_id: LockMode.EXCLUSIVE}) for node in NODES]


def test_locks_are_put_all_together(ledger: Ledger) -> None:
    assert ledger.put_locks(all_of("job-1"))

    assert [ledger.lock(node) for node in NODES] == all_of("job-1", 1)


@pytest.mark.parametrize("count", [1, 98])
def test_one_lock_and_as_many_as_a_job_may_hold_are_put(ledger: Ledger, count: int) -> None:
    records = [LockRecord(f"lake/{number}/", 0, {"j": LockMode.SHARED}) for number in range(count)]

    assert ledger.put_locks(records)

    assert [ledger.lock(record.node).version for record in records] == [1] * count


@pytest.mark.parametrize("other", [0, 2, 4])
def test_i6_if_one_lock_was_changed_none_is_put(ledger: Ledger, other: int) -> None:
    take(ledger, NODES[other], "another", LockMode.SHARED)

    assert not ledger.put_locks(all_of("job-1"))

    holders = [set(ledger.lock(node).holders) for node in NODES]
    assert holders == [{"another"} if index == other else set() for index in range(5)]


def test_i6_of_who_take_several_locks_at_once_one_gets_all_of_them(ledger: Ledger) -> None:
    for version in range(5):
        jobs = [f"job-{number}" for number in range(THREADS)]

        outcomes = at_once([partial(ledger.put_locks, all_of(job, version)) for job in jobs])

        assert sorted(outcomes, key=bool) == [False] * (THREADS - 1) + [True]
        winner = jobs[outcomes.index(True)]
        assert [set(ledger.lock(node).holders) for node in NODES] == [{winner}] * len(NODES)
