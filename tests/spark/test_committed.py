"""Whether a key's data is committed for sure, by what S3 holds."""

from __future__ import annotations

import json

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.locks import key_digest
from s3commit.spark.committed import committed_before
from s3commit.spark.options import parse_options
from tests.spark.tiny import BUCKET, Place

KEY = "2026-11-23"
JOB = "11111111-1111-4111-8111-111111111111"


def result(outcome: str, job: str = JOB) -> bytes:
    document = {
        "version": 1,
        "jobId": job,
        "outcome": outcome,
        "error": None if outcome == "COMMITTED" else {"code": "X", "message": "x"},
        "files": 1,
        "bytes": 1,
        "rows": 1,
        "replaced": 0,
        "decidedAt": "2026-11-23T00:00:00Z",
        "finishedAt": "2026-11-23T00:00:00Z",
        "execution": "",
    }
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("there", "surely"),
    [
        ({}, False),
        ({"commits": b"x"}, True),  # the job's own objects are gone
        ({"commits": b"x", "job": b"x"}, False),  # it may still remove what it replaces
        ({"commits": b"x", "job": b"x", "result": result("COMMITTED")}, True),
        ({"commits": b"x", "result": result("ABORTED")}, False),
        ({"job": b"x", "result": result("COMMITTED")}, False),  # not listed
    ],
)
def test_i11_a_key_is_spent_only_if_its_job_is_committed_for_sure(
    place: Place, there: dict[str, bytes], surely: bool
) -> None:
    directory = JobDirectory(place.destination, JOB)
    put = place.tiny.store.put
    record = {"version": 1, "key": KEY, "jobId": JOB}
    put(BUCKET, directory.once(key_digest(KEY)), json.dumps(record).encode())
    for name, body in there.items():
        put(BUCKET, getattr(directory, name), body)
    options = parse_options({"path": place.uri, "idempotencyKey": KEY})
    assert committed_before(options) == (directory if surely else None)


def test_a_key_that_nobody_has_or_that_is_not_readable_is_the_pipelines_to_judge(
    place: Place,
) -> None:
    options = parse_options({"path": place.uri, "idempotencyKey": KEY})
    assert committed_before(options) is None
    name = JobDirectory(place.destination, JOB).once(key_digest(KEY))
    for body in (b"no json", json.dumps({"version": 1, "key": "other", "jobId": JOB}).encode()):
        place.tiny.store.put(BUCKET, name, body)
        assert committed_before(options) is None
    assert committed_before(parse_options({"path": place.uri})) is None
