"""Every document that the pipeline reads: a sound one of each kind, and what reads it.

A document that is named by its digest is read under the digest of whatever it has become: strangers
can not bring that about, but a reader must stand it.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any

from s3commit.aws.events import announced_objects
from s3commit.core.documents.commit_manifest import (
    CommitHeader,
    CommittedFile,
    commit_lines,
    decode_commit_header,
    decode_commit_manifest,
)
from s3commit.core.documents.decision_json import read_decision
from s3commit.core.documents.job_json import JOB_JSON, Conditions, JobSpec, Who, decode_job
from s3commit.core.documents.pages import Unit, read_index, read_unit
from s3commit.core.documents.pendingset import decode_pendingset, encode_pendingset
from s3commit.core.documents.replace_list import decode_replaced
from s3commit.core.documents.request_json import (
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    decode_request,
    encode_request,
)
from s3commit.core.documents.result_json import RESULT_JSON, JobResult, decode_result
from s3commit.core.documents.success_marker import success_job_id
from s3commit.core.formats.strict_json import digest, dump
from s3commit.core.model.checks import Check, Figures, Kind
from s3commit.core.model.destination import Conflict
from s3commit.core.model.outcome import Failure, Outcome
from tests.core.test_manifest import NAME, one_set
from tests.core.world import BUCKET, JOB, World, job_directory

Read = Callable[[bytes], object]

DIRECTORY = job_directory()
FIGURES = Figures("n", "1", "2", 0)
PENDINGSET = encode_pendingset(replace(one_set(), checked=(FIGURES,)))
SPEC = JobSpec(
    JOB,
    DIRECTORY.destination,
    partition_by=("dt",),
    idempotency_key="k",
    created_at="2026Z",
    client="spark",
    conditions=Conditions(0, 9, 1, (Check("n", Kind.NUMBER, "0", "9", 0),)),
    who=Who("app-1", "sales", "ann", "host-1", "dag/run/task"),
    note="backfill, ticket 7",
    labels=("dag=sales", "run=7"),
    conflict=Conflict.REPLACE,
    undoes=f"{JOB[:-1]}7",
    leave_removed=True,
)
ATTEMPT = CountedAttempt("t0", "a0", DIRECTORY.manifest_name("t0", "a0"), "0" * 64, 1, 5)
OTHER_ATTEMPT = replace(ATTEMPT, task_id="t1", manifest=DIRECTORY.manifest_name("t1", "a0"))
RESULT = JobResult(JOB, Outcome.ABORTED, Failure("A", "b"), 3, 9, None, "2026Z", "2026Z", "arn")
HEADER = CommitHeader(
    JOB, DIRECTORY.destination.uri, "2026Z", 1, 5, None, ("dt",), note="n", labels=("dag=sales",)
)
FILE = CommittedFile(f"sales/x-{JOB}.csv", 5, '"e"', 1)


def _put(key: str, body: bytes) -> World:
    world = World()
    world.store.put(BUCKET, key, body)
    return world


def _index(body: bytes) -> Any:
    return read_index(_put(DIRECTORY.index(digest(body)), body).store, DIRECTORY, digest(body))


def _page(decode: Callable[[bytes], Any]) -> Read:
    def read(body: bytes) -> Any:
        store = _put(DIRECTORY.page(digest(body)), body).store
        return read_unit(store, DIRECTORY, Unit(0, digest(body), 0, 2), decode)

    return read


def _decision() -> bytes:
    world = World()
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0"))
    bodies = []

    def look() -> None:
        bodies.append(world.store.get(BUCKET, DIRECTORY.decision, max_bytes=10**6).body)

    world.plan.run_before("complete_upload", look)
    world.run(DIRECTORY)
    return bodies[0]


DECISION = _decision()

DOCUMENTS: dict[str, tuple[bytes, Read]] = {
    "pendingset": (PENDINGSET, lambda body: decode_pendingset(body, DIRECTORY, NAME)),
    "job": (JOB_JSON.encode(SPEC), lambda body: decode_job(body, DIRECTORY)),
    "request": (
        encode_request(CommitRequest(JOB, (ATTEMPT, OTHER_ATTEMPT))),
        lambda body: decode_request(body, DIRECTORY),
    ),
    "result": (RESULT_JSON.encode(RESULT), lambda body: decode_result(body, DIRECTORY)),
    "commit manifest": (
        b"".join(commit_lines(HEADER, [FILE])),
        lambda body: list(decode_commit_manifest(BytesIO(body), DIRECTORY)[1]),
    ),
    "start of a commit manifest": (
        b"".join(commit_lines(HEADER, [FILE] * 3)),
        lambda body: decode_commit_header(body, DIRECTORY),
    ),
    "decision": (
        DECISION,
        lambda body: read_decision(
            _put(DIRECTORY.decision, body).ports, BUCKET, DIRECTORY.decision
        ),
    ),
    "marker": (RESULT_JSON.encode(RESULT), success_job_id),
    "abort": (
        encode_request(AbortRequest(JOB, "no")),
        lambda body: decode_request(body, DIRECTORY),
    ),
    "index": (
        dump([{"unit": n, "page": str(n) * 64, "from": 0, "to": 2} for n in range(2)]),
        _index,
    ),
    "page of files": (
        b'{"key":"sales/0.csv","etag":"\\"e\\"","length":0}\n'
        b'{"key":"sales/1.csv","etag":"\\"e\\"","length":1}\n',
        _page(partial(decode_replaced, directory=DIRECTORY)),
    ),
    "event": (
        json.dumps(
            {"Records": [{"s3": {"bucket": {"name": BUCKET}, "object": {"key": "k", "size": 1}}}]}
        ).encode(),
        lambda body: announced_objects(body.decode(errors="surrogateescape")),
    ),
}
