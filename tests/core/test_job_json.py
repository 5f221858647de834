"""``_job.json`` is what it was, or the job is refused; its conditions are met, or it is aborted."""

from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.documents.job_json import JOB_JSON, Conditions, JobSpec, decode_conditions
from s3commit.core.documents.request_json import CommitRequest, CountedAttempt, encode_request
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.outcome import Outcome
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.memory import MemoryLedger

DIRECTORY = job_directory()
WITHOUT_CONDITIONS = JOB_JSON.encode(JobSpec(JOB, DIRECTORY.destination))


def refused(world: World, *, left: int = 0) -> str:
    """Run the job; its code, when it has ended ABORTED with nothing visible and nothing open."""
    world.run(DIRECTORY)
    outcome, code = world.ended(DIRECTORY)
    assert outcome is Outcome.ABORTED
    assert world.visible() == {}
    assert len(world.open_uploads()) == left
    return code


def opened() -> tuple[World, CountedAttempt]:
    world = World()
    world.open(DIRECTORY, conditions=Conditions(min_rows=1000))
    return world, world.attempt(DIRECTORY, "t0")


def ask(world: World, request: CommitRequest) -> None:
    world.store.put(BUCKET, DIRECTORY.request, encode_request(request), if_absent=True)


@pytest.mark.parametrize("body", [None, WITHOUT_CONDITIONS], ids=["deleted", "replaced"])
@pytest.mark.parametrize("heard", [False, True], ids=["before anyone has read it", "after"])
def test_a_job_json_that_is_another_one_refuses_the_job(body: bytes | None, heard: bool) -> None:
    """Else the job were committed without its conditions."""
    world, counted = opened()
    if heard:
        world.announce(DIRECTORY, counted)
    said = digest(world.store.get(BUCKET, DIRECTORY.job, max_bytes=10**6).body)
    world.clock.advance(S3_CLOCKS + 1)
    strike(world, body)
    # After its first manifest also for a client whose request does not say which one it means.
    ask(world, CommitRequest(JOB, (counted,), job_sha256="" if heard or body is None else said))
    # What was begun before the _job.json that lies there is left to the lifecycle rule.
    assert refused(world, left=0 if heard else 1) == "JOB_CHANGED"


def strike(world: World, body: bytes | None) -> None:
    if body is None:
        world.store.delete(BUCKET, DIRECTORY.job)
    else:
        world.store.put(BUCKET, DIRECTORY.job, body)


def test_i11_a_job_json_that_is_deleted_is_missed_also_of_a_job_without_files() -> None:
    world = World()
    world.open(DIRECTORY, conflict=Conflict.REPLACE, idempotency_key="2026-11-21")
    world.store.delete(BUCKET, DIRECTORY.job)
    ask(world, CommitRequest(JOB, ()))
    assert refused(world) == "JOB_CHANGED"


@pytest.mark.parametrize(
    ("body", "code"),
    [(None, "JOB_CHANGED"), (WITHOUT_CONDITIONS, "JOB_CHANGED"), (b"{", "BAD_JSON")],
    ids=["deleted", "replaced", "broken"],
)
def test_conditions_are_those_that_were_verified(body: bytes | None, code: str) -> None:
    """Between VerifyManifests and CheckConditions."""
    world, counted = opened()
    world.request(DIRECTORY, counted)
    world.plan.run_after("note", lambda: strike(world, body))
    assert refused(world) == code


def test_a_job_json_that_could_not_be_read_at_first_is_not_believed_later() -> None:
    world, counted = opened()
    body = world.store.get(BUCKET, DIRECTORY.job, max_bytes=10**6).body
    world.clock.advance(S3_CLOCKS + 1)
    world.store.put(BUCKET, DIRECTORY.job, b"{")
    world.request(DIRECTORY, counted)
    world.plan.crash_before("advance")
    world.dies(DIRECTORY)
    world.store.put(BUCKET, DIRECTORY.job, body)
    # What was begun before the _job.json that lies there is left to the lifecycle rule.
    assert refused(world, left=1) == "JOB_CHANGED"


def test_a_record_of_before_that_knows_no_digest_is_judged_by_the_rest() -> None:
    world = World()
    counted = world.attempt(DIRECTORY, "t0")
    world.announce(DIRECTORY, counted)
    record = replace(world.record(DIRECTORY), job_sha256=None)
    world.ledger = MemoryLedger()
    world.ledger.open_job(record)
    world.ports = replace(world.ports, ledger=world.ledger)
    world.request(DIRECTORY, counted)
    world.run(DIRECTORY)
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED


# A job's own conditions, met to the letter or the job is aborted


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"minRow": 1}, "condition 'minRow' is not known; known are minRows, maxRows, minFiles"),
        ({"minRows": -1}, "minRows -1 is invalid"),
        ({"maxRows": 1.0}, "maxRows 1.0 is invalid"),
        ({"minFiles": True}, "minFiles True is invalid"),
        ({"minRows": "1"}, "minRows '1' is invalid"),
        ({"minRows": 2, "maxRows": 1}, "at least 2 rows and at most 1 can't be"),
    ],
)
def test_what_is_no_condition_is_refused_by_name(value: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match="conditions: ") as refused:
        decode_conditions(value)
    assert refused.value.code == "BAD_CONDITION"
    assert told in refused.value.message


NOT_COUNTED = "the rows were not counted: pass each file's rows to the writer"


@pytest.mark.parametrize(
    ("conditions", "rows", "told"),
    [
        (Conditions(min_rows=7), [4, 2], "the job has 6 rows, fewer than 7"),
        (Conditions(max_rows=5), [4, 2], "the job has 6 rows, more than 5"),
        (Conditions(max_rows=0), [4, 2], "the job has 6 rows, more than 0"),
        (Conditions(min_files=3), [4, 2], "the job has 2 files, fewer than 3"),
        (Conditions(min_rows=1), [], "the job has 0 rows, fewer than 1"),
        (Conditions(min_files=1), [], "the job has 0 files, fewer than 1"),
        (Conditions(max_rows=0), [], ""),
        (Conditions(min_rows=1), [None, 5], NOT_COUNTED),
        (Conditions(max_rows=9), [None, 5], NOT_COUNTED),
    ],
)
def test_a_job_that_fails_a_condition_is_aborted_with_the_figure(
    conditions: Conditions, rows: list[int | None], told: str
) -> None:
    """A task for each number of rows. A job without rows meets a maximum and no minimum."""
    world = World()
    world.open(DIRECTORY, conditions=conditions)
    counted = [world.attempt(DIRECTORY, f"t{n}", rows=one) for n, one in enumerate(rows)]
    world.request(DIRECTORY, *counted)
    if told:
        assert refused(world) == "CONDITION_FAILED"
        assert world.failure(DIRECTORY).message == told
    else:
        world.run(DIRECTORY)
        assert world.ended(DIRECTORY) == (Outcome.COMMITTED, "")
