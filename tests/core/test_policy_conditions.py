"""Conditions on rows and files: met to the letter, or the job is aborted."""

from __future__ import annotations

import pytest

from s3commit.core.model.conditions import Conditions
from s3commit.core.model.job import Conflict, JobResult, Outcome
from tests.core.policy_world import (
    DATA,
    failure_of,
    fill,
)
from tests.core.world import JOB, World, job_directory

# Conditions


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
    "conditions",
    [
        Conditions(min_rows=6),
        Conditions(max_rows=6),
        Conditions(min_files=2),
        Conditions(min_rows=6, max_rows=6, min_files=2),
    ],
)
def test_a_job_that_meets_its_conditions_to_the_letter_is_committed(conditions: Conditions) -> None:
    assert judged(conditions, b"abcd", b"ef").outcome is Outcome.COMMITTED


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
    assert result.outcome is Outcome.ABORTED
    assert failure_of(result) == ("CONDITION_FAILED", told)


def test_a_job_without_rows_meets_a_maximum_and_no_minimum() -> None:
    assert judged(Conditions(max_rows=0)).outcome is Outcome.COMMITTED
    assert failure_of(judged(Conditions(min_rows=1)))[1] == "minRows is 1, the job has 0"
    assert failure_of(judged(Conditions(min_files=1)))[1] == "minFiles is 1, the job has 0"


@pytest.mark.parametrize("conditions", [Conditions(min_rows=1), Conditions(max_rows=9)])
def test_rows_that_nobody_counted_meet_no_condition_on_rows(conditions: Conditions) -> None:
    world, directory = World(), job_directory()
    world.open(directory, conditions=conditions)
    world.request(
        directory, world.attempt(directory, "t0", rows=None), world.attempt(directory, "t1")
    )
    world.run(directory)
    assert failure_of(world.result(directory)) == (
        "CONDITION_FAILED",
        "the rows were not counted: give the writer each file's rows",
    )


def test_rows_need_not_be_counted_where_no_condition_asks() -> None:
    world, directory = World(), job_directory()
    world.open(directory, conditions=Conditions(min_files=1))
    world.request(directory, world.attempt(directory, "t0", rows=None))
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.result(directory).rows is None


def test_conditions_are_judged_before_the_policy_looks_and_nothing_is_listed() -> None:
    world, directory = World(), job_directory()
    fill(world, DATA)
    world.open(directory, conflict=Conflict.REPLACE, conditions=Conditions(min_rows=10**6))
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    assert failure_of(world.result(directory))[0] == "CONDITION_FAILED"
    assert set(world.visible()) == set(DATA)
