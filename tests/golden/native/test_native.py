"""What the jar writes, byte by byte, is what the pipeline reads; and both have the same limits.

The files beside this one are those that the jar's own tests compare with what it writes
(``GoldenTest``).
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from s3commit.core.documents import job_json, pendingset, request_json, result_json
from s3commit.core.documents.job_json import Conditions
from s3commit.core.documents.request_json import AbortRequest, CommitRequest, CountedAttempt
from s3commit.core.formats import layout
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.model import outcome
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.locks import key_digest
from s3commit.writer.options import DEFAULT_COMMIT_TIMEOUT
from s3commit.writer.requests import ASK_AGAIN_AFTER

HERE = Path(__file__).parent
DIRECTORY = JobDirectory(Destination("lake", "sales/"), "0b6f6f0e-0000-4000-8000-000000000001")
KEY = 'day, é "21"'
WHO = job_json.Who("application_1_7", "sales, é", "ops", "node-7", "dag/run/task/-1/2")
CUT = job_json.Who("", "\U0001f600" * job_json.MAX_WHO, "?")  # cut, and without half a character
SPEC = job_json.JobSpec(
    DIRECTORY.job_id,
    DIRECTORY.destination,
    created_at="2026-11-21T08:15:00.250Z",
    client="s3commit-native/unpackaged",
)
REPLACING = replace(SPEC, conflict=Conflict.REPLACE)
JOBS = {
    "append": replace(
        SPEC, who=WHO, note="backfill, é \U0001f600 7", labels=("dag=a=b", "a.b:c/d-_9=")
    ),
    "directory": replace(REPLACING, who=job_json.Who()),
    "partitions": replace(
        REPLACING,
        scope=Scope.PARTITION,
        idempotency_key=key_digest(KEY),
        conditions=Conditions(min_files=3),
        who=CUT,
    ),
}


def golden(name: str) -> bytes:
    return (HERE / name).read_bytes()


@pytest.mark.parametrize("name", JOBS)
def test_a_job(name: str) -> None:
    assert job_json.decode_job(golden(f"{name}.json"), DIRECTORY) == JOBS[name]


def test_the_requests_and_the_manifest() -> None:
    body = golden("manifest.pendingset")
    place = DIRECTORY.manifest_name("00007", "12-a")
    pending = pendingset.decode_pendingset(body, DIRECTORY, place)
    assert (pending.task_id, pending.attempt_id, pending.bytes) == ("00007", "12-a", 5 * 2**20 + 8)
    name = f"part-00007-{DIRECTORY.job_id}"
    assert [(one.key, one.upload_id, one.etags) for one in pending.files] == [
        (f"sales/day=2026-11-21/{name}.c000.snappy.parquet", "upload-1", ('"' + "a1" * 16 + '"',)),
        (
            f"sales/name=a, b/{name}.c001.snappy.parquet",
            "upload-2",
            ('"' + "b2" * 16 + '"', '"' + "c3" * 16 + '"'),
        ),
    ]
    counted = CountedAttempt(
        "00007", "12-a", "_tasks/00007/_12-a.pendingset", digest(body), files=2, bytes=pending.bytes
    )
    assert request_json.decode_request(golden("commit.json"), DIRECTORY) == CommitRequest(
        DIRECTORY.job_id, (counted,), job_sha256="0d" * 32
    )
    assert request_json.decode_request(golden("abort.json"), DIRECTORY) == AbortRequest(
        DIRECTORY.job_id, "Spark's job failed"
    )


def test_the_limits_of_both_sides() -> None:
    assert json.loads(golden("limits.json")) == {
        "aliasEnds": list(layout.ALIAS_ENDS),
        "askAgainSeconds": ASK_AGAIN_AFTER,
        "commitMinutes": DEFAULT_COMMIT_TIMEOUT / 60,
        "fileParts": pendingset.MAX_PARTS,
        "keyBytes": layout.MAX_KEY_BYTES,
        "keyCharacters": job_json.MAX_KEY_CHARACTERS,
        "label": job_json.LABEL.pattern,
        "labels": job_json.MAX_LABELS,
        "manifestBytes": pendingset.MAX_MANIFEST_BYTES,
        "manifestFiles": pendingset.MAX_FILES,
        "manifestValues": pendingset.MAX_MANIFEST_VALUES,
        "note": job_json.NOTE.pattern,
        "prefixBytes": layout.MAX_PREFIX_BYTES,
        "whoCharacters": job_json.MAX_WHO,
        "requestAttempts": request_json.MAX_ATTEMPTS,
        "requestBytes": request_json.MAX_REQUEST_BYTES,
        "requestValues": request_json.MAX_REQUEST_VALUES,
        "resultBytes": result_json.MAX_RESULT_BYTES,
        "textCharacters": outcome.MAX_TEXT,
    }
