"""The fault plan: it strikes where a rule says, and records the calls."""

from __future__ import annotations

import pytest

from s3commit.core.model.errors import TransientError
from s3commit.core.model.locks import Lock
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import MemoryLedger, MemoryObjectStore


def a_store() -> MemoryObjectStore:
    return MemoryObjectStore("lake")


def test_without_rules_nothing_strikes_and_all_is_counted() -> None:
    plan = FaultPlan()
    store, ledger = plan.wrap(a_store()), plan.wrap(MemoryLedger())

    store.put("lake", "a", b"1")
    store.put("lake", key="b", body=b"2")
    assert [line.key for line in store.list("lake", "")] == ["a", "b"]
    ledger.unlock(Lock("node", "job-1"))

    assert plan.counts() == {"list": 1, "put": 2, "unlock": 1}
    assert (plan.count(), plan.count("put"), plan.count("get")) == (4, 2, 0)
    assert [(call.number, call.verb, call.key) for call in plan.calls] == [
        (1, "put", "a"),
        (2, "put", "b"),
        (3, "list", ""),
        (4, "unlock", ""),
    ]
    assert plan.calls[1].arguments["body"] == b"2"
    assert plan.fired == []


def test_a_failure_comes_instead_of_the_nth_call() -> None:
    plan = FaultPlan().fail("put", TransientError("503"), nth=2)
    store = plan.wrap(a_store())

    store.put("lake", "a", b"")
    with pytest.raises(TransientError, match="503"):
        store.put("lake", "b", b"")
    assert store.head("lake", "b") is None
    store.put("lake", "b", b"")

    assert [call.key for call in plan.fired] == ["b"]


def test_a_crash_after_a_call_leaves_it_done_and_no_handler_stops_it() -> None:
    store = a_store()

    def careless() -> None:
        try:
            FaultPlan().crash_after("put").wrap(store).put("lake", "a", b"")
        except Exception as error:
            raise AssertionError("a dead process handled an error") from error

    with pytest.raises(Crash, match="put a"):
        careless()
    assert store.head("lake", "a") is not None


def test_a_lost_response_is_an_error_after_the_deed() -> None:
    store = a_store()
    wrapped = FaultPlan().lose_response("put").wrap(store)

    with pytest.raises(TransientError):
        wrapped.put("lake", "a", b"")

    assert store.head("lake", "a") is not None


def test_another_process_may_get_in_between() -> None:
    store = a_store()
    plan = FaultPlan()
    wrapped = plan.wrap(store)
    plan.run_before("put", lambda: store.put("lake", "early", b""))
    plan.run_after("put", lambda: store.delete("lake", "late"))

    wrapped.put("lake", "late", b"")

    assert [line.key for line in store.list("lake", "")] == ["early"]
