"""The ledger: what every implementation of it does, and refuses."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from s3commit.aws.ledger import DynamoLedger
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.limits import MAX_ITEMS, MAX_NODES
from s3commit.core.model.locks import Lock, nodes_above
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import JobRecord, Waits
from s3commit.core.model.states import ENDED, TRANSITIONS, IllegalTransitionError, JobState
from s3commit.core.ports.ledger import Ledger, LostRaceError
from tests.contract.conftest import THREADS, at_once, winners
from tests.contract.ledger_jobs import (
    KEY,
    NODE,
    OTHER_PLAN,
    OTHER_REPLACED,
    PLAN,
    T0,
    T1,
    a_job,
    abort,
    advance,
    bring_to,
    decided,
    locked,
    lost,
    ref_of,
)

T2 = "2026-11-21T22:00:02.000Z"
STEPS = [
    (source, target)
    for source, targets in TRANSITIONS.items()
    for target in sorted(targets)
    if target is not JobState.COMMITTING
]


def test_of_openings_at_once_one_stands(ledger: Ledger) -> None:
    records = [a_job(execution=str(number)) for number in range(THREADS)]

    outcomes = at_once([partial(ledger.open_job, record) for record in records])

    assert set(outcomes) == {ledger.job(ref_of("job-1"))}


@pytest.mark.parametrize(("source", "target"), STEPS)
def test_each_transition_is_taken(ledger: Ledger, source: JobState, target: JobState) -> None:
    before = bring_to(ledger, source)

    after = advance(ledger, source, target)

    assert after == ledger.job(ref_of("job-1"))
    assert after == replace(
        before, state=target, updated_at=T1, finished_at=T1 if target in ENDED else None
    )


@pytest.mark.parametrize("source", JobState)
def test_another_transition_is_illegal_and_changes_nothing(
    ledger: Ledger, source: JobState
) -> None:
    before = bring_to(ledger, source)
    for target in JobState:
        if (source, target) not in STEPS:
            with pytest.raises(IllegalTransitionError):
                advance(ledger, source, target)

    assert ledger.job(ref_of("job-1")) == before


def test_a_transition_stores_its_failure(ledger: Ledger) -> None:
    bring_to(ledger, JobState.SEALED)
    failure = Failure("REFUSED", "for a reason")

    after = advance(ledger, JobState.SEALED, JobState.ABORTING, failure=failure)
    ended = advance(ledger, JobState.ABORTING, JobState.ABORTED, now=T2)

    assert after.failure == failure
    assert (ended.failure, ended.finished_at) == (failure, T2)


def test_a_transition_of_no_job_is_lost_to_nobody(ledger: Ledger) -> None:
    assert lost(lambda: advance(ledger, JobState.OPEN, JobState.SEALED, job_id="nobody")) is None
    assert ledger.job(ref_of("nobody")) is None
    assert list(ledger.attempts(ref_of("nobody"))) == []
    assert lost(lambda: ledger.take_over(a_job("nobody"), execution="e", now=T1)) is None
    assert lost(lambda: ledger.note(a_job("nobody"), plan=PLAN, now=T1)) is None
    assert lost(lambda: decided(ledger, "nobody")) is None


Racer = Callable[[Ledger, int], JobRecord]


def refuses(ledger: Ledger, number: int) -> JobRecord:
    failure = Failure("C", str(number))
    return advance(ledger, JobState.SEALED, JobState.ABORTING, failure=failure)


def takes_over(ledger: Ledger, number: int) -> JobRecord:
    return ledger.take_over(a_job(), execution=str(number), now=T1)


def decides_or_aborts(ledger: Ledger, number: int) -> JobRecord:
    return abort(ledger) if number % 2 else decided(ledger)


@pytest.mark.parametrize("race", [refuses, takes_over, decides_or_aborts])
def test_of_changes_at_once_one_is_taken(ledger: Ledger, race: Racer) -> None:
    bring_to(ledger, JobState.SEALED)
    ledger.note(a_job(), plan=PLAN, now=T0)

    outcomes = at_once([partial(race, ledger, number) for number in range(THREADS)])

    (won,) = winners(outcomes, lose_by=LostRaceError)
    assert won.generation == (race is takes_over)
    assert ledger.job(ref_of("job-1")) == won


@pytest.mark.parametrize("state", JobState)
def test_a_take_over_raises_the_generation(ledger: Ledger, state: JobState) -> None:
    before = bring_to(ledger, state)

    after = ledger.take_over(a_job(), execution="second", now=T1)

    assert after == ledger.job(ref_of("job-1"))
    assert after == replace(before, generation=1, execution="second", updated_at=T1)


def test_who_was_taken_over_writes_nothing_more(ledger: Ledger) -> None:
    """The fence: an execution that wakes up late has an old generation."""
    bring_to(ledger, JobState.SEALED)
    ledger.note(a_job(), plan=PLAN, now=T0)
    stands = ledger.take_over(a_job(), execution="second", now=T1)

    for call in (
        lambda: ledger.take_over(a_job(), execution="first", now=T2),
        lambda: ledger.note(a_job(), plan=OTHER_PLAN, now=T2),
        lambda: locked(ledger, NODE),
        lambda: decided(ledger, now=T2),
        lambda: abort(ledger),
    ):
        assert lost(call) == stands
    assert ledger.job(ref_of("job-1")) == stands
    assert decided(ledger, generation=1, now=T2).state is JobState.COMMITTING


def test_a_transition_may_take_the_job_over_by_the_same_write(ledger: Ledger) -> None:
    before = bring_to(ledger, JobState.OPEN)
    requested: Any = {"requested_at": T0, "requested_by": "AWS:AROAEXAMPLEID:etl"}
    seal = partial(ledger.advance, a_job(), JobState.SEALED, now=T1, **requested)

    after = seal(execution="first")

    assert after == ledger.job(ref_of("job-1"))
    taken = replace(before, state=JobState.SEALED, generation=1, execution="first", updated_at=T1)
    assert after == replace(taken, **requested)
    assert lost(partial(seal, execution="second")) == after
    assert lost(lambda: ledger.take_over(a_job(), execution="second", now=T2)) == after


def test_a_decision_may_note_the_plan_by_the_same_write(ledger: Ledger) -> None:
    before = bring_to(ledger, JobState.SEALED)
    decide = partial(ledger.decide, a_job(plan=PLAN), now=T1, plan=PLAN)

    after = decide()

    planned = replace(before, plan=PLAN, state=JobState.COMMITTING)
    assert after == replace(planned, decided_at=T1, updated_at=T1) == ledger.job(ref_of("job-1"))
    assert lost(decide) == after


def test_a_job_is_read_as_it_was_opened(ledger: Ledger) -> None:
    full = a_job(
        conflict=Conflict.REPLACE,
        scope=Scope.PARTITION,
        partition_by=("dt", "ländle"),
        idempotency_key="query:7",
        plan=OTHER_PLAN,
        replaced=OTHER_REPLACED,
        locks=(NODE, "lake/täble/"),
        waits=Waits(T1, ("job-2-0f", "job-3-0f")),
        failure=Failure("CODE", "why, in words"),
        decided_at=T1,
        finished_at=T2,
        execution="arn:aws:states:eu-central-1:000000000000:execution:m:job-1",
    )
    assert ledger.open_job(full) == full
    assert ledger.open_job(a_job("job-2")) == a_job("job-2")

    assert ledger.job(ref_of("job-1")) == full
    assert ledger.job(ref_of("job-2")) == a_job("job-2")


# DynamoDB's limits: what every ledger refuses, without changing anything


# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
TOO_LARGE = 400 * 1024
LARGE = TOO_LARGE - 20_000  # moto draws the line some kilobytes lower than DynamoDB
SORT_KEY = 1024
REF = ref_of("job-1")


@pytest.mark.parametrize("character", ["c", "語"])
def test_a_job_has_at_most_400_kilobytes(ledger: Ledger, character: str) -> None:
    """Characters count by their bytes."""
    width = len(character.encode())
    large = a_job("large", partition_by=(character * (LARGE // width),))
    assert ledger.open_job(large) == large

    with pytest.raises(InvalidInputError) as caught:
        ledger.open_job(a_job("larger", partition_by=(character * (TOO_LARGE // width + 1),)))

    assert caught.value.code == "INVALID_INPUT"
    assert ledger.job(ref_of("large")) == large
    assert ledger.job(ref_of("larger")) is None


def test_a_job_that_would_grow_too_large_stays_as_it_is(ledger: Ledger) -> None:
    before = bring_to(ledger, JobState.SEALED)
    failure = Failure("CODE", "m" * TOO_LARGE)

    with pytest.raises(InvalidInputError):
        ledger.note(before, now=T1, plan=replace(PLAN, partitions="p" * TOO_LARGE))
    if isinstance(ledger, DynamoLedger):  # moto has carried out half of the update by then
        before = replace(before, updated_at=T1)
    assert ledger.job(REF) == before
    with pytest.raises(InvalidInputError):
        advance(ledger, JobState.SEALED, JobState.ABORTING, failure=failure)
    if isinstance(ledger, DynamoLedger):
        before = replace(before, state=JobState.ABORTING)
    assert ledger.job(REF) == before


def test_a_node_has_at_most_1024_bytes(ledger: Ledger) -> None:
    longest = f"lake/t/{'n' * (SORT_KEY - len('lake/t//'))}/"
    before = bring_to(ledger, JobState.SEALED)

    with pytest.raises(InvalidInputError):
        locked(ledger, "lake/t/a/", f"{longest[:-1]}n/")

    assert ledger.job(REF) == before
    assert list(ledger.locks_below("lake/t/")) == []
    locked(ledger, "lake/t/a/", longest)
    assert list(ledger.locks_below("lake/t/")) == [Lock("lake/t/a/", REF), Lock(longest, REF)]


def test_a_transaction_has_at_most_100_items(ledger: Ledger) -> None:
    """The record, the nodes, and the nodes above them."""
    above = f"lake/{'d/' * (MAX_ITEMS - MAX_NODES - 1)}"
    nodes = tuple(f"{above}{number}/" for number in range(MAX_NODES + 1))
    assert len(nodes_above(nodes)) + MAX_NODES + 1 == MAX_ITEMS
    before = bring_to(ledger, JobState.SEALED)

    with pytest.raises(InvalidInputError):
        locked(ledger, *nodes)

    assert ledger.job(REF) == before
    assert list(ledger.locks_below("lake/d/")) == []
    locked(ledger, *nodes[:MAX_NODES])
    assert len(list(ledger.locks_below("lake/d/"))) == MAX_NODES


@pytest.mark.parametrize("state", [JobState.COMMITTED, JobState.ROLLED_BACK])
def test_a_job_with_as_many_locks_and_a_key_ends(ledger: Ledger, state: JobState) -> None:
    nodes = tuple(f"lake/table/{number}/" for number in range(MAX_NODES))

    bring_to(ledger, state, nodes=nodes, idempotency_key=KEY, conflict=Conflict.REPLACE)

    assert ledger.locks(nodes) == []
