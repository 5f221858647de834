"""DynamoDB's limits: what every ledger refuses, without changing anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.aws.ledger import DynamoLedger
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Failure
from s3commit.core.model.limits import MAX_ITEMS, MAX_NODES
from s3commit.core.model.locks import Lock, nodes_above
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger
from tests.contract.ledger_jobs import KEY, PLAN, T1, a_job, advance, bring_to, locked, ref_of

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
ITEM = 400 * 1024
SORT_KEY = 1024

REF = ref_of("job-1")
LARGE = ITEM - 20_000  # moto draws the line some kilobytes lower than DynamoDB
TOO_LARGE = ITEM


def test_a_job_has_at_most_400_kilobytes(ledger: Ledger) -> None:
    large = a_job("large", partition_by=("c" * LARGE,))
    assert ledger.open_job(large) == large

    with pytest.raises(InvalidInputError) as caught:
        ledger.open_job(a_job("larger", partition_by=("c" * TOO_LARGE,)))

    assert caught.value.code == "INVALID_INPUT"
    assert ledger.job(ref_of("large")) == large
    assert ledger.job(ref_of("larger")) is None


def test_characters_count_by_their_bytes(ledger: Ledger) -> None:
    ledger.open_job(a_job("large", partition_by=("語" * (LARGE // 3),)))

    with pytest.raises(InvalidInputError):
        ledger.open_job(a_job("larger", partition_by=("語" * (TOO_LARGE // 3 + 1),)))


def test_a_job_that_would_grow_too_large_stays_as_it_is(ledger: Ledger) -> None:
    before = bring_to(ledger, JobState.SEALED)
    failure = Failure("CODE", "m" * TOO_LARGE)

    with pytest.raises(InvalidInputError):
        ledger.note(before, now=T1, plan=replace(PLAN, partitions="p" * TOO_LARGE))
    assert ledger.job(REF) == before
    with pytest.raises(InvalidInputError):
        advance(ledger, JobState.SEALED, JobState.ABORTING, failure=failure)

    if isinstance(ledger, DynamoLedger):  # moto has carried out half of the update by then
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
