"""A job's own conditions: as documents have them, and met to the letter or the job is aborted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.strict_json import dump, parse
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import (
    Conditions,
    Failure,
    JobResult,
    Outcome,
    decode_conditions,
    encode_conditions,
)
from tests.core.world import JOB, World, job_directory

COUNTS = st.none() | st.integers(0, 10**12)


@given(low=COUNTS, high=COUNTS, files=COUNTS)
def test_conditions_survive_their_document(
    low: int | None, high: int | None, files: int | None
) -> None:
    if low is not None and high is not None and low > high:
        low, high = high, low
    conditions = Conditions(low, high, files)
    body = dump(encode_conditions(conditions))
    assert decode_conditions(parse(body, what="conditions", max_bytes=10**6)) == conditions
    assert bool(conditions) == (body != b"{}")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"minRow": 1}, "condition 'minRow' is not known; known are minRows, maxRows, minFiles"),
        ({"minRows": -1}, "minRows -1 is no count"),
        ({"maxRows": 1.0}, "maxRows 1.0 is no count"),
        ({"minFiles": True}, "minFiles True is no count"),
        ({"minRows": "1"}, "minRows '1' is no count"),
        ({"minRows": 2, "maxRows": 1}, "minRows 2 is more than maxRows 1"),
    ],
)
def test_what_is_no_condition_is_refused_by_name(value: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match="conditions: ") as refused:
        decode_conditions(value)
    assert refused.value.code == "BAD_CONDITION"
    assert told in refused.value.message


def judged(conditions: Conditions, *bodies: bytes) -> JobResult:
    """A job with a file of so many rows as it has bytes, a task a file."""
    world, directory = World(), job_directory()
    world.open(directory, conditions=conditions)
    counted = []
    for number, body in enumerate(bodies):
        files = {f"part-{number}-{JOB}.parquet": body}
        counted.append(world.attempt(directory, f"t{number}", files=files))
    world.request(directory, *counted)
    world.run(directory)
    committed = world.result(directory).outcome is Outcome.COMMITTED
    assert len(world.visible()) == (len(bodies) if committed else 0)
    assert world.open_uploads() == []
    return world.result(directory)


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (Conditions(min_rows=7), "minRows is 7, the job has 6"),
        (Conditions(max_rows=5), "maxRows is 5, the job has 6"),
        (Conditions(max_rows=0), "maxRows is 0, the job has 6"),
        (Conditions(min_files=3), "minFiles is 3, the job has 2"),
    ],
)
def test_a_job_that_fails_a_condition_is_aborted_with_the_figure(
    conditions: Conditions, told: str
) -> None:
    result = judged(conditions, b"abcd", b"ef")
    assert (result.outcome, result.error) == (Outcome.ABORTED, Failure("CONDITION_FAILED", told))


def test_a_job_without_rows_meets_a_maximum_and_no_minimum() -> None:
    assert judged(Conditions(max_rows=0)).outcome is Outcome.COMMITTED
    for none, told in (
        (Conditions(min_rows=1), "minRows is 1, the job has 0"),
        (Conditions(min_files=1), "minFiles is 1, the job has 0"),
    ):
        assert judged(none).error == Failure("CONDITION_FAILED", told)


@pytest.mark.parametrize("conditions", [Conditions(min_rows=1), Conditions(max_rows=9)])
def test_rows_that_nobody_counted_meet_no_condition_on_rows(conditions: Conditions) -> None:
    world, directory = World(), job_directory()
    world.open(directory, conditions=conditions)
    world.request(
        directory, world.attempt(directory, "t0", rows=None), world.attempt(directory, "t1")
    )
    world.run(directory)
    told = "the rows were not counted: give the writer each file's rows"
    assert world.failure(directory) == Failure("CONDITION_FAILED", told)
