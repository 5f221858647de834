"""``_job.json`` is what it was, or the job is refused; its conditions are met, or it is aborted."""

import json
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.documents.job_json import JOB_JSON, Conditions, JobSpec, decode_conditions
from s3commit.core.documents.request_json import CommitRequest, CountedAttempt, encode_request
from s3commit.core.documents.result_json import JobResult
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.outcome import Failure, Outcome
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.memory import MemoryLedger

DIRECTORY = job_directory()
CONDITIONS = Conditions(min_rows=1000)


def refused(world: World, *, left: int = 0) -> str:
    """Run the job; its code, when it has ended ABORTED with nothing visible and nothing open."""
    world.run(DIRECTORY)
    outcome, code = world.ended(DIRECTORY)
    assert outcome is Outcome.ABORTED
    assert world.visible() == {}
    assert len(world.open_uploads()) == left
    return code


def opened(conflict: Conflict = Conflict.APPEND) -> tuple[World, CountedAttempt]:
    world = World()
    world.open(DIRECTORY, conflict=conflict, conditions=CONDITIONS)
    return world, world.attempt(DIRECTORY, "t0")


def ask(world: World, request: CommitRequest) -> None:
    world.store.put(BUCKET, DIRECTORY.request, encode_request(request), if_absent=True)


def without_conditions(conflict: Conflict = Conflict.APPEND) -> bytes:
    return JOB_JSON.encode(JobSpec(JOB, DIRECTORY.destination, conflict))


@pytest.mark.parametrize("body", [None, without_conditions()], ids=["deleted", "replaced"])
@pytest.mark.parametrize("heard", [False, True], ids=["before anyone has read it", "after"])
def test_a_job_json_that_is_not_what_it_was_refuses_the_job(
    body: bytes | None, heard: bool
) -> None:
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
    [(None, "JOB_CHANGED"), (without_conditions(), "JOB_CHANGED"), (b"{", "BAD_JSON")],
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


@pytest.mark.parametrize("said", ["", "A" * 64, "0" * 63, 7])
def test_a_digest_that_is_none_is_refused(said: object) -> None:
    world, _ = opened()
    document = {"version": 1, "jobId": JOB, "action": "commit", "jobDigest": said, "attempts": []}
    world.store.put(BUCKET, DIRECTORY.request, json.dumps(document).encode())
    assert refused(world) == ("CONDITION_FAILED" if said == "" else "BAD_FIELD")


# A job's own conditions, met to the letter or the job is aborted


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"minRow": 1}, "condition 'minRow' is not known; known are minRows, maxRows, minFiles"),
        ({"minRows": -1}, "minRows -1 is invalid"),
        ({"maxRows": 1.0}, "maxRows 1.0 is invalid"),
        ({"minFiles": True}, "minFiles True is invalid"),
        ({"minRows": "1"}, "minRows '1' is invalid"),
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
        (Conditions(min_rows=7), "the job has 6 rows; minRows is 7"),
        (Conditions(max_rows=5), "the job has 6 rows; maxRows is 5"),
        (Conditions(max_rows=0), "the job has 6 rows; maxRows is 0"),
        (Conditions(min_files=3), "the job has 2 files; minFiles is 3"),
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
        (Conditions(min_rows=1), "the job has 0 rows; minRows is 1"),
        (Conditions(min_files=1), "the job has 0 files; minFiles is 1"),
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
    told = "the rows were not counted: pass each file's rows to the writer"
    assert world.failure(directory) == Failure("CONDITION_FAILED", told)
