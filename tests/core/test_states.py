"""The table of states: what it forbids raises, and changes nothing."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from s3commit.core.model.record import JobRecord, PlanFacts, Stage
from s3commit.core.model.states import ENDED, TRANSITIONS, IllegalTransitionError, JobState
from s3commit.core.model.states import check_transition as check
from s3commit.core.ports.ledger import LostRaceError
from tests.contract.locking import enter, move
from tests.core.world import job_directory
from tests.fakes.memory import ManualClock, MemoryLedger

PLAN = PlanFacts("0" * 64, 1, 1, 1, 1)
NODE = "lake/sales/"


@pytest.mark.parametrize(("source", "target"), list(product(JobState, JobState)))
def test_only_what_the_table_says_is_allowed(source: JobState, target: JobState) -> None:
    if target in TRANSITIONS[source]:
        check(source, target)
        return
    with pytest.raises(IllegalTransitionError, match=str(source)):
        check(source, target)


def test_every_state_can_be_reached_and_can_end() -> None:
    reached, frontier = {JobState.OPEN}, [JobState.OPEN]
    while frontier:
        for following in TRANSITIONS[frontier.pop()] - reached:
            reached.add(following)
            frontier.append(following)
    assert reached == set(JobState)
    assert {JobState.COMMITTED, JobState.ABORTED, JobState.ROLLED_BACK} == ENDED


class LedgerMachine(RuleBasedStateMachine):
    """Executions of any generation try any transition: only the table's, by the holder, happen."""

    def __init__(self) -> None:
        super().__init__()
        directory = job_directory()
        self.clock = ManualClock(step=1)
        self.ledger = MemoryLedger()
        now = self.clock.now()
        self.ledger.open_job(
            JobRecord(
                directory.job_id,
                directory.destination,
                JobState.OPEN,
                0,
                now,
                now,
            )
        )
        self.job = directory.ref
        self.history = [JobState.OPEN]
        self.held = False

    @property
    def record(self) -> JobRecord:
        record = self.ledger.job(self.job)
        assert record is not None
        return record

    @rule(stale=st.integers(0, 2))
    def take_over(self, stale: int) -> None:
        before = self.record
        try:
            after = self.ledger.take_over(
                self.job, generation=before.generation - stale, execution="e", now=self.clock.now()
            )
        except LostRaceError as lost:
            assert stale or before.state in ENDED
            assert lost.found == before == self.record
        else:
            assert not stale
            assert after.generation == before.generation + 1
            assert after.state is before.state

    @rule(
        move=st.tuples(st.sampled_from(JobState), st.sampled_from(JobState)),
        stale=st.integers(0, 1),
    )
    def advance(self, move: tuple[JobState, JobState], stale: int) -> None:
        source, target = move
        before = self.record
        generation = before.generation - stale
        try:
            after = self.ledger.advance(
                self.job, source=source, target=target, generation=generation, now=self.clock.now()
            )
        except IllegalTransitionError:
            assert target not in TRANSITIONS[source] or target is JobState.COMMITTING
            assert self.record == before
        except LostRaceError as lost:
            assert stale or source is not before.state
            assert lost.found == before == self.record
        else:
            assert not stale
            assert source is before.state
            assert target is not JobState.COMMITTING
            self.history.append(after.state)

    @rule(held=st.booleans())
    def turn(self, held: bool) -> None:
        try:
            entering = enter(self.ledger, self.job, NODE)
            move(self.ledger, entering, Stage.HELD if held else Stage.WAITING)
        except LostRaceError:
            assert self.record.state is not JobState.SEALED
        else:
            self.held = held

    @rule(noted=st.booleans(), stale=st.integers(0, 1))
    def decide(self, noted: bool, stale: int) -> None:
        before = self.record
        try:
            if noted:
                self.ledger.note(
                    self.job, generation=before.generation, plan=PLAN, now=self.clock.now()
                )
            self.ledger.decide(
                self.job,
                generation=before.generation - stale,
                plan=PLAN,
                replaced=None,
                epoch=before.turn.epoch,
                now=self.clock.now(),
            )
        except LostRaceError:
            assert self.record.state is before.state
        else:
            assert self.held
            assert not stale
            assert before.state is JobState.SEALED
            self.history.append(JobState.COMMITTING)

    @invariant()
    def the_history_follows_the_table(self) -> None:
        assert self.record.state is self.history[-1]
        for source, target in zip(self.history, self.history[1:], strict=False):
            assert target in TRANSITIONS[source]


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
