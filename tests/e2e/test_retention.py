"""The page on erasure, step by step: no byte and no name of a person is left, or comes back."""

import json
import textwrap
import uuid
from typing import Any

import pyarrow as pa
import pytest

import s3commit
from s3commit import JobFailedError, JobRefusedError
from tests.cli.support import run
from tests.e2e.conftest import ROOT, Deployed
from tests.guide import blocks

PAGE = ROOT / "docs" / "retention.md"


def frame(*users: str) -> pa.Table:
    return pa.table({"user": users, "mail": [f"{one}@example.com" for one in users]})


def kept(s3: Any, bucket: str) -> dict[tuple[str, str], bytes]:
    """Every version of every object, and each delete marker, by key and id."""
    found: dict[tuple[str, str], bytes] = {}
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        found |= {(one["Key"], one["VersionId"]): b"" for one in page.get("DeleteMarkers", ())}
        for one in page.get("Versions", ()):
            named = {"Key": one["Key"], "VersionId": one["VersionId"]}
            found[one["Key"], one["VersionId"]] = s3.get_object(Bucket=bucket, **named)[
                "Body"
            ].read()
    return found


def test_i2_what_was_erased_as_the_page_says_comes_never_back(environment: Deployed) -> None:
    s3, bucket, name = environment.client("s3"), environment.bucket, f"erasure-{uuid.uuid4().hex}"
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    table = f"s3://{bucket}/{name}/"
    by: dict[str, Any] = {"partition_by": "user"}
    first = s3commit.write_table(frame("alice", "bob"), table, idempotency_key="first", **by).job_id
    over = s3commit.write_table(frame("alice"), table, mode="overwrite", **by).job_id
    undo = s3commit.undo(table, over).job_id  # its copies have the rows as well
    dead = s3commit.open_job(table, **by)
    with dead.task("0") as task, task.open("user=alice/part-0.parquet", rows=1) as file:
        file.write(b"alice" * 2_000_000)
    assert s3.list_multipart_uploads(Bucket=bucket, Prefix=name)["Uploads"]

    def fsck() -> Any:
        return json.loads(run("fsck", table, "--output", "json").stdout)

    (open_job,) = fsck()["openJobs"]
    run(
        "abort",
        f"{table}__magic_job-{open_job['jobId']}/",
        "--state-machine",
        environment.stateMachine,
    )
    run("show", "--follow", dead.job_id, "--destination", table, exit_code=3)
    late = {"Bucket": bucket, "Key": f"{name}/user=alice/part-1.parquet"}
    upload = s3.create_multipart_upload(**late)["UploadId"]  # another program's
    s3.upload_part(**late, UploadId=upload, PartNumber=1, Body=b"alice")
    names: dict[str, Any] = {}

    def follow(block: str) -> None:
        code = textwrap.dedent(block).replace("sales/", f"{name}/")
        exec(code.replace("lake/", f"{bucket}/").replace('"lake"', f'"{bucket}"'), names)

    def refusal(job: str) -> str:
        with pytest.raises(JobRefusedError) as refused:
            s3commit.undo(table, job)
        return refused.value.code

    rewrite, rows_go, names_go = blocks(PAGE, "python", "    ")
    follow(rewrite)
    follow(rows_go)
    assert not any(b"alice" in body and b"PAR1" in body for body in kept(s3, bucket).values())
    last = names["result"].job_id
    codes = [refusal(job) for job in (first, over, undo, last)]
    assert codes == ["NOTHING_TO_UNDO", "NOTHING_TO_UNDO", "REPLACED_SINCE", "VERSIONS_GONE"]
    assert fsck()["sound"]
    follow(names_go)

    def check() -> None:
        for (key, _), body in kept(s3, bucket).items():
            assert "alice" not in key, key
            assert b"alice" not in body, key
        assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
        assert fsck()["sound"]

    check()
    assert fsck()["files"] == 1
    assert refusal(last) == "LIST_GONE"
    assert {refusal(job) for job in (first, over, undo)} == {"NOT_COMMITTED"}
    with pytest.raises(JobFailedError, match="the list of its files has been deleted"):
        s3commit.write_table(frame("bob"), table, mode="append", idempotency_key="first", **by)
    s3commit.undo(table, last, leave_removed=True)
    check()
    assert fsck()["files"] == 0
