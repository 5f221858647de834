"""How a job is opened, and whether its bucket has a pipeline."""

import sys
from hashlib import sha256
from typing import Any

import pytest
from botocore.exceptions import ClientError

from s3commit.core.documents.job_json import MAX_WHO, Conditions, decode_job
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError
from s3commit.writer.connect import check_pipeline
from s3commit.writer.who import this_program
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import (
    BUCKET,
    DESTINATION,
    JOB,
    QUEUE,
    FakeS3,
    ScriptedEnvironment,
    fake_id,
    notifying,
    open_on,
    visible,
)

# --- open


def test_open_writes_down_what_the_client_said(
    store: MemoryObjectStore, environment: ScriptedEnvironment
) -> None:
    job = open_on(
        store,
        "s3a://lake/t",
        partition_overwrite_mode="dynamic",
        partition_by="dt",
        min_rows=1,
        idempotency_key="query-7",
        environment=environment,
    )
    body = store.get(BUCKET, job.directory.job, max_bytes=1 << 20).body
    spec = decode_job(body, job.directory)
    assert spec == job._spec
    assert (spec.job_id, spec.client, spec.created_at) == (
        fake_id(1),
        "test",
        "2026-11-21T22:07:22.000Z",
    )
    assert (spec.partition_by, spec.conditions) == (("dt",), Conditions(min_rows=1))
    assert spec.idempotency_key == sha256(b"query-7").hexdigest()
    assert b"query-7" not in body  # who may read it could take the next keys of a stream
    assert spec.who == this_program()


def test_who_writes_is_the_program_and_its_airflow_run_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = {"AIRFLOW_CTX_DAG_ID": "daily", "AIRFLOW_CTX_DAG_RUN_ID": "r" * MAX_WHO, "HOME": "/"}
    who = this_program("app-1", "sales\udc80", run)
    assert (who.application_id, who.application) == ("app-1", "sales?")
    assert who.airflow == f"daily/{'r' * MAX_WHO}"[:MAX_WHO]
    assert who.user
    assert who.host
    for argv, named in (("-", "python -"), ("-c", "python -c"), ("/jobs/daily.py", "daily.py")):
        monkeypatch.setattr(sys, "argv", [argv])
        assert this_program().application == named


@pytest.mark.parametrize("wrong", [{"job_id": "daily"}, {"partition_by": ["dt", "dt"]}])
def test_what_can_not_be_is_refused_before(store: MemoryObjectStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        open_on(store, **wrong)
    assert visible(store) == []


@pytest.mark.parametrize("name", ["a.b", "a`b", "a\nb", "\u3000", "\U000f0000"])
def test_a_partition_column_may_have_any_name(store: MemoryObjectStore, name: str) -> None:
    job = open_on(store, partition_by=[name])
    body = store.get(BUCKET, job.directory.job, max_bytes=10_000).body
    assert decode_job(body, job.directory).partition_by == (name,)


def test_a_missing_bucket_is_one_clear_line(store: MemoryObjectStore) -> None:
    with pytest.raises(NotFoundError, match="bucket else does not exist: create it") as caught:
        open_on(store, "s3://else/t/")
    assert caught.value.code == "NO_BUCKET"


def test_no_access_is_one_clear_line(store: MemoryObjectStore) -> None:
    plan = FaultPlan().fail("put", AccessError("writing _job.json: AccessDenied"))
    with pytest.raises(AccessError, match=r"no access to s3://lake/t/: writing _job\.json"):
        open_on(plan.wrap(store))


def test_a_job_id_is_never_used_twice(store: MemoryObjectStore) -> None:
    open_on(store, job_id=JOB, client="first")
    with pytest.raises(InvalidInputError, match=f"job ID {JOB} is already used") as caught:
        open_on(store, job_id=JOB, client="second")
    assert caught.value.code == "JOB_EXISTS"


def test_a_repeated_put_of_its_own_job_json_is_no_conflict(
    store: MemoryObjectStore, environment: ScriptedEnvironment
) -> None:
    # botocore sends again when an answer gets lost, and S3 then refuses the client's own object
    for _ in range(2):
        open_on(store, job_id=JOB, environment=environment)


# Whether a bucket has a pipeline, by its notifications


def refusal(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "GetBucketNotificationConfiguration",
    )


NO_PIPELINE = "bucket lake has no s3commit pipeline"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (notifying("/_request.json"), ""),
        (notifying("/_request.json", name="Suffix"), ""),
        ({"EventBridgeConfiguration": {}}, ""),
        (refusal("AccessDenied", 403), ""),  # then nothing is checked
        ({}, NO_PIPELINE),
        (notifying(".pendingset"), NO_PIPELINE),
        ({"QueueConfigurations": [{"QueueArn": QUEUE}]}, NO_PIPELINE),
        (refusal("NoSuchBucket", 404), "bucket lake does not exist"),
    ],
)
def test_a_bucket_without_a_pipeline_is_one_clear_line(answer: Any, told: str) -> None:
    s3: Any = FakeS3(answer)
    try:
        check_pipeline(s3, parse_destination(DESTINATION))
    except NotFoundError as error:
        assert error.message.startswith(told) and told
        assert error.code == ("NO_PIPELINE" if told == NO_PIPELINE else "NO_BUCKET")
    else:
        assert not told
