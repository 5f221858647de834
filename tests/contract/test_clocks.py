"""A7: two functions' clocks differ by minutes, and what has just ended is found all the same."""

from __future__ import annotations

import pytest

from s3commit.core.model.limits import APPEND_SECONDS, FUNCTION_CLOCKS
from s3commit.core.model.locks import ENDED_SECONDS, TEN_MINUTES, Append
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import shifted
from s3commit.core.ports.ledger import Ledger
from tests.contract.ledger_jobs import NODE, T0, bring_to, ref_of
from tests.fakes.clock import ManualClock


def listed_at(ledger: Ledger, now: str) -> list[Append]:
    """The appends, as a function reads them whose clock says ``now``."""
    ledger._clock = ManualClock(now)  # type: ignore[attr-defined]
    return list(ledger.appends(NODE, below=False))


@pytest.mark.parametrize("apart", [-FUNCTION_CLOCKS, 0, FUNCTION_CLOCKS])
@pytest.mark.parametrize("ago", [0, TEN_MINUTES, APPEND_SECONDS])
def test_i6_a7_an_append_that_has_ended_is_found_by_a_function_with_another_clock(
    ledger: Ledger, ago: int, apart: int
) -> None:
    """At any moment of ten minutes, since the partitions of the table are ten minutes."""
    for minute in range(0, TEN_MINUTES // 60, 3):
        job_id, now = f"{minute:08d}-0000-4000-8000-000000000000", shifted(T0, 60 * minute)
        bring_to(ledger, JobState.COMMITTED, job_id, shifted(now, apart - ago))
        assert Append(NODE, ref_of(job_id), ended=True) in listed_at(ledger, now)


@pytest.mark.parametrize("apart", [-1, 1])
def test_an_append_that_has_ended_at_quite_another_time_is_not_read(
    ledger: Ledger, apart: int
) -> None:
    """They are without number, and DynamoDB keeps some of them for days."""
    bring_to(ledger, JobState.COMMITTED, "job-1", T0)
    assert listed_at(ledger, shifted(T0, apart * (ENDED_SECONDS + TEN_MINUTES))) == []
