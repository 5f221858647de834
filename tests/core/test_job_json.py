"""``_job.json`` is what it was, or the job is refused: policy, conditions and key stand there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from s3commit.core.formats.documents import encode_job, encode_request
from s3commit.core.formats.manifest import digest
from s3commit.core.model.job import (
    CommitRequest,
    Conditions,
    Conflict,
    CountedAttempt,
    JobSpec,
    Outcome,
)
from s3commit.core.model.limits import S3_CLOCKS
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
    return encode_job(JobSpec(JOB, DIRECTORY.destination, conflict))


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
    world.plan.run_before("take_over", lambda: world.store.put(BUCKET, DIRECTORY.job, body))
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
