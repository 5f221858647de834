"""The writer on botocore, as a program gets it that passes no store of its own."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

import s3commit
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import AccessError
from s3commit.writer.transfer import MIB, MIN_PART_BYTES, PartSizes, UploadSettings
from tests.writer.support import BUCKET, DESTINATION, completed_bytes, files_of, open_uploads

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SUFFIX = "/request.json"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Client]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield client


def add_pipeline(s3: S3Client) -> None:
    queue = boto3.client("sqs").create_queue(QueueName="requests")["QueueUrl"]
    arn = f"arn:aws:sqs:us-east-1:123456789012:{queue.rsplit('/', 1)[-1]}"
    s3.put_bucket_notification_configuration(
        Bucket=BUCKET,
        NotificationConfiguration={
            "QueueConfigurations": [
                {
                    "QueueArn": arn,
                    "Events": ["s3:ObjectCreated:*"],
                    "Filter": {"Key": {"FilterRules": [{"Name": "suffix", "Value": SUFFIX}]}},
                }
            ]
        },
    )


def test_i1_i2_a_travelled_job_writes_what_the_pipeline_can_complete(s3: S3Client) -> None:
    add_pipeline(s3)
    settings = UploadSettings(PartSizes(first=MIN_PART_BYTES))
    job = pickle.loads(pickle.dumps(s3commit.open_job(DESTINATION, settings=settings)))
    body = bytes(range(256)) * (11 * MIB // 256)
    with job.task("0") as task:
        with task.open("dt=1/a.bin") as file:
            file.write(body)
        with task.open("empty"):
            pass
    store = S3ObjectStore(s3)
    assert len(open_uploads(store)) == 2
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix="t/dt=").get("Contents", []) == []
    files = files_of(store, job, task.counted)
    assert [completed_bytes(store, found) for found in files] == [body, b""]


def test_missing_credentials_are_one_clear_line(
    s3: S3Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(AccessError, match=r"no AWS credentials .* no request was made"):
        s3commit.open_job(DESTINATION)
