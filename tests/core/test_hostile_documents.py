"""Hostile _job.json, _request.json and texts: refused whole, with a code and one line (I5, I7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3commit.core.formats.documents import encode_job, encode_request
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import AbortRequest, CommitRequest, JobSpec, Outcome
from tests.core.hostile_world import DIRECTORY, NOBODY, Neighbourhood
from tests.core.world import BUCKET, JOB, OTHER_JOB, World


@pytest.fixture
def world() -> Neighbourhood:
    return Neighbourhood()


# _job.json


def in_job(**changes: Any) -> bytes:
    spec = json.loads(encode_job(JobSpec(JOB, DIRECTORY.destination)))
    return json.dumps({**spec, **changes}).encode()


JOBS: list[tuple[bytes, str]] = [
    (b'{"version":1', "BAD_JSON"),
    (in_job(version=2), "BAD_VERSION"),
    (in_job(jobId=OTHER_JOB), "WRONG_JOB"),
    (in_job(destination="s3://lake/elsewhere/"), "WRONG_JOB"),
    (in_job(destination="s3://other-lake/sales/"), "WRONG_JOB"),
    (in_job(destination="file:///etc/\n/passwd" + "x" * 4000), "BAD_PATH"),
    (in_job(conflict="fail,replace"), "BAD_FIELD"),
    (in_job(scope="table"), "BAD_FIELD"),
    (in_job(unknown="any"), "BAD_FIELD"),
    (in_job(partitionBy=["dt", "dt"]), "BAD_FIELD"),
    (in_job(partitionBy=["x" * 256]), "BAD_FIELD"),
    (in_job(partitionBy=[f"c{number}" for number in range(101)]), "BAD_FIELD"),
    (in_job(idempotencyKey=""), "BAD_FIELD"),
    (in_job(idempotencyKey="x" * 1025), "BAD_FIELD"),
    (in_job(conditions=[]), "BAD_CONDITION"),
    (in_job(conditions={"min\nRows\x1b[31m" + "x" * 9000: 1}), "BAD_CONDITION"),
]


@pytest.mark.parametrize(("body", "code"), JOBS, ids=lambda value: str(value)[-60:])
def test_i5_i7_a_job_json_that_can_not_be_is_refused(
    world: Neighbourhood, body: bytes, code: str
) -> None:
    world.store.put(BUCKET, DIRECTORY.job, body)
    attempt = world.attempt(DIRECTORY, "t0")
    with pytest.raises(InvalidInputError) as at_ingest:
        world.announce(DIRECTORY, attempt)
    assert at_ingest.value.code == code
    world.request(DIRECTORY, attempt)
    world.refused(code)


# _request.json


def in_request(**changes: Any) -> bytes:
    document = json.loads(encode_request(CommitRequest(JOB, (NOBODY,))))
    return json.dumps({**document, **changes}).encode()


def in_attempt(**changes: Any) -> bytes:
    [attempt] = json.loads(in_request())["attempts"]
    return in_request(attempts=[{**attempt, **changes}])


REQUESTS: list[tuple[bytes, str]] = [
    (in_request().replace(b'"action"', b'"action":"abort","action"'), "BAD_JSON"),
    (in_request(version=None), "BAD_VERSION"),
    (in_request(jobId=OTHER_JOB), "WRONG_JOB"),
    (in_request(action="rollback\nnow"), "BAD_FIELD"),
    (in_request(attempts={}), "BAD_FIELD"),
    (in_attempt(taskId="../t0"), "BAD_FIELD"),
    (in_attempt(attemptId=""), "BAD_FIELD"),
    (in_attempt(manifest="../../elsewhere/_tasks/t0/_a0.pendingset"), "BAD_FIELD"),
    (in_attempt(manifest="_tasks/t1/_a0.pendingset"), "BAD_FIELD"),
    (in_attempt(manifest="x\n" * 2000), "BAD_FIELD"),
    (in_attempt(sha256="F" * 64), "BAD_FIELD"),
    (in_attempt(files=-1), "BAD_FIELD"),
    (in_request(), "MANIFEST_MISSING"),
    (in_request(attempts=json.loads(in_request())["attempts"] * 2), "TWO_ATTEMPTS"),
]


@pytest.mark.parametrize(("body", "code"), REQUESTS, ids=lambda value: str(value)[-60:])
def test_i5_i7_a_request_that_can_not_be_is_refused(
    world: Neighbourhood, body: bytes, code: str
) -> None:
    world.attempt(DIRECTORY, "t1")
    world.store.put(BUCKET, DIRECTORY.request, body)
    world.refused(code)


def test_i3_a_request_that_is_removed_ends_the_job(world: Neighbourhood) -> None:
    """A second one would not be heard: its execution has run."""
    world.attempt(DIRECTORY, "t0")
    world.refused("REQUEST_MISSING")


@pytest.mark.parametrize("later", ["abort", "fewer", "none"])
def test_i3_a_second_request_after_the_decision_changes_nothing(later: str) -> None:
    world = World()
    world.request(DIRECTORY, *[world.attempt(DIRECTORY, f"t{number}") for number in range(2)])
    bodies = {
        "abort": encode_request(AbortRequest(JOB, "no")),
        "fewer": encode_request(CommitRequest(JOB, ())),
        "none": b"",
    }
    world.plan.run_after(
        "decide", lambda: world.store.put(BUCKET, DIRECTORY.request, bodies[later]) and None
    )
    assert world.run(DIRECTORY)[-1] == "TidyUp"
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED
    assert len(world.visible()) == 2


def test_i3_a_second_request_before_the_decision_is_obeyed_whole_or_refused(
    world: Neighbourhood,
) -> None:
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0"))
    body = encode_request(AbortRequest(JOB, "no"))
    world.plan.run_after(
        "advance", lambda: world.store.put(BUCKET, DIRECTORY.request, body) and None
    )
    world.refused("REQUEST_CHANGED")


# Messages


@pytest.mark.parametrize("reason", ["a\r\nb\x85\x1b[2J\x07\u202e\u2028", "x" * 4096], ids=ascii)
def test_a_strangers_words_make_one_line(world: Neighbourhood, reason: str) -> None:
    body = {"version": 1, "jobId": JOB, "action": "abort", "reason": reason}
    world.store.put(BUCKET, DIRECTORY.request, json.dumps(body).encode())
    result = world.refused("ABORTED_BY_CLIENT")
    assert world.record(DIRECTORY).failure == result.error, (
        "the ledger, which the console reads, too"
    )


def test_a_reason_may_be_left_out(world: Neighbourhood) -> None:
    world.store.put(BUCKET, DIRECTORY.request, in_request(action="abort", attempts=None))
    result = world.refused("ABORTED_BY_CLIENT")
    assert result.error is not None
    assert result.error.message == "the client asked for it"
