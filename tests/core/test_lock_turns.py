"""How a job gets what it claims: it enters, looks, holds, or is pushed back (I6)."""

from __future__ import annotations

import pytest

from s3commit.core.formats.ticket import Ticket
from s3commit.core.job import claims as rivals
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict
from s3commit.core.model.limits import (
    LONGEST_WAIT,
    MAX_WAIT_SECONDS,
    MAX_WAITING,
    SHORTEST_WAIT,
    WAITER_REFRESH_SECONDS,
    WAITER_SECONDS,
)
from s3commit.core.model.locks import (
    Claim,
)
from s3commit.core.model.record import Stage, Turn
from s3commit.core.ports.ledger import LostRaceError
from tests.core.lock_crowd import JOB_ID, NOW, Crowd, X, at

# How a job gets what it claims


def test_a_job_alone_enters_looks_and_holds() -> None:
    crowd = Crowd()
    job = crowd.new(1)
    ticket = crowd.ask(job)
    assert (ticket.acquired, ticket.epoch) == (True, 2)
    assert crowd.record(job).turn == Turn(Stage.HELD, NOW, 2)
    assert crowd.plan.counts() == {
        "job": 1, "take_turn": 2, "put_claim": 1, "claims": 2,
    }  # fmt: skip
    assert crowd.ask(job).acquired
    assert crowd.plan.count("take_turn") == 2


def test_i6_of_two_that_enter_at_once_the_earlier_holds_and_the_later_is_pushed_back() -> None:
    """The later one has looked, and seen nobody, before the earlier one came."""
    crowd = Crowd()
    early, late = crowd.new(1), crowd.new(2)
    crowd.plan.run_before("take_turn", lambda: acquired.append(crowd.ask(early)), nth=2)
    acquired: list[Ticket] = []
    with pytest.raises(LostRaceError):
        crowd.ask(late)
    assert acquired[0].acquired
    assert (crowd.stage(early), crowd.stage(late)) == (Stage.HELD, Stage.WAITING)
    assert not crowd.ask(late).acquired


def test_one_that_died_entering_is_pushed_back_after_a_while() -> None:
    crowd = Crowd()
    dead, other = crowd.new(1), crowd.new(2)
    crowd.put(dead, [Claim("lake/t/", X)], Stage.ENTERING)
    assert not crowd.ask(other).acquired
    crowd.clock.advance(WAITER_SECONDS + 1)
    assert crowd.ask(other).acquired
    assert crowd.record(dead).turn == Turn(Stage.WAITING, NOW, 1)
    assert crowd.record(dead).updated_at == NOW  # no sign of its life


def test_a_pushed_back_job_keeps_its_turn() -> None:
    crowd = Crowd()
    job = crowd.new(5)
    crowd.put(job, [Claim("lake/t/", X)], Stage.WAITING, since=at(-60))
    assert crowd.ask(job).acquired
    assert crowd.record(job).turn == Turn(Stage.HELD, at(-60), 2)


def test_a_job_that_claims_more_than_it_holds_enters_anew_and_keeps_its_claims() -> None:
    """Another execution of it has verified another plan: what was seen before counts no more."""
    crowd = Crowd()
    job = crowd.new(1)
    crowd.put(job, [Claim("lake/t/dt=9/", X)], Stage.HELD)
    assert crowd.ask(job).epoch == 2
    assert crowd.record(job).locks == ("lake/t/", "lake/t/dt=9/")


def test_a_waiting_job_is_noted_as_seen_now_and_then_alone() -> None:
    crowd = Crowd()
    holder, job = crowd.new(1), crowd.new(2)
    crowd.ask(holder)
    crowd.ask(job)
    writes = crowd.plan.count("take_turn")
    for seconds, more in ((1, 0), (WAITER_REFRESH_SECONDS - 2, 0), (1, 1), (1, 1)):
        crowd.clock.advance(seconds)
        crowd.ask(job)
        assert crowd.plan.count("take_turn") == writes + more
    assert crowd.plan.count("put_claim") == 3  # its own, and again when it began to wait


@pytest.mark.parametrize(
    ("waited", "ahead", "pause"),
    [(0, 0, 5), (25, 0, 5), (150, 0, 30), (3599, 0, 60), (0, 3, 15), (0, 80, 60)],
)
def test_who_waits_long_or_behind_many_asks_seldom(waited: int, ahead: int, pause: int) -> None:
    crowd = Crowd()
    job = crowd.new(1)
    crowd.put(job, [Claim("lake/t/", X)], Stage.WAITING, since=at(-waited))
    if not ahead:
        crowd.put("holder", [Claim("lake/t/", X)], Stage.HELD)
    for number in range(ahead):
        crowd.put(f"a{number}", [Claim("lake/t/", X)], Stage.WAITING, since=at(-9999), waits=True)
    assert crowd.ask(job).pause == pause
    assert SHORTEST_WAIT <= pause <= LONGEST_WAIT


def busy(crowd: Crowd, job_id: str) -> str:
    with pytest.raises(JobRefusedError) as refused:
        crowd.ask(job_id)
    assert refused.value.code == "DESTINATION_BUSY"
    return refused.value.message


@pytest.mark.parametrize(
    ("holder", "told"),
    [("sales/t/", True), ("sales/t/deep/er/", True), ("sales/", False), ("elsewhere/", False)],
)
def test_i12_a_result_names_jobs_at_its_own_destination_alone(holder: str, told: bool) -> None:
    """A tenant learns nothing of jobs of others."""
    crowd = Crowd()
    job = crowd.new(1, "sales/t/")
    own = [Claim("lake/sales/t/", X)]
    crowd.put(job, own, Stage.WAITING, since=at(-MAX_WAIT_SECONDS), prefix="sales/t/")
    crowd.put("theirs", own, Stage.HELD, prefix=holder)
    message = busy(crowd, job)
    assert ("theirs" in message) == told
    assert holder in {"sales/t/", "sales/t/deep/er/"} or holder not in message


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
def test_i12_who_comes_behind_a_hundred_is_told_at_once(conflict: Conflict) -> None:
    crowd = Crowd()
    crowd.ask(crowd.new(0))
    for number in range(1, MAX_WAITING + 1):
        assert not crowd.ask(crowd.new(number, conflict=conflict)).acquired
    assert f"{MAX_WAITING} jobs wait" in busy(crowd, crowd.new(500, conflict=conflict))
    assert not crowd.ask(JOB_ID.format(MAX_WAITING)).acquired  # who waits already goes on waiting
    assert crowd.ask(crowd.new(501, "other/", conflict)).acquired


def test_i12_jobs_below_one_subtree_do_not_stop_those_of_another() -> None:
    """4,000 of one tenant's, which one item of DynamoDB would not have held (400 KB)."""
    crowd = Crowd()
    crowd.ask(crowd.new(0, "tenants/a/t/"))
    for number in range(4000):
        own = [Claim(f"lake/tenants/a/t/{number}/", X)]
        crowd.put(f"a{number}", own, Stage.WAITING, prefix=f"tenants/a/t/{number}/", waits=True)
    before = crowd.plan.counts()
    assert crowd.ask(crowd.new(1, "tenants/b/t/")).acquired
    made = {verb: count - before.get(verb, 0) for verb, count in crowd.plan.counts().items()}
    assert (made["job"], made["take_turn"], made["put_claim"]) == (1, 2, 1)


def test_claims_beyond_what_anybody_reads_refuse_the_job_and_hold_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All but one are of a single job: who counted jobs would not see that some are left."""
    monkeypatch.setattr(rivals, "MAX_CLAIMS_READ", 10)
    crowd = Crowd()
    crowd.put("a", [Claim(f"lake/t/{number:02d}/", X) for number in range(11)], Stage.WAITING)
    crowd.put("b", [Claim("lake/t/99/", X)], Stage.HELD)
    job = crowd.new(1)
    assert "10 claims at most" in busy(crowd, job)
    assert crowd.stage(job) is not Stage.HELD
