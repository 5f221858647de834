"""The everyday form of ``python -m tests.engines.fuzz``: the same seeds each day."""

from __future__ import annotations

import pytest

from tests.engines.fuzz.targets import read_mutated, run_mutated


@pytest.mark.parametrize("first", range(0, 4000, 500))
def test_i7_changed_documents_are_read_or_refused(first: int) -> None:
    taken = sum(read_mutated(seed) for seed in range(first, first + 500))
    assert 0 < taken < 500, "some are taken, or nothing was tried behind the first check"


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_i12_a_job_of_changed_documents_touches_nothing_of_others(first: int) -> None:
    ended = {run_mutated(seed) for seed in range(first, first + 30)}
    assert {"COMMITTED", "ABORTED"} <= ended
