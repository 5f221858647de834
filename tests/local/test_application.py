"""The real app in the embedded runtime: the template that would be deployed runs a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

import s3commit
from s3commit.core.model.job import Outcome
from s3commit.local.assembly import load_assembly
from s3commit.local.errors import UnsupportedTemplateError
from s3commit.local.loader import check
from s3commit.local.synth import synthesize
from tests.stacks.synthesized import KEY_ARN, OPERATOR
from tests.stacks.synthesized import synthesize as synthesize_with

PROJECT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from s3commit.local.server import run_foreground
run_foreground(Path(sys.argv[1]))
"""


START = """
import sys
from pathlib import Path
from s3commit.local.server import LocalRuntime
with LocalRuntime(Path(sys.argv[1]), warm=False) as runtime:
    print(runtime.bucket)
"""


@pytest.fixture(scope="module")
def pipeline() -> Iterator[dict[str, str]]:
    """The ready line of a runtime of the real app, in a process of its own."""
    assembly = synthesize(PROJECT, PROJECT / ".build" / "local-tests" / "assembly")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(assembly)],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "layers/s3commit/python")},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        line: dict[str, str] = json.loads(process.stdout.readline())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", line["endpoint"])
            patch.setenv("AWS_REGION", line["region"])
            patch.setenv("AWS_DEFAULT_REGION", line["region"])
            yield line
        process.terminate()
        assert process.wait(20) == 0


def keys(bucket: str, prefix: str) -> list[str]:
    listed = boto3.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix)
    return [found["Key"] for found in listed.get("Contents", [])]


def test_a_job_is_committed_by_the_real_pipeline(pipeline: dict[str, str]) -> None:
    bucket, counted = pipeline["bucket"], []
    with s3commit.open_job(f"s3://{bucket}/table/") as job:
        for n in range(3):
            name = f"day=1/part-{n}-{job.job_id}.csv"
            with job.task(str(n)) as task, task.open(name) as file:
                file.write(b"a,b\n")
            counted.append(task.counted)
        assert not keys(bucket, "table/day=1/")
        result = job.commit(counted, timeout=60)
    assert result.outcome is Outcome.COMMITTED
    assert len(keys(bucket, "table/day=1/")) == 3
    assert "table/_SUCCESS" in keys(bucket, "table/")
    assert not boto3.client("s3").list_multipart_uploads(Bucket=bucket).get("Uploads")
    execution = boto3.client("stepfunctions").describe_execution(executionArn=result.execution)
    assert execution["stateMachineArn"] == pipeline["stateMachine"]


def test_an_aborted_job_leaves_nothing(pipeline: dict[str, str]) -> None:
    bucket = pipeline["bucket"]
    job = s3commit.open_job(f"s3://{bucket}/aborted/")
    task = job.task("0")
    with task.open("part-0.csv") as file:
        file.write(b"a,b\n")
    task.finish()
    job.abort("the test says so")
    s3, key = boto3.client("s3"), job.directory.result
    s3.get_waiter("object_exists").wait(
        Bucket=bucket, Key=key, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    result = json.load(s3.get_object(Bucket=bucket, Key=key)["Body"])
    assert result["outcome"] == "ABORTED"
    assert not [key for key in keys(bucket, "aborted/") if key.endswith(".csv")]
    assert not s3.list_multipart_uploads(Bucket=bucket, Prefix="aborted/").get("Uploads")


def test_every_parameter_of_a_deployment_gives_a_template_that_runs(tmp_path: Path) -> None:
    synthesize_with(
        tmp_path,
        bucketName="named-lake",
        kmsKeyArn=KEY_ARN,
        accessLogsBucket="logs",
        versioned="true",
        protectNames="all",
        operators=OPERATOR,
        alarmEmail="oncall@example.com",
        replacePrefixes="a/,b/",
        sweepMinutes=61,
    )
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "layers/s3commit/python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("named-lake\n", 0), done.stderr


def test_an_imported_bucket_is_refused_in_one_line(tmp_path: Path) -> None:
    """Its notifications are set by a function of the CDK's own, which does not run here."""
    synthesize_with(tmp_path, importBucket="lake")
    with pytest.raises(UnsupportedTemplateError, match="Custom::S3BucketNotifications"):
        check(load_assembly(tmp_path))
