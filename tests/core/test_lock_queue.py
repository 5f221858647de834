"""Many jobs that wait: what they read, whom they let pass, and any order of them (I6)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job import claims as rivals
from s3commit.core.model.errors import TransientError
from s3commit.core.model.job import Conflict
from s3commit.core.model.limits import (
    SHORTEST_WAIT,
    WAITER_SECONDS,
)
from s3commit.core.model.locks import (
    Claim,
)
from s3commit.core.model.record import Stage, Turn
from s3commit.core.ports.ledger import LostRaceError
from tests.core.lock_crowd import JOB_ID, NOW, Crowd, S, X, at
from tests.fakes.faults import FaultPlan

# A replace of a directory with a thousand appends below it, and more that keep coming


def appends(crowd: Crowd, count: int, stage: Stage, since: str, first: int = 0) -> list[str]:
    """Jobs that append to a table of their own below ``w/``."""
    refs = []
    for number in range(first, first + count):
        prefix = f"w/t{number}/"
        own = [Claim(f"lake/{prefix}", S)]
        job_id = JOB_ID.format(number)
        crowd.put(
            job_id,
            own,
            stage,
            since=since,
            seen=NOW,
            conflict=Conflict.APPEND,
            prefix=prefix,
            waits=stage is Stage.WAITING,
        )
        refs.append(job_id)
    return refs


def test_a_replace_gets_its_turn_though_more_appends_wait_behind_it_than_anybody_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rivals, "MAX_CLAIMS_READ", 10)
    crowd = Crowd()
    holders = appends(crowd, 10, Stage.HELD, at(-60))
    replacing = crowd.new(900, "w/")
    told = crowd.ask(replacing)
    assert not told.acquired
    appends(crowd, 200, Stage.WAITING, at(1), first=100)
    crowd.clock.advance(5)
    told = crowd.ask(replacing, told)
    assert not told.acquired
    for holder in holders:
        crowd.end(holder)
    before = crowd.plan.count("job")
    assert crowd.ask(replacing, told).acquired
    assert crowd.plan.count("job") <= before + 2  # its own, and the one that it waited for


def test_who_waits_for_one_that_is_still_there_reads_its_record_and_no_claims() -> None:
    crowd = Crowd()
    holder = crowd.new(1, "w/")
    crowd.ask(holder)
    waiting = crowd.new(2, "w/t/", Conflict.APPEND)
    told = crowd.ask(waiting)
    assert told.behind == crowd.refs[holder]
    before = crowd.plan.counts()
    crowd.clock.advance(told.pause)
    told = crowd.ask(waiting, told)
    assert crowd.plan.count("claims") == before["claims"]
    assert crowd.plan.count("job") == before["job"] + 2
    crowd.end(holder)
    assert crowd.ask(waiting, told).acquired


def test_who_waits_behind_many_asks_no_sooner_for_looking_at_one_alone() -> None:
    crowd = Crowd()
    crowd.put("holder", [Claim("lake/t/", X)], Stage.HELD)
    for number in range(6):
        crowd.put(f"w{number}", [Claim("lake/t/", X)], Stage.WAITING, since=at(-9), waits=True)
    job = crowd.new(1)
    told = crowd.ask(job)
    assert told.pause == 6 * SHORTEST_WAIT
    assert crowd.ask(job, told).pause == 6 * SHORTEST_WAIT


def test_i6_a_job_whose_record_was_lost_and_made_anew_is_found_by_its_old_claim() -> None:
    crowd = Crowd()
    holder = crowd.new(1)
    crowd.ask(holder)
    job = crowd.new(2)
    for _ in range(5):
        crowd.ask(job)
    lost = crowd.record(job)
    crowd.end(holder)
    crowd.ledger._jobs[lost.ref] = replace(lost, turn=Turn(), locks=(), generation=9)
    assert crowd.ask(job).acquired
    early = crowd.new(3)
    crowd.put(early, [Claim("lake/t/", X)], Stage.WAITING, since=at(-9))
    assert not crowd.ask(early).acquired


# Jobs that come, ask, stop anywhere, and go on


NODES = ["a/", "a/b/", "a/b/c/", "b/"]
WAYS = [Conflict.APPEND, Conflict.REPLACE]


@dataclass
class Asker:
    """A job that asks every few seconds until it holds."""

    job_id: str
    conflict: Conflict
    prefix: str
    alive: bool = True


class Queueing(RuleBasedStateMachine):
    """Jobs that come, ask, work, end, and die waiting or entering, in any order."""

    @initialize()
    def start(self) -> None:
        self.crowd = Crowd()
        self.jobs: dict[str, Asker] = {}
        self.serial = itertools.count(1)

    @rule(
        prefix=st.sampled_from(NODES),
        conflict=st.sampled_from(WAYS),
        pause=st.integers(0, 3),
        dies_after=st.integers(0, 12),
    )
    def come(self, prefix: str, conflict: Conflict, pause: int, dies_after: int) -> None:
        self.crowd.clock.advance(pause)
        if len(self.jobs) < 8:
            job_id = self.crowd.new(next(self.serial), prefix, conflict)
            self.jobs[job_id] = Asker(job_id, conflict, prefix)
            self._ask(job_id, dies_after)

    @precondition(lambda self: self._waiting())
    @rule(data=st.data(), pause=st.integers(0, 30))
    def asks_again(self, data: st.DataObject, pause: int) -> None:
        self.crowd.clock.advance(pause)
        self._ask(data.draw(st.sampled_from(sorted(self._waiting()))))

    @precondition(lambda self: len(self._waiting()) > 1)
    @rule(data=st.data(), call=st.integers(0, 12))
    def asks_while_another_does(self, data: st.DataObject, call: int) -> None:
        one, other = data.draw(st.permutations(sorted(self._waiting())))[:2]
        self._ask(one, call, lambda: self._ask(other))

    @precondition(lambda self: self._holding())
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        self._end(data.draw(st.sampled_from(sorted(self._holding()))))

    @precondition(lambda self: self._waiting())
    @rule()
    def holders_drain_and_the_longest_waiting_job_is_served(self) -> None:
        """Whoever has come since then, and even if it is asked for last (no starvation)."""
        self._all_ask_meanwhile()
        for name in list(self._holding()):
            self._end(name)
        if not self._waiting():
            return
        oldest = min(self._waiting(), key=lambda name: (self._since(name), name))
        for name in sorted(self._waiting(), key=lambda name: name == oldest):
            self._ask(name)
            if name != oldest and self.crowd.stage(name) is Stage.HELD:
                assert not self._conflict(name, oldest), f"{name} was served before {oldest}"
        assert self.crowd.stage(oldest) is Stage.HELD

    @invariant()
    def nobody_holds_beside_one_that_it_may_not_be_beside(self) -> None:
        holding = self._holding() if hasattr(self, "jobs") else []
        for one, other in itertools.combinations(holding, 2):
            assert not self._conflict(one, other)

    def _conflict(self, one: str, other: str) -> bool:
        first, second = self.jobs[one], self.jobs[other]
        nested = first.prefix.startswith(second.prefix) or second.prefix.startswith(first.prefix)
        return nested and {first.conflict, second.conflict} != {Conflict.APPEND}

    def _since(self, name: str) -> str:
        return self.crowd.record(name).turn.since

    def _all_ask_meanwhile(self) -> None:
        """As time passes the living ask, so that the dead alone are forgotten."""
        for _ in range(5):
            self.crowd.clock.advance(WAITER_SECONDS // 4)
            for name in sorted(self._waiting()):
                self._ask(name)

    def _ask(self, name: str, call: int = 0, strike: Callable[[], object] | None = None) -> None:
        """Ask; before its n-th call it dies, or what is given happens first."""
        plan = FaultPlan()
        crowd = self.crowd
        if call and strike is not None:
            plan.run_before(None, strike, nth=call)
        elif call:
            plan.fail(None, TransientError("it dies here"), nth=call)
        ports = replace(crowd.ports, ledger=plan.wrap(crowd.ledger))
        record = crowd.record(name)
        ticket = Ticket(name, "lake", JobDirectory.of(record).prefix, execution=name).after(record)
        try:
            acquire_destination(ports, ticket)
        except LostRaceError:
            pass  # pushed back: it asks again
        except TransientError:
            self.jobs[name].alive = False

    def _end(self, name: str) -> None:
        self.crowd.end(name)
        del self.jobs[name]

    def _waiting(self) -> list[str]:
        jobs = getattr(self, "jobs", {})
        held = Stage.HELD
        return [name for name, job in jobs.items() if job.alive and self.crowd.stage(name) != held]

    def _holding(self) -> list[str]:
        return [name for name in self.jobs if self.crowd.stage(name) is Stage.HELD]


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
