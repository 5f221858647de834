"""A job played by an ordinary S3 client, by the formats alone: no line of ours on this side."""

import hashlib
import json
import uuid
from typing import Any

import pytest

from tests.e2e.conftest import Deployed
from tests.servers import until


class PlainClient:
    """boto3 and the documents of docs/protocol.md, nothing else."""

    def __init__(self, deployed: Deployed, table: str) -> None:
        self.s3 = deployed.client("s3")
        self.bucket = deployed.bucket
        self.table = table
        self.job = str(uuid.uuid4())
        self.directory = f"{table}/__magic_job-{self.job}/"
        self.setup()

    def put(self, name: str, document: dict[str, Any]) -> bytes:
        body = json.dumps(document).encode()
        self.s3.put_object(
            Bucket=self.bucket, Key=self.directory + name, Body=body, IfNoneMatch="*"
        )
        return body

    def setup(self) -> None:
        self.put(
            "_job.json",
            {
                "version": 1,
                "jobId": self.job,
                "destination": f"s3://{self.bucket}/{self.table}/",
                "conflict": "append",
                "scope": "directory",
                "partitionBy": [],
                "idempotencyKey": None,
                "createdAt": "2026-11-21T22:00:00Z",
                "client": "plain",
                "conditions": {},
            },
        )

    def task(self, task: str, bodies: dict[str, bytes]) -> dict[str, Any]:
        commits = [self.upload(task, name, body) for name, body in bodies.items()]
        manifest = f"_tasks/{task}/_0.pendingset"
        body = self.put(manifest, {"version": 3, "jobId": self.job, "commits": commits})
        return {
            "taskId": task,
            "attemptId": "0",
            "manifest": manifest,
            "sha256": hashlib.sha256(body).hexdigest(),
            "files": len(commits),
            "bytes": sum(commit["length"] for commit in commits),
        }

    def upload(self, task: str, name: str, body: bytes) -> dict[str, Any]:
        where = {"Bucket": self.bucket, "Key": f"{self.table}/{name}-{self.job}.csv"}
        metadata = {"s3commit-job": self.job, "s3commit-task": task, "s3commit-attempt": "0"}
        upload = self.s3.create_multipart_upload(**where, Metadata=metadata)["UploadId"]
        part = self.s3.upload_part(**where, UploadId=upload, PartNumber=1, Body=body)
        return {
            "version": 2,
            "uri": f"s3a://{self.bucket}/{where['Key']}",
            "uploadId": upload,
            "bucket": self.bucket,
            "destinationKey": where["Key"],
            "etags": [part["ETag"]],
            "length": len(body),
        }

    def request(self, **words: Any) -> None:
        self.put("_request.json", {"version": 1, "jobId": self.job, **words})

    def result(self) -> dict[str, Any]:
        key = f"__magic_job-{self.job}/_result.json"
        until(lambda: key in self.listed())
        answer = self.s3.get_object(Bucket=self.bucket, Key=self.directory + "_result.json")
        found: dict[str, Any] = json.loads(answer["Body"].read())
        return found

    def listed(self) -> list[str]:
        listed = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=self.table + "/")
        return [one["Key"].removeprefix(self.table + "/") for one in listed.get("Contents", [])]

    def data(self) -> dict[str, bytes]:
        return {
            name: self.s3.get_object(Bucket=self.bucket, Key=f"{self.table}/{name}")["Body"].read()
            for name in self.listed()
            if not name.startswith("_")
        }

    def uploads(self) -> list[str]:
        listed = self.s3.list_multipart_uploads(Bucket=self.bucket, Prefix=self.table + "/")
        return [one["Key"] for one in listed.get("Uploads", [])]


@pytest.fixture
def client(deployed: Deployed, request: pytest.FixtureRequest) -> PlainClient:
    return PlainClient(deployed, f"plain/{request.node.name}")


def await_tidied(client: PlainClient) -> None:
    """TidyUp comes after the result, off the client's path."""

    def left() -> list[str]:
        documents = [name for name in client.listed() if "/_tasks/" in name or "/plan-" in name]
        return [*documents, *client.uploads()]

    until(lambda: not left())


def test_i1_i2_a_plain_client_commits_a_job(client: PlainClient) -> None:
    attempts = [
        client.task("0", {"a=1/part-0": b"1,2\n", "a=2/part-0": b""}),
        client.task("1", {"a=1/part-1": b"3,4\n"}),
    ]
    assert client.data() == {}
    client.request(action="commit", attempts=attempts)
    result = client.result()
    assert (result["outcome"], result["files"], result["bytes"]) == ("COMMITTED", 3, 8)
    assert client.data() == {
        f"a=1/part-0-{client.job}.csv": b"1,2\n",
        f"a=1/part-1-{client.job}.csv": b"3,4\n",
        f"a=2/part-0-{client.job}.csv": b"",
    }
    await_tidied(client)
    marker = client.s3.get_object(Bucket=client.bucket, Key=f"{client.table}/_SUCCESS")
    assert json.loads(marker["Body"].read())["jobId"] == client.job


def test_i4_a_plain_client_aborts_a_job(client: PlainClient) -> None:
    client.task("0", {"part-0": b"never"})
    client.request(action="abort", reason="changed my mind")
    result = client.result()
    assert result["outcome"] == "ABORTED"
    assert result["error"] == {"code": "ABORTED_BY_CLIENT", "message": "changed my mind"}
    await_tidied(client)
    assert client.data() == {}
    assert "_SUCCESS" not in client.listed()
