"""Partitions outside the destination, on the deployed wiring: events, ledger, map and undo."""

from __future__ import annotations

import pytest

import s3commit
from s3commit.core.model.errors import JobFailedError
from s3commit.core.model.job import JobResult
from tests.e2e.conftest import Deployed

WAIT_SECONDS = 120
MAIN, THERE = "locations/table/", "locations/elsewhere/dt1/"
FILES = ("dt=1/a.csv", "dt=2/a.csv")


def write(bucket: str, body: bytes, *, conflict: str, least: int = 0) -> JobResult:
    with s3commit.open_job(
        f"s3://{bucket}/{MAIN}",
        locations={"dt=1": f"s3://{bucket}/{THERE}"},
        conflict=conflict,
        scope="partition",
        conditions={"minFiles": least},
    ) as job:
        with job.task("0") as task:
            for name in FILES:
                with task.open(name, rows=1) as file:
                    file.write(body)
        return job.commit([task.counted], timeout=WAIT_SECONDS)


def test_i2_i10_all_places_are_written_replaced_and_refused_by_one_decision(
    environment: Deployed,
) -> None:
    s3 = environment.client("s3")

    def data() -> dict[str, bytes]:
        found = s3.list_objects_v2(Bucket=environment.bucket, Prefix="locations/")["Contents"]
        keys = [one["Key"] for one in found if one["Key"].endswith(".csv")]
        return {
            key.rsplit("/", 1)[0] + "/": s3.get_object(Bucket=environment.bucket, Key=key)[
                "Body"
            ].read()
            for key in keys
        }

    write(environment.bucket, b"old", conflict="append")
    result = write(environment.bucket, b"new", conflict="replace")
    assert (result.files, result.replaced) == (2, 2)
    assert data() == {THERE: b"new", f"{MAIN}dt=2/": b"new"}
    with pytest.raises(JobFailedError) as refused:
        write(environment.bucket, b"no", conflict="replace", least=3)
    assert refused.value.code == "CONDITION_FAILED"
    assert data() == {THERE: b"new", f"{MAIN}dt=2/": b"new"}
    uploads = s3.list_multipart_uploads(Bucket=environment.bucket, Prefix="locations/")
    assert uploads.get("Uploads", []) == []
