"""DynamoDB's limits: what every ledger refuses, without changing anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.aws.ledger import DynamoLedger
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Failure
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger
from tests.contract.ledger_jobs import PLAN, T1, a_job, bring_to, ref_of

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
        ledger.note(REF, generation=0, now=T1, plan=replace(PLAN, partitions="p" * TOO_LARGE))
    with pytest.raises(InvalidInputError):
        ledger.take_turn(
            REF,
            generation=0,
            now=T1,
            before=before.turn,
            after=before.turn,
            locks=["n" * TOO_LARGE],
        )
    assert ledger.job(REF) == before
    with pytest.raises(InvalidInputError):
        ledger.advance(
            REF,
            source=JobState.SEALED,
            target=JobState.ABORTING,
            generation=0,
            now=T1,
            failure=failure,
        )

    if isinstance(ledger, DynamoLedger):  # moto has carried out half of the update by then
        before = replace(before, state=JobState.ABORTING)
    assert ledger.job(REF) == before


def test_a_node_has_at_most_1024_bytes_with_its_job(ledger: Ledger) -> None:
    room = SORT_KEY - len(f"lake/t//{REF}")
    longest = Claimed(Claim(f"lake/t/{'n' * (room - 1)}/", LockMode.SHARED), REF)
    assert room - 1 > 0
    ledger.put_claim(longest)

    with pytest.raises(InvalidInputError):
        ledger.put_claim(Claimed(Claim(f"lake/t/{'n' * room}/", LockMode.SHARED), REF))

    assert list(ledger.claims(Claim("lake/t/", LockMode.SHARED), below=True)) == [longest]
